"""What beside the error rates speaks against a feed's numbers: votes, outcomes, and experts who say the same."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stream_peer.feeds.columns import EXPERT
from stream_peer.feeds.sums import SCALE, UNIT, Sums
from stream_peer.numerics.arguments import FloatArray, unchecked
from stream_peer.numerics.dependence import Dependence, DependenceSums
from stream_peer.numerics.dependence.rank_agreement import RankAgreement, rank_agreement
from stream_peer.numerics.error_rates.rate import FEWEST_EFFECTIVE_QUESTIONS

_dependence_of = unchecked(DependenceSums.reading)

FEWEST_RANKED = 8
"""So many experts are needed for a rank correlation that says something."""

JUDGED_EACH = 20
"""And so many questions of each of them, with an outcome."""

MOST_RANKED = 1_000
"""More are not looked at: those that came first stand for all, and a record costs the same in every feed."""

_ENOUGH = int(JUDGED_EACH * SCALE) - 2**20  # sums are rounded: twenty questions must not look like a trace too few


class NamedGroup(NamedTuple):
    """Experts by their ids who say the same, or (``follower``) what the crowd had said before."""

    experts: Sequence[str]
    kind: str = "copies"


class Signs(NamedTuple):
    """What speaks against a feed's numbers.

    Attributes
    ----------
    dependence : Dependence
        The fourth-moment gap of the votes by the rule in force, from 50 effective questions on.
    ranks : RankAgreement, optional
        How alike peer losses and true losses rank the experts; None while that cannot be judged.
    groups : sequence of NamedGroup
        Experts who say the same.
    """

    dependence: Dependence
    ranks: RankAgreement | None = None
    groups: Sequence[NamedGroup] = ()


def dependence_key(sums: Sums, rule: int) -> bytes:
    """What ``read_dependence`` depends on; outcomes do not change it."""
    key: bytes = sums.votes[rule].tobytes()
    return key


def read_dependence(sums: Sums, rule: int) -> Dependence:
    """The fourth-moment gap of the votes by a rule."""
    blocks: FloatArray = np.multiply(sums.votes[rule], UNIT, dtype=np.float64)
    return _dependence_of(DependenceSums(blocks), FEWEST_EFFECTIVE_QUESTIONS)


def read_ranks(sums: Sums) -> RankAgreement | None:
    """How alike mean peer losses and mean true losses rank experts with questions enough; None with too few of them.

    Both are taken on the same questions, those with an outcome, and from those present.
    """
    counts = sums.matrix[EXPERT.at("judged")]
    enough = np.flatnonzero(counts >= _ENOUGH)[:MOST_RANKED]
    if len(enough) < FEWEST_RANKED:
        return None
    peer, true = sums.matrix[EXPERT.span("judged_peer", "judged_true"), enough] / counts[enough]
    return unchecked(rank_agreement)(peer, true)
