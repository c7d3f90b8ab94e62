"""How well forecasters did on the questions whose outcome was revealed, and how hard these were.

Everything here is of the squared loss, whatever loss the feed is scored by, and of a question's latest round.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from stream_peer.adapters.history import FeedHistory
from stream_peer.numerics.losses import LOG, FloatArray, IntArray, squared_loss
from stream_peer.numerics.skill import MurphyTerms, Skill, murphy_decomposition, skill_score

FEWEST_SKILLED = 5
"""Resolved questions below which an expert's skill is not told: the best of many would be the luckiest."""

FEWEST_CALIBRATED = 20
"""Resolved questions below which an expert's calibration is not told: the fit would follow chance."""

PUBLISHED = ("mix", "stretched", "mean", "median", "logit_mean")
REFERENCE = "mean"
"""Difficulty is the loss of this published forecast: the plain mean of all experts."""

_MISSING = 0.5


class Score(NamedTuple):
    """One forecaster's record.

    ``skill`` holds its mean loss and that of the plain mean on the same questions, ``coverage`` is the share of the
    resolved questions that it answered, ``log_score`` in nats, smaller is better; ``murphy`` is None of too few.
    """

    name: str
    skill: Skill
    coverage: float
    log_score: float
    murphy: MurphyTerms | None

    @property
    def told_skill(self) -> float | None:
        """The skill, if there are enough questions to tell it of an expert."""
        return self.skill.skill if self.skill.questions >= FEWEST_SKILLED else None

    @property
    def told_deviation(self) -> float | None:
        """Its standard deviation, as far as the skill is told."""
        return self.skill.deviation if self.skill.questions >= FEWEST_SKILLED else None


class TrackRecord(NamedTuple):
    """All forecasters of a feed on its resolved questions, in the order in which these closed.

    ``published`` are the forecasts that the service made, ``said`` what each expert said, with the places of its
    questions among all.
    """

    questions: tuple[str, ...]
    outcomes: IntArray
    published: Mapping[str, FloatArray]
    said: Mapping[str, tuple[IntArray, FloatArray]]

    def score(self, name: str) -> Score:
        """Of a published forecast."""
        return self._score(name, np.arange(len(self.outcomes)), self.published[name], fewest=1)

    def expert_score(self, expert_id: str) -> Score | None:
        """Of an expert; None if it answered no resolved question."""
        if expert_id not in self.said:
            return None
        return self._score(expert_id, *self.said[expert_id], fewest=FEWEST_CALIBRATED)

    def losses(self, name: str) -> FloatArray:
        """Squared losses of a published forecast, question by question."""
        return squared_loss(self.published[name], self.outcomes)

    def expert_losses(self, expert_id: str) -> tuple[IntArray, FloatArray]:
        """Squared losses of an expert, and the places of its questions."""
        places, forecasts = self.said[expert_id]
        return places, squared_loss(forecasts, self.outcomes[places])

    def _score(self, name: str, places: IntArray, forecasts: FloatArray, *, fewest: int) -> Score:
        outcomes = self.outcomes[places]
        skill = skill_score(
            squared_loss(forecasts, outcomes), squared_loss(self.published[REFERENCE][places], outcomes)
        )
        murphy = murphy_decomposition(forecasts, outcomes) if len(places) >= fewest else None
        log_score = float(np.mean(LOG(forecasts, outcomes)))
        return Score(name, skill, len(places) / len(self.outcomes), log_score, murphy)


def track_record(feed: FeedHistory) -> TrackRecord | None:
    """The record of all forecasters of a feed; None before the first outcome."""
    resolved = feed.resolved()
    if not resolved:
        return None
    said: dict[str, tuple[list[int], list[float]]] = {}
    for place, forecast in enumerate(resolved):
        record = feed.losses.get(forecast.question)
        for expert in record.experts if record else ():
            places, forecasts = said.setdefault(expert.id, ([], []))
            places.append(place)
            forecasts.append(expert.probability)
    return TrackRecord(
        tuple(forecast.question for forecast in resolved),
        np.array([forecast.outcome for forecast in resolved], dtype=np.int64),
        {name: _published([getattr(forecast, name) for forecast in resolved]) for name in PUBLISHED},
        {name: (np.array(places, dtype=np.int64), np.array(values)) for name, (places, values) in said.items()},
    )


def _published(values: Sequence[float | None]) -> FloatArray:
    """Forecasts as numbers. Weights are rounded to 12 decimals: they, and so a mix of ones, may sum to a bit over 1."""
    return np.array([_MISSING if value is None else min(1.0, max(0.0, value)) for value in values], dtype=np.float64)


class MeasuredRegret(NamedTuple):
    """What following the drawn expert cost, on resolved questions, against the best single expert.

    ``revisions`` and ``questions`` tell how far each of the sums ``regret`` goes: outcomes up to that revision, and how
    many of them.
    """

    revisions: list[int]
    questions: list[int]
    regret: list[float]


def measured_regret(feed: FeedHistory) -> MeasuredRegret:
    """The regret of the experts that were drawn from ``select``, outcome by outcome, in the unit of the feed's loss.

    ``max_i Σ_t (ℓ(drawn, t) - ℓ(i, t))`` over the resolved questions that expert i answered: as the certificate bounds
    it, but for one draw a question instead of the mean over ``select``, and for latest rounds only. Questions come in
    the order of the revision that last changed them.
    """
    known = [
        (forecast.revision, forecast.selected.expert, {e.id: e.outcome_loss for e in record.experts})
        for forecast in feed.resolved()
        if forecast.selected is not None and (record := feed.losses.get(forecast.question)) is not None
    ]
    behind: dict[str, float] = {}
    found = MeasuredRegret([], [], [])
    for revision, drawn, losses in sorted(known, key=lambda each: each[0]):
        lost = losses.get(drawn)
        if lost is None:
            continue
        for expert, loss in losses.items():
            if loss is not None:
                behind[expert] = behind.get(expert, 0.0) + lost - loss
        found.revisions.append(revision)
        found.questions.append(len(found.questions) + 1)
        found.regret.append(max(behind.values()))
    return found
