"""A feed as the output topics would tell it: experts of known skill, weights that find them, a hostile name."""

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from stream_peer.events import topics
from stream_peer.events.outputs import (
    Certificate,
    ErrorRates,
    ErrorRateSummary,
    MixedForecast,
    MixerShares,
    PeerLosses,
    ScoredExpert,
    ScoredForecast,
    SelectedExpert,
    TrustState,
    TruthRates,
    WeightedExpert,
    Weights,
    encode_output,
)
from stream_peer.tools.replay.history import ReplayHistory

HOSTILE = "<img src=x onerror=alert(1)>"
FEED = "sample"


def rate(*, low: float = 0.08, high: float = 0.2, measured: float | None = 0.12) -> ErrorRateSummary:
    return ErrorRateSummary(zero=0.11, one=0.15, low=low, high=high, status="ok", measured=measured)


def weights(
    revision: int,
    shares: dict[str, float],
    *,
    questions: float = 100.0,
    error_rate: ErrorRateSummary | None = None,
    certificate: Certificate | None = None,
    feed: str = FEED,
    trust: tuple[TrustState, list[str]] = ("ok", []),
) -> Weights:
    experts = [
        WeightedExpert(
            id=name,
            mix=share,
            select=share,
            questions=questions,
            coverage=0.75,
            peer_loss=0.25 - share,
            outcome_loss=None if number % 5 == 0 else 0.26 - share,
            resolved=questions / 2,
            team=None,
        )
        for number, (name, share) in enumerate(shares.items())
    ]
    return Weights(
        feed=feed,
        settings="9f3c2a11",
        revision=revision,
        at="2026-03-01T12:00:00Z",
        status=trust[0],
        status_reasons=trust[1],
        questions=questions,
        resolved=questions / 2,
        error_rate=error_rate or rate(),
        mixer=MixerShares(mean=0.31, peer=0.44, truth_slow=0.15, truth_fast=0.10),
        stretch=0.12,
        select_shrink=0.0,
        certificate=certificate,
        experts=experts,
    )


def mixed(
    question: str,
    revision: int,
    mix: float,
    mean: float,
    outcome: int | None,
    drawn: str | None = None,
    scored: ScoredForecast | None = None,
) -> MixedForecast:
    """A record of a final round; its own forecast is the scored one unless another is."""
    stretched = min(1.0, max(0.0, 0.5 + 1.2 * (mix - 0.5)))
    said: dict[str, Any] = {"mix": mix, "stretched": stretched, "mean": mean, "median": mean, "logit_mean": mean}
    selected = None if drawn is None else SelectedExpert(expert=drawn, probability=mix)
    boundary = "2026-03-01T12:00:00Z"
    return MixedForecast(
        feed=FEED,
        settings="9f3c2a11",
        question=question,
        revision=revision,
        at="2026-03-01T12:00:00Z",
        trust="ok",
        state="scored" if outcome is None else "resolved",
        boundary=boundary,
        final=True,
        rounds=1,
        **said,
        selected=selected,
        outcome=1 if outcome == 1 else 0 if outcome == 0 else None,
        scored=scored or ScoredForecast(revision=revision, boundary=boundary, **said, selected=selected),
    )


def losses(question: str, revision: int, forecasts: dict[str, float], outcome: int) -> PeerLosses:
    return PeerLosses(
        feed=FEED,
        settings="9f3c2a11",
        question=question,
        revision=revision,
        at="2026-03-01T12:00:00Z",
        trust="ok",
        state="resolved",
        boundary="2026-03-01T12:00:00Z",
        final=True,
        rounds=1,
        error_rate=rate(),
        experts=[
            ScoredExpert(
                id=name, probability=p, reference_answer=outcome, peer_loss=0.1, outcome_loss=(outcome - p) ** 2
            )
            for name, p in forecasts.items()
        ],
    )


def add(history: ReplayHistory, topic: str, record: msgspec.Struct) -> None:
    history.add(topic, encode_output(record))


def sample_history(*, questions: int = 400, n_experts: int = 20) -> ReplayHistory:
    """A whole feed; half of its questions resolved, three dead letters, one expert with a hostile name."""
    rng = np.random.default_rng(7)
    names = [HOSTILE, *(f"expert-{number:02d}" for number in range(1, n_experts))]
    noise = np.linspace(0.15, 0.5, n_experts)
    history = ReplayHistory()
    score = np.zeros(n_experts)
    for number in range(1, questions + 1):
        outcome = int(rng.integers(2))
        forecasts = np.clip(0.5 + (outcome - 0.5) * 0.6 + rng.normal(0, noise), 0.01, 0.99)
        share = np.exp(-0.06 * (score - score.min()))
        share /= share.sum()
        _add_question(history, number, names, forecasts, share, outcome)
        score += (outcome - forecasts) ** 2
    add(history, topics.ERROR_RATES, _error_rates(questions))
    for reason in ("not-json", "probability-range", "outcome-unknown"):
        headers = [("stream-peer-reason", reason.encode()), ("__streams.errors.message", b"no <b>good</b>")]
        history.add(topics.DEAD_LETTERS, b'{"type":"<script>alert(2)</script>"}', headers)
    return history


def _add_question(
    history: ReplayHistory,
    number: int,
    names: list[str],
    forecasts: NDArray[np.float64],
    share: NDArray[np.float64],
    outcome: int,
) -> None:
    question, spread = f"q{number:04d}", 0.3 / number**0.5
    summary = rate(low=max(0.0, 0.13 - spread), high=min(0.475, 0.13 + spread), measured=0.12 if number > 40 else None)
    bound = Certificate(regret_at_most=12 + 1.5 * number**0.5, confidence=0.95) if number > 10 else None
    shares = dict(zip(names, map(float, share), strict=True))
    add(
        history,
        topics.WEIGHTS,
        weights(3 * number, shares, questions=float(number), error_rate=summary, certificate=bound),
    )
    revealed = outcome if number % 2 else None
    mix = float((share * forecasts).sum())
    add(history, topics.MIXED_FORECASTS, mixed(question, 3 * number, mix, float(forecasts.mean()), revealed))
    if revealed is not None:
        told = dict(zip(names, map(float, forecasts), strict=True))
        add(history, topics.PEER_LOSSES, losses(question, 3 * number, told, outcome))


def _error_rates(questions: int) -> ErrorRates:
    return ErrorRates(
        feed=FEED,
        settings="9f3c2a11",
        revision=3 * questions,
        at="2026-03-01T12:00:00Z",
        trust="ok",
        status="ok",
        status_reasons=[],
        zero=0.11,
        one=0.15,
        low=0.1,
        high=0.16,
        effective_questions=380.0,
        from_truth=TruthRates(zero=0.1, one=0.14, resolved=200.0),
        vote_rule="half",
    )
