"""How well forecasters did on the questions whose outcome was revealed, and how hard these were.

Everything here is of the squared loss, whatever loss the feed is scored by, and of the scored forecast of a question.
Experts are compared on questions that several experts answered.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from stream_peer.numerics.arguments import BoolArray, FloatArray, IntArray
from stream_peer.numerics.losses import LOG, SQUARED, ProperLoss, squared_loss
from stream_peer.tools.replay.history import FeedHistory
from stream_peer.tools.report.skill import MurphyTerms, Skill, murphy_decomposition, skill_score

FEWEST_SKILLED = 5
"""Resolved questions below which an expert's skill is not told: the best of many would be the luckiest."""

FEWEST_CALIBRATED = 20
"""Resolved questions below which an expert's calibration is not told: the fit would follow chance."""

_FEWEST_COMPARED = 2
PUBLISHED = ("mix", "stretched", "mean", "median", "logit_mean")
REFERENCE = "mean"
"""Difficulty is the loss of this published forecast: the plain mean of all experts."""

_NO_SKILL: Mapping[str, Any] = {"questions": 0, "skill": None, "deviation": None}
"""Of one that answered nothing that anybody else answered."""


class Score(NamedTuple):
    """One forecaster's record.

    ``skill`` holds its mean loss and that of the plain mean on the same questions, as far as several experts answered
    them; ``coverage`` is the share of the resolved questions that it answered, ``log_score`` in nats, smaller is
    better; ``murphy`` is None of too few.
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
    questions among all; ``shared`` are the questions that several experts answered.
    """

    questions: tuple[str, ...]
    outcomes: IntArray
    shared: BoolArray
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
        outcomes, shared = self.outcomes[places], self.shared[places]
        losses = squared_loss(forecasts, outcomes), squared_loss(self.published[REFERENCE][places], outcomes)
        skill = (
            skill_score(losses[0][shared], losses[1][shared])
            if shared.any()
            else skill_score(*losses)._replace(**_NO_SKILL)
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
    for place, one in enumerate(resolved):
        for expert, forecast in one.said.items():
            places, forecasts = said.setdefault(expert, ([], []))
            places.append(place)
            forecasts.append(forecast)
    return TrackRecord(
        tuple(one.question for one in resolved),
        np.array([one.outcome for one in resolved], dtype=np.int64),
        np.array([one.is_shared for one in resolved]),
        {name: _published([getattr(one.forecast, name) for one in resolved]) for name in PUBLISHED},
        {name: (np.array(places, dtype=np.int64), np.array(values)) for name, (places, values) in said.items()},
    )


def _published(values: Sequence[float]) -> FloatArray:
    """Forecasts as numbers. Weights are rounded to 12 decimals: they, and so a mix of ones, may sum to a bit over 1."""
    return np.clip(np.array(values, dtype=np.float64), 0.0, 1.0)


class MeasuredRegret(NamedTuple):
    """What following the drawn expert cost, on resolved questions, against the best single expert.

    ``revisions`` and ``questions`` tell how far each of the sums ``regret`` goes: outcomes up to that revision, and how
    many of them.
    """

    revisions: list[int]
    questions: list[int]
    regret: list[float]


def measured_regret(feed: FeedHistory, loss: ProperLoss = SQUARED) -> MeasuredRegret:
    """The regret of the experts that were drawn from ``select``, outcome by outcome, in the unit of the ``loss``.

    ``max_i Σ_t (ℓ(drawn, t) - ℓ(i, t))`` over the resolved questions that expert i answered, with others: as the
    certificate bounds it, but for one draw a question instead of the mean over ``select``, and for scored rounds only.
    Questions come in the order of the revision that last changed them.
    """
    behind: dict[str, float] = {}
    found = MeasuredRegret([], [], [])
    for one in sorted(feed.resolved(), key=lambda each: each.revision):
        drawn = one.forecast.selected
        if drawn is None or drawn.expert not in one.said or len(one.said) < _FEWEST_COMPARED:
            continue
        losses = dict(zip(one.said, loss(np.array(list(one.said.values())), one.outcome).tolist(), strict=True))
        for expert, lost in losses.items():
            behind[expert] = behind.get(expert, 0.0) + losses[drawn.expert] - lost
        found.revisions.append(one.revision)
        found.questions.append(len(found.questions) + 1)
        found.regret.append(max(behind.values()))
    return found
