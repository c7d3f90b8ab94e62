"""Error rates, read off the sums of a feed: of each vote rule, without outcomes and with them."""

from typing import NamedTuple

import numpy as np

from stream_peer.engine.method import Method
from stream_peer.engine.sums import (
    FEED_CLASS,
    FEED_RULE,
    UNIT,
    VOTE_RULES,
    feed_columns,
)
from stream_peer.engine.variants import variant_rate
from stream_peer.events.outputs import ErrorRateStatus
from stream_peer.numerics.error_rates import ClassMomentSums, ErrorRate, MomentSums, combine_with_truth, priced
from stream_peer.numerics.error_rates.rate import UNKNOWN_VARIANCE, effective_size
from stream_peer.numerics.losses import IntArray

HALF, OWN_MEDIAN = range(len(VOTE_RULES))
"""Numbers of the vote rules."""

_OF_RULES = [feed_columns(FEED_RULE[0], FEED_RULE[-1], rule) for rule in VOTE_RULES]
_MOMENTS = [feed_columns("moment_weight", "pair_rest", rule) for rule in VOTE_RULES]
_TRUTH_TABLE = [feed_columns("right_zero", "wrong_one", rule) for rule in VOTE_RULES]
_CLASS_MOMENTS = feed_columns(FEED_CLASS[0], FEED_CLASS[-1])
_GROUPS = feed_columns("group_weight", "group_123")


class Rates(NamedTuple):
    """Error rates of the reference answers of one vote rule.

    Attributes
    ----------
    rule : int
        Number of the vote rule.
    estimate : ErrorRate
        As published.
    zero, one : float
        As they price losses: their sum is at most .8.
    status : ErrorRateStatus
        That of the estimate; ``uninformative`` if pricing had to scale it down; that of the class-dependent estimate
        where it gave none and the symmetric one stands in.
    right_zero, wrong_zero, right_one, wrong_one : float
        Reference answers of resolved questions, by outcome.
    """

    rule: int
    estimate: ErrorRate
    zero: float
    one: float
    status: ErrorRateStatus
    right_zero: float
    wrong_zero: float
    right_one: float
    wrong_one: float

    @property
    def distance(self) -> float:
        """1 - zero - one, the scale of peer losses."""
        return 1.0 - self.zero - self.one

    @property
    def measured(self) -> float | None:
        """Share of wrong reference answers on resolved questions; None before the first."""
        wrong = self.wrong_zero + self.wrong_one
        resolved = wrong + self.right_zero + self.right_one
        return wrong / resolved if resolved else None


def free_rate(feed: IntArray, rule: int, confidence: float, method: Method) -> tuple[ErrorRate, ErrorRateStatus]:
    """Error rates from agreement alone, and how far they can be trusted.

    Votes at 1/2: symmetric. Own medians: one of each class, if the moments of the vote count give them; else the
    symmetric ones of the same votes, with the status that says why.
    """
    if rule == OWN_MEDIAN or method.reads_classes:
        by_class = ClassMomentSums(*(feed[_CLASS_MOMENTS] * UNIT).tolist()).estimate(confidence)
        if by_class.variance < UNKNOWN_VARIANCE:
            return by_class, by_class.status
        return _symmetric(feed, rule, confidence), by_class.status
    symmetric = _symmetric(feed, rule, confidence)
    return symmetric, symmetric.status


def _symmetric(feed: IntArray, rule: int, confidence: float) -> ErrorRate:
    return MomentSums(*(feed[_MOMENTS[rule]] * UNIT).tolist()).estimate(confidence)


def read_rates(feed: IntArray, rule: int, confidence: float, method: Method) -> Rates:
    """Error rates of a vote rule without truth, combined per class with revealed outcomes."""
    right_zero, wrong_zero, right_one, wrong_one = truth = (feed[_TRUTH_TABLE[rule]] * UNIT).tolist()
    if method.variant is not None:
        weight, weight2 = (feed[_MOMENTS[rule]] * UNIT).tolist()[:2]
        groups, questions = (feed[_GROUPS] * UNIT).tolist(), effective_size(weight, weight2)
        chosen = variant_rate(method.variant, groups, truth, questions, confidence)
        if chosen is not None:
            zero, one, capped = priced(chosen.zero, chosen.one)
            return Rates(rule, chosen, zero, one, "uninformative" if capped else chosen.status, *truth)
    free, free_status = free_rate(feed, rule, confidence, method)
    revealed_zero, revealed_one = right_zero + wrong_zero, right_one + wrong_one
    estimate = combine_with_truth(free, wrong_zero, revealed_zero, wrong_one, revealed_one, confidence)
    zero, one, capped = priced(estimate.zero, estimate.one)
    status: ErrorRateStatus = "uninformative" if capped else estimate.status
    if status == "ok" and free_status != free.status:
        status = free_status
    return Rates(rule, estimate, zero, one, status, right_zero, wrong_zero, right_one, wrong_one)


def used_rules(feed: IntArray, in_force: int) -> tuple[int, ...]:
    """Vote rules under which something was scored, and the one in force, which comes first."""
    others = [rule for rule, columns in enumerate(_OF_RULES) if rule != in_force and np.count_nonzero(feed[columns])]
    return (in_force, *others)
