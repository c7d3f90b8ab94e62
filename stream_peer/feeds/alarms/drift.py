"""What changed lately: a feed's error rate, or an expert. Looked for among the last questions, at every check.

It is an alarm and moves no number. What a look finds is kept until the next, with hysteresis, so that an alarm at its
limit does not flicker.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from stream_peer.feeds.alarms.recent import Window
from stream_peer.feeds.columns import RULE_PART, UNIT, rule_span
from stream_peer.numerics.arguments import BoolArray, FloatArray, IntArray, unchecked
from stream_peer.numerics.drift import (
    RATE_LIMIT,
    RateChange,
    agreement_change,
    changes_of,
    expert_limit,
    measured_change,
)
from stream_peer.numerics.error_rates import MomentSums

MOST_EXPERTS = 20
"""So many are named, those that changed most."""

AT_A_LOOK = 256
"""Of more experts a look goes over a part of about so many, the next over the next part."""

STAYS = 0.8
"""An alarm stays until z is below so much of the limit at which it came."""

_DECIMALS = 12
_N_MOMENTS = RULE_PART.index("right_zero")
_WRONG = [RULE_PART.index("wrong_zero"), RULE_PART.index("wrong_one")]
_RIGHT = [RULE_PART.index("right_zero"), RULE_PART.index("right_one")]
_WEIGHT, _PAIR, _REST = (RULE_PART.index(name) for name in ("moment_weight", "pair", "rest"))


class RateDrift(msgspec.Struct, frozen=True, array_like=True):
    """A change of the error rate: before and now, how many questions are of now, z, and what gave it away."""

    before: float
    now: float
    since_questions: int
    z: float
    by: Literal["agreement", "outcomes"]


class ExpertDrift(msgspec.Struct, frozen=True, array_like=True):
    """A change of an expert, by its place: agreement before and now, its questions of now, and z."""

    place: int
    before: float
    now: float
    since_questions: int
    z: float


class Drift(msgspec.Struct, frozen=True, array_like=True):
    """What was found to drift: the error rate if it does, how many experts, and those that do most."""

    error_rate: RateDrift | None = None
    n_experts: int = 0
    experts: list[ExpertDrift] = []

    @property
    def alarms(self) -> tuple[object, ...]:
        """What drifts, and to which side: news if it is another than before."""
        rate = () if self.error_rate is None else (self.error_rate.z > 0.0,)
        return (rate, *sorted((one.place, one.z > 0.0) for one in self.experts))

    def without(self, places: dict[int, int]) -> "Drift":
        """The same of the experts that are given, under their new places."""
        stay = [msgspec.structs.replace(one, place=places[one.place]) for one in self.experts if one.place in places]
        return Drift(self.error_rate, self.n_experts - len(self.experts) + len(stay), stay)


class Look(NamedTuple):
    """What one look goes by.

    Attributes
    ----------
    window : Window
        The last questions.
    number : int
        Which look it is: of many experts each has its turn.
    rule : int
        The vote rule in force: questions that were scored under another one are left out.
    past : sequence of int, optional
        The columns of the feed, if nothing in them is forgotten.
    leaves_one_out : bool
        Whether reference answers are made without the experts that they score, so that their agreement tells a rate.
    revealed_at_random : bool
        Whether what is measured on resolved questions speaks for the others.
    """

    window: Window
    number: int
    rule: int
    past: Sequence[int] | None
    leaves_one_out: bool = True
    revealed_at_random: bool = True


def look_for_drift(look: Look, before: Drift) -> Drift:
    """What drifts now, given what did at the last look."""
    window = look.window
    chosen = window.counts & (window.rules == look.rule) & (window.parts[:, _WEIGHT] > 0)
    if not chosen.any():
        return Drift()
    n_experts, experts = _experts(look, chosen, before)
    return Drift(_rate(look, window.parts[chosen], before.error_rate), n_experts, experts)


def _rate(look: Look, parts: IntArray, before: RateDrift | None) -> RateDrift | None:
    """The change of the error rate that is surest, if it is sure enough."""
    changes: list[tuple[RateChange | None, Literal["agreement", "outcomes"]]] = []
    known: FloatArray = parts.astype(np.float64) * UNIT
    earlier = None if look.past is None else _earlier(np.array(look.past[rule_span(look.rule)], np.int64), parts)
    limit = RATE_LIMIT * (STAYS if before else 1.0)
    if look.leaves_one_out:
        changes.append((_by_agreement(known, earlier, limit), "agreement"))
    if look.revealed_at_random:
        changes.append((_by_outcomes(known, earlier), "outcomes"))
    sure = [(change, by) for change, by in changes if change is not None and abs(change.z) > limit]
    if not sure:
        return None
    change, by = max(sure, key=lambda one: abs(one[0].z))
    rate, now, z = (round(number, _DECIMALS) for number in (change.before, change.now, change.z))
    return RateDrift(rate, now, len(parts) - change.cut, z, by)


def _earlier(past: IntArray, parts: IntArray) -> FloatArray:
    """Sums of what came before the window: exactly, since all are whole numbers."""
    earlier: FloatArray = (past - np.add.reduce(parts, axis=0)).astype(np.float64) * UNIT
    return earlier


def _by_agreement(known: FloatArray, earlier: FloatArray | None, least: float) -> RateChange | None:
    weights = known[:, _WEIGHT]
    past = MomentSums(*map(float, earlier[:_N_MOMENTS])) if earlier is not None and earlier[_WEIGHT] > 0.0 else None
    return unchecked(agreement_change)(known[:, _PAIR] / weights, known[:, _REST] / weights, weights, past, least)


def _by_outcomes(known: FloatArray, earlier: FloatArray | None) -> RateChange | None:
    wrong, right = (np.add.reduce(known[:, cells], axis=1) for cells in (_WRONG, _RIGHT))
    weights = wrong + right
    past = np.zeros(len(RULE_PART)) if earlier is None else earlier
    past_wrong, past_right = (float(np.add.reduce(past[cells])) for cells in (_WRONG, _RIGHT))
    shares = np.divide(wrong, weights, out=np.zeros(len(weights)), where=weights > 0.0)
    return unchecked(measured_change)(shares, weights, past_wrong, past_wrong + past_right)


def _experts(look: Look, chosen: BoolArray, before: Drift) -> tuple[int, list[ExpertDrift]]:
    """How many experts have changed, and who did most. Of who is not looked at this time what was found stays."""
    window = look.window
    n_experts = window.votes.shape[1]
    n_parts = -(-n_experts // AT_A_LOOK)
    part = look.number % n_parts
    mine = slice(part, n_experts, n_parts)
    agreement = window.votes[chosen, mine] * window.answers[chosen, mine]
    limits = np.full(n_experts, unchecked(expert_limit)(n_experts))
    limits[[one.place for one in before.experts]] *= STAYS
    found = changes_of(agreement, window.agreement[chosen], window.voters[chosen], limits[mine])
    now = [
        ExpertDrift(
            place=part + number * n_parts,
            before=round(float(found.before[number]), _DECIMALS),
            now=round(float(found.now[number]), _DECIMALS),
            since_questions=int(found.since[number]),
            z=round(float(found.z[number]), _DECIMALS),
        )
        for number in np.flatnonzero(np.abs(found.z) > limits[mine]).tolist()
    ]
    waiting = [one for one in before.experts if one.place % n_parts != part]
    everybody = sorted([*waiting, *now], key=lambda one: (-abs(one.z), one.place))
    return len(everybody), everybody[:MOST_EXPERTS]
