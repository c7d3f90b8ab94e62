"""Other promises that are measured beside the Brier scores: intervals of error rates, warnings, a clone attack."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from benchmarks.quality_sets import Floats
from stream_peer.events import topics
from stream_peer.events.feed_log import Round, Source, encode_feed_log
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.stage import Effects, LogRecord
from stream_peer.settings.feed.document import load_document

_WARNS = frozenset(("contradicted", "dependent", "uninformative", "biased-reveal"))
_WORLDS = ((6, 200, 0.1, 0.45), (12, 400, 0.2, 0.45), (20, 1000, 0.1, 0.4))
_STREAMS = 20
COPIES = [f"copy-{number}" for number in range(6)]
GOOD = [f"good-{number}" for number in range(4)]


class Coverage(NamedTuple):
    """In how many of so many simulated streams the interval of η held the rate that was simulated."""

    covered: int
    streams: int

    @property
    def share(self) -> float:
        """Between 0 and 1."""
        return self.covered / self.streams


def interval_coverage() -> Coverage:
    """Of feeds of independent experts: how often the interval that is published holds the true error rate."""
    covered = 0
    for size, questions, least, most in _WORLDS:
        for seed in range(_STREAMS):
            random = np.random.default_rng([size, seed])
            errors = random.uniform(least, most, size)
            known = _lived(_answers(random, errors, questions))
            rates = known.views()["f"].error_rates
            covered += rates.low <= _true_rate(random, errors) <= rates.high
    return Coverage(covered, _STREAMS * len(_WORLDS))


def _answers(random: np.random.Generator, errors: Floats, questions: int) -> list[Mapping[str, float]]:
    """Zeros and ones of experts who err independently."""
    truth = random.random(questions) < 0.5
    right = random.random((questions, len(errors))) >= errors
    said = np.where(right, truth[:, None], ~truth[:, None]).astype(np.float64)
    return [{f"e{place}": p for place, p in enumerate(row)} for row in said.tolist()]


def _true_rate(random: np.random.Generator, errors: Floats) -> float:
    """How often the majority of the others is wrong, a tie half of the time; 100,000 questions."""
    signs = np.where(random.random((100_000, len(errors))) >= errors, 1, -1)
    others = signs.sum(axis=1, keepdims=True) - signs
    return float(np.mean(np.where(others == 0, 0.5, others < 0)))


class Doubt(NamedTuple):
    """Of a data set: the error rate by agreement alone, the measured one, and what is said with a tenth revealed.

    ``rates``, ``trust``: the status of either; ``so_far``: whether trust, still ``warming-up``, has a doubt among its
    reasons.
    """

    estimated: float
    measured: float
    rates: str
    trust: str
    so_far: bool

    @property
    def is_needed(self) -> bool:
        """Whether agreement is off by more than a tenth."""
        return abs(self.estimated - self.measured) > 0.1

    @property
    def is_named(self) -> bool:
        """Whether the status of the error rates or of the feed names what is wrong, or the latter's reasons do."""
        return self.rates in _WARNS or self.trust in _WARNS or self.so_far

    @property
    def is_early(self) -> bool:
        """Whether the feed's status says only that there are too few questions yet to tell."""
        return not self.is_named and self.trust == "warming-up"


class Attack(NamedTuple):
    """Six copies of one expert who errs .35 of the time among four independent ones who err .15 of the time.

    ``alarm``: the question at which the group was named; ``named``: who; ``trusted``: states on the way; ``alone``,
    ``off``, ``on``: share of right reference answers without the clones, with them, and with ``guard: on``.
    """

    alarm: int | None
    named: list[str]
    trusted: list[str]
    alone: float
    off: float
    on: float

    @property
    def holds(self) -> bool:
        """Whether it is found by question 200, as exactly those six, and does little harm with the guard on."""
        found = self.alarm is not None and self.alarm <= 200 and self.named == COPIES
        return found and self.trusted == ["warming-up", "dependent"] and self.on >= 0.95 * self.alone


def clone_attack(questions: int = 1000) -> Attack:
    """The attack, folded by the product's feed stage."""
    random = np.random.default_rng(16)
    truth = random.random(questions) < 0.5
    copied = np.where(random.random(questions) >= 0.35, truth, ~truth)
    good = np.where(random.random((questions, 4)) >= 0.15, truth[:, None], ~truth[:, None])
    honest = [dict(zip(GOOD, map(float, row), strict=True)) for row in good]
    alone = [{**row, COPIES[0]: float(copy)} for row, copy in zip(honest, copied, strict=True)]
    attacked = [{**row, **dict.fromkeys(COPIES, float(copy))} for row, copy in zip(honest, copied, strict=True)]
    answers = {
        name: _share_right(rows, truth.tolist(), **settings)
        for name, rows, settings in (("alone", alone, {}), ("off", attacked, {}), ("on", attacked, {"guard": "on"}))
    }
    alarm, named, trusted = _told(attacked)
    return Attack(alarm, named, trusted, **answers)


def _told(rows: Sequence[Mapping[str, float]]) -> tuple[int | None, list[str], list[str]]:
    """When a group was named, who is in it at the end, and which states trust went through."""
    stage, alarm, trusted = _stage(), None, list[str]()
    for number, row in enumerate(rows, 1):
        stage.step(_record(number, row), Effects())
        weights = stage.views()["f"].weights
        if alarm is None and weights.groups:
            alarm = number
        if not trusted or trusted[-1] != weights.status:
            trusted.append(weights.status)
    groups = stage.views()["f"].weights.groups or []
    return alarm, sorted(expert for group in groups for expert in group.experts), trusted


def _share_right(rows: Sequence[Mapping[str, float]], truth: Sequence[bool], **settings: Any) -> float:
    stage, right = _stage(**settings), 0
    for number, (row, outcome) in enumerate(zip(rows, truth, strict=True), 1):
        effects = Effects()
        stage.step(_record(number, row), effects)
        answers = [one.value for one in effects.outputs if one.topic == topics.REFERENCE_ANSWERS and one.value]
        right += msgspec.json.decode(answers[-1])["reference_answer"] == int(outcome)
    return right / len(rows)


def _lived(rows: Sequence[Mapping[str, float]]) -> FeedStage:
    stage = _stage()
    for number, row in enumerate(rows, 1):
        stage.step(_record(number, row), Effects())
    return stage


def _stage(**settings: Any) -> FeedStage:
    return FeedStage(topic=topics.FEED_LOG, partition=0, settings=load_document({"defaults": settings}))


def _record(number: int, row: Mapping[str, float]) -> LogRecord:
    at = 1_700_000_000_000 + 1000 * number
    experts = sorted(row)
    said = Round(
        src=Source(topics.FORECAST_EVENTS, 0, 0, number, 0),
        feed="f",
        question_id=f"q{number}",
        boundary=at,
        final=True,
        weight=1.0,
        experts=experts,
        probabilities=[row[expert] for expert in experts],
    )
    return LogRecord(number, at, b"f", encode_feed_log(said))
