"""Gradient mixers on real forecasts: weights from earlier questions only, errors against those of the mean."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest

from stream_peer.lab.formulas.gradients import (
    gradient_hedge,
    gradient_normal_hedge,
    outcome_gradients,
    peer_gradients,
)
from stream_peer.lab.formulas.regret_sums import RegretSums
from stream_peer.numerics.answers import leave_one_out, votes
from stream_peer.numerics.arguments import FloatArray, IntArray
from stream_peer.numerics.error_rates import MomentSums, moment_terms, priced

Question: TypeAlias = tuple[IntArray, FloatArray, int]
Learn: TypeAlias = Callable[[FloatArray, FloatArray, FloatArray, int, tuple[float, float]], RegretSums]


def questions_of(name: str, directory: Path) -> list[Question]:
    """The experts, their last forecasts and the outcome of each question, by the time of its end."""
    file = next(directory.glob(f"{name}.jsonl*"))
    text = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    forecasts: dict[str, dict[int, float]] = {}
    closes: dict[str, str] = {}
    outcomes: dict[str, int] = {}
    experts: dict[str, int] = {}
    for line in text.decode().splitlines():
        event = json.loads(line)
        question = event["question_id"]
        if event["type"] == "question":
            forecasts[question], closes[question] = {}, event["closes_at"]
        elif event["type"] == "forecast":
            forecasts[question][experts.setdefault(event["expert_id"], len(experts))] = event["probability"]
        else:
            outcomes[question] = event["outcome"]
    ordered = sorted((q for q in outcomes if len(forecasts[q]) > 1), key=lambda q: closes[q])
    return [
        (np.array(sorted(forecasts[q])), np.array([forecasts[q][e] for e in sorted(forecasts[q])]), outcomes[q])
        for q in ordered
    ]


def ratio_to_the_plain_mean(
    questions: list[Question], mix: Callable[[RegretSums, tuple[float, float], int], FloatArray], learn: Learn
) -> float:
    """Rates by leave-one-out moments, as they stood before each question. Forecasts of one half are tied by a coin."""
    coins = np.random.default_rng(0).integers(2, size=len(questions))
    n_experts = 1 + max(int(experts.max()) for experts, _, _ in questions)
    columns = np.zeros((7, n_experts))
    moments, mixed_error, mean_error = MomentSums(), 0.0, 0.0
    for (experts, forecasts, outcome), coin in zip(questions, coins, strict=True):
        estimate = moments.estimate()
        rates = priced(estimate.zero, estimate.one)[:2]
        seen = max(int(np.count_nonzero(columns[6])), 1)
        weights = mix(RegretSums(*columns[:, experts]), rates, seen)
        mixed_error += float(weights @ forecasts - outcome) ** 2
        mean_error += float(forecasts.mean() - outcome) ** 2
        answers = leave_one_out(forecasts, int(coin)).answers
        new = learn(weights, forecasts, answers.astype(np.float64), outcome, rates)
        parts = (new.against, new.if_one, new.if_zero, new.outcome, new.frozen, new.absolute, new.questions)
        columns[:, experts] += parts
        terms = moment_terms(votes(forecasts), answers)
        moments = moments if terms is None else moments.merge(MomentSums.contribution(terms))
    return mixed_error / mean_error


def from_peers(
    weights: FloatArray, forecasts: FloatArray, answers: FloatArray, _: int, rates: tuple[float, float]
) -> RegretSums:
    return peer_gradients(weights, forecasts, answers, rates)


def from_outcomes(
    weights: FloatArray, forecasts: FloatArray, _: FloatArray, outcome: int, __: tuple[float, float]
) -> RegretSums:
    return outcome_gradients(weights, forecasts, outcome)


@pytest.mark.parametrize(
    ("name", "lowest", "highest"),
    [
        ("crowd_bluebirds", 0.91, 0.98),
        ("ml_digits_weak", 0.77, 0.84),
        ("flu_trend_2324", 0.91, 0.97),
        ("solar_flares_metoffice", 0.99, 1.03),
    ],
)
def test_without_outcomes_gradient_hedge_beats_the_plain_mean_where_experts_differ(
    data_directory: Path, name: str, lowest: float, highest: float
) -> None:
    """Solar flares: seven forecasts of two centres, among whom agreement tells little."""
    ratio = ratio_to_the_plain_mean(questions_of(name, data_directory), gradient_hedge, from_peers)

    assert lowest < ratio < highest


@pytest.mark.parametrize(("name", "highest"), [("crowd_bluebirds", 0.75), ("ml_digits_weak", 0.72)])
def test_with_every_outcome_known_at_once_they_beat_it_by_far(data_directory: Path, name: str, highest: float) -> None:
    questions = questions_of(name, data_directory)

    ratio = ratio_to_the_plain_mean(
        questions, lambda sums, _, __: gradient_normal_hedge(sums, (0.0, 0.0), 0.0), from_outcomes
    )

    assert 0.4 < ratio < highest
