"""What an estimator of error rates may read: the sums of one vote rule, typed, by what they were summed from."""

from collections.abc import Sequence
from typing import NamedTuple

from stream_peer.feeds.columns import FEED, RULE_PART, UNIT, classes_span, rule_span
from stream_peer.numerics.error_rates import ClassMomentSums, MomentSums, TruthSums
from stream_peer.numerics.error_rates.rate import effective_size

_N_MOMENTS, _N_COUNTED = RULE_PART.index("right_zero"), RULE_PART.index("revealed_pair")


class GroupSums(NamedTuple):
    """Sums of the answers of up to three groups of experts, where the method asks groups.

    Attributes
    ----------
    weight, weight2 : float
        Σw and Σw² of the questions where all groups asked have an answer.
    first, second, third : float
        Σw where that group answers 1.
    first_second, first_third, second_third, all_three : float
        Σw where these answer 1 together.
    """

    weight: float
    weight2: float
    first: float
    second: float
    third: float
    first_second: float
    first_third: float
    second_third: float
    all_three: float


class RateSums:
    """The sums of one vote rule that an estimator reads, under the names that `columns` declares.

    ``by_group``: the parts of a group depend on each other, maybe wholly. ``moment_weight2`` is then Σ_g (Σ_k w_k)², of
    groups and their parts; a question that is no part is a group of one. The effective number of questions that follows
    is that of groups, and all sums are taken by so much smaller: a *design effect* (Kish, 1965).

    Attributes
    ----------
    moments : MomentSums
        Agreement of the experts with one another and with their reference answers: ``moment_weight`` … ``pair_rest``.
    truth : TruthSums
        Right and wrong reference answers of resolved questions: ``right_zero`` … ``wrong_one``.
    revealed_pair, answer, answer2 : float
        By which resolved questions are compared with the others.
    """

    __slots__ = ("_by_group", "_feed_sums", "answer", "answer2", "moments", "revealed_pair", "truth")

    def __init__(self, feed_sums: Sequence[int], rule: int, *, by_group: bool = False) -> None:
        self._feed_sums, self._by_group = feed_sums, by_group
        known = self._counted(feed_sums[rule_span(rule)])
        self.moments = MomentSums(*known[:_N_MOMENTS])
        self.truth = TruthSums(*known[_N_MOMENTS:_N_COUNTED])
        self.revealed_pair, self.answer, self.answer2 = known[_N_COUNTED:]

    def _counted(self, amounts: Sequence[int]) -> list[float]:
        """Σw, Σw² and sums of means, in which a group weighs no more than a question does, ``by_group``."""
        weight, weight2, *others = known = [amount * UNIT for amount in amounts]
        if not self._by_group or not weight > 0.0:
            return known
        share = min(effective_size(weight, weight2) / weight, 1.0)
        return [weight * share, weight2 * share * share, *[share * amount for amount in others]]

    @property
    def classes(self) -> ClassMomentSums:
        """Moments of the number of votes for yes, ``class_…``: under own medians, or if the method reads classes."""
        return ClassMomentSums(*self._counted(self._feed_sums[classes_span()]))

    @property
    def classes_at_half(self) -> ClassMomentSums:
        """The same of votes at ½, ``half_…``: from version 2 of the method on."""
        return ClassMomentSums(*self._counted(self._feed_sums[classes_span("half")]))

    @property
    def groups(self) -> GroupSums:
        """Answers of groups, ``group_…``: if the method asks groups."""
        return GroupSums._make([amount * UNIT for amount in self._feed_sums[FEED.span("group_weight", "group_123")]])

    @property
    def questions(self) -> float:
        """Effective questions with votes."""
        return effective_size(self.moments.weight, self.moments.weight2)
