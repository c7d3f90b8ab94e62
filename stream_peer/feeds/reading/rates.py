"""Error rates as they are read off the sums, with their status, and which vote rule ``vote_rule: auto`` takes next.

Votes at 1/2 are the better ones unless nearly all of them are alike: then reference answers hardly ever differ, and
only where a forecast lies among the expert's own says something.
"""

from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from stream_peer.events.outputs import ErrorRateStatus
from stream_peer.feeds.columns import VOTE_RULES, VoteRule, rule_span
from stream_peer.feeds.methods.method import Method
from stream_peer.feeds.methods.rate_sums import RateSums
from stream_peer.numerics.arguments import unchecked
from stream_peer.numerics.error_rates import (
    ClassMomentSums,
    Contradiction,
    ErrorRate,
    MomentSums,
    RevealShift,
    combine_with_truth,
    contradiction,
    early_contradiction,
    priced,
    reveal_shift,
)
from stream_peer.numerics.error_rates.rate import UNKNOWN_VARIANCE

FEWEST_VOTES = 200.0
"""Votes at 1/2 below which the rule stays as it is."""

_EXTREME = 0.15
_MODERATE = 0.20


def next_vote_rule(before: VoteRule, yes: float, votes: float) -> VoteRule:
    """The vote rule in force after a record, given that before it.

    ``own-median`` from a share of votes for yes below .15 or above .85; ``half`` again from .20 to .80.

    Parameters
    ----------
    before : {"half", "own-median"}
    yes, votes : float
        Votes at 1/2 for yes, and all, of the questions that count: weighted, means over a question's rounds.

    Examples
    --------
    >>> next_vote_rule("half", yes=29.0, votes=200.0), next_vote_rule("half", yes=30.0, votes=200.0)
    ('own-median', 'half')
    >>> next_vote_rule("own-median", yes=39.0, votes=200.0), next_vote_rule("own-median", yes=160.0, votes=200.0)
    ('own-median', 'half')
    """
    if votes < FEWEST_VOTES:
        return before
    rarer = min(yes, votes - yes)
    if before == "half":
        return "own-median" if rarer < _EXTREME * votes else "half"
    return "half" if rarer >= _MODERATE * votes else "own-median"


HALF, OWN_MEDIAN = range(len(VOTE_RULES))
"""Numbers of the vote rules."""

_estimate_of_moments = unchecked(MomentSums.estimate)
_estimate_of_classes = unchecked(ClassMomentSums.estimate)
_combine_with_truth = unchecked(combine_with_truth)
_priced = unchecked(priced)
_contradiction = unchecked(contradiction)
_early_contradiction = unchecked(early_contradiction)
_reveal_shift = unchecked(reveal_shift)

_CELLS = attrgetter("right_zero", "wrong_zero", "right_one", "wrong_one")

Shifts: TypeAlias = tuple[RevealShift | None, RevealShift | None]


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
        where it gave none and the symmetric one stands in; otherwise ``biased-reveal`` if the
        questions with outcomes are unlike the others, ``contradicted`` if outcomes show more errors than votes do.
    right_zero, wrong_zero, right_one, wrong_one : float
        Reference answers of resolved questions, by outcome.
    contradiction : Contradiction, optional
        How often they were wrong, beside what was expected; None while that cannot be judged.
    shifts : (RevealShift or None, RevealShift or None)
        How questions with outcomes differ from the others: in agreement, and in the share of answers that are 1.
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
    contradiction: Contradiction | None = None
    shifts: Shifts = (None, None)

    @property
    def distance(self) -> float:
        """1 - zero - one, the scale of peer losses."""
        return 1.0 - self.zero - self.one

    @property
    def measured(self) -> float | None:
        """Share of wrong reference answers on resolved questions; None before the first."""
        resolved = self.resolved
        return (self.wrong_zero + self.wrong_one) / resolved if resolved else None

    @property
    def measured_mean(self) -> float | None:
        """Mean of the shares of wrong answers of both outcomes, as the estimate and its interval are of such a mean.

        With one outcome alone it is that of this one; None before the first.
        """
        counts = (self.wrong_zero, self.right_zero), (self.wrong_one, self.right_one)
        shares = [wrong / (wrong + right) for wrong, right in counts if wrong + right]
        return sum(shares) / len(shares) if shares else None

    @property
    def resolved(self) -> float:
        """Resolved questions whose reference answers are known to be right or wrong."""
        return self.right_zero + self.wrong_zero + self.right_one + self.wrong_one


def free_rate(sums: RateSums, rule: int, confidence: float, method: Method) -> tuple[ErrorRate, ErrorRateStatus]:
    """Error rates from agreement alone, and how far they can be trusted.

    Votes at 1/2: symmetric. Own medians: one of each class, if the moments of the vote count give them; else the
    symmetric ones of the same votes, with the status that says why.
    """
    if rule == OWN_MEDIAN or method.reads_classes:
        by_class = _estimate_of_classes(sums.classes, confidence, with_pseudo=not method.tells_coins)
        if by_class.variance < UNKNOWN_VARIANCE:
            return by_class, by_class.status
        return _estimate_of_moments(sums.moments, confidence), by_class.status
    symmetric = _estimate_of_moments(sums.moments, confidence)
    return symmetric, symmetric.status


def read_rates(
    feed_sums: Sequence[int], rule: int, confidence: float, method: Method, *, by_group: bool = False
) -> Rates:
    """Error rates of a vote rule without truth, combined per class with revealed outcomes.

    ``by_group``: a group counts as one question.
    """
    sums = RateSums(feed_sums, rule, by_group=by_group)
    free, free_status, estimate = _estimates(sums, rule, confidence, method)
    truth = sums.truth
    cells = _CELLS(truth)
    zero, one, capped = _priced(estimate.zero, estimate.one)
    status: ErrorRateStatus = "uninformative" if capped else estimate.status
    if status == "ok" and free_status not in (None, free.status):
        status = free_status
    compared = _contradiction(truth, free) if method.estimates else None
    if compared is None and method.estimates and method.rates_by_trust:
        compared = _early_contradiction(truth, free)
    if compared is None:
        return Rates._make((rule, estimate, zero, one, status, *cells, None, (None, None)))
    shifts = _reveal_shifts(sums)
    status = _with_outcomes(status, compared, shifts)
    return Rates._make((rule, estimate, zero, one, status, *cells, compared, shifts))


def read_estimate(feed_sums: Sequence[int], rule: int, confidence: float, method: Method) -> ErrorRate:
    """The estimate of ``read_rates`` alone."""
    return _estimates(RateSums(feed_sums, rule), rule, confidence, method)[2]


def _estimates(
    sums: RateSums, rule: int, confidence: float, method: Method
) -> tuple[ErrorRate, ErrorRateStatus | None, ErrorRate]:
    """Error rates without truth, the status of a better estimate that they stand in for, and combined with outcomes."""
    if method.rate is not None:
        chosen = method.rate(sums, confidence)
        return chosen, None, chosen
    free, status = free_rate(sums, rule, confidence, method)
    right_zero, wrong_zero, right_one, wrong_one = _CELLS(sums.truth)
    zeros, ones = right_zero + wrong_zero, right_one + wrong_one
    return free, status, _combine_with_truth(free, wrong_zero, zeros, wrong_one, ones, confidence)


def _with_outcomes(status: ErrorRateStatus, compared: Contradiction, shifts: Shifts) -> ErrorRateStatus:
    """The status with what outcomes show, unless votes already give another status than ok."""
    if status != "ok":
        return status
    if any(shift is not None and shift.found for shift in shifts):
        return "biased-reveal"
    return "contradicted" if compared.found else "ok"


def _reveal_shifts(sums: RateSums) -> Shifts:
    """How questions with outcomes differ from the others, in agreement and in the share of answers that are 1."""
    agreed, truth = sums.moments, sums.truth
    revealed = min(sum(_CELLS(truth)), agreed.weight)  # each of them is rounded
    return (
        _reveal_shift(agreed.weight, agreed.pair, agreed.pair2, revealed, sums.revealed_pair),
        _reveal_shift(agreed.weight, sums.answer, sums.answer2, revealed, truth.wrong_zero + truth.right_one),
    )


def outcome_reasons(rates: Rates) -> list[str]:
    """What outcomes say against error rates, or the rates against them."""
    reasons = []
    names = "agreement of the experts", "share of reference answers that are 1"
    for name, shift in zip(names, rates.shifts, strict=True):
        if shift is not None and shift.found:
            reasons.append(
                f"resolved questions are unlike the others: {name} {shift.resolved:.2f}, of those {shift.others:.2f};"
                " what is measured on them does not speak for all"
            )
    found = rates.contradiction
    if found is not None and found.found:
        reasons.append(said_against(found))
    return reasons


def said_against(found: Contradiction) -> str:
    """That reference answers were wrong more often than was expected."""
    return (
        f"{found.measured:.1%} of the reference answers to {found.revealed:.0f} resolved questions were wrong, by"
        f" agreement alone {found.expected:.1%} were to be expected: experts share errors"
    )


def used_rules(feed_sums: Sequence[int], in_force: int) -> tuple[int, ...]:
    """Vote rules under which something was scored, and the one in force, which comes first."""
    others = [rule for rule in (HALF, OWN_MEDIAN) if rule != in_force and any(feed_sums[rule_span(rule)])]
    return (in_force, *others)
