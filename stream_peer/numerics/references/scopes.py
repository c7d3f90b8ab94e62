"""Whom to ask: everybody, all others, or one of two groups. All from the same ballots, in O(n)."""

from typing import NamedTuple

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.losses import BoolArray, IntArray, SmallIntArray
from stream_peer.numerics.losses.arguments import COIN, TEAMS, Each, Numbers, Record, checked
from stream_peer.numerics.references.exact import check_coin, without_own
from stream_peer.numerics.references.rules import BALLOTS, Ballots


class ReferenceAnswers(NamedTuple):
    """Reference answers, one per round or one per expert.

    Attributes
    ----------
    answers : (...) or (..., n) int8
        ŷ, 0 or 1; where `given` is False the coin.
    ties : (...) or (..., n) bool
        Where the ballots added up to 0, so that the forecasts' mean distance from their thresholds or the coin decided.
    given : (...) or (..., n) bool
        False where nobody was there to ask: no reference answer.
    """

    answers: SmallIntArray
    ties: BoolArray
    given: BoolArray


class GroupAnswers(NamedTuple):
    """The reference answers of two groups, one each per round.

    Attributes
    ----------
    a, b : ReferenceAnswers
        ŷ_A and ŷ_B.
    """

    a: ReferenceAnswers
    b: ReferenceAnswers


_MEMBERS = Numbers("... n", kind=np.bool_)
_ANSWERS = Record(
    ReferenceAnswers,
    {
        "answers": Numbers("*", 0, 1, kind=np.int8),
        "ties": Numbers("*", kind=np.bool_),
        "given": Numbers("*", kind=np.bool_),
    },
)
_GROUPS = Record(GroupAnswers, {"a": _ANSWERS, "b": _ANSWERS})


@checked(ballots=BALLOTS, coin=COIN)
def answers_of_all(ballots: Ballots, coin: int | SmallIntArray | IntArray) -> ReferenceAnswers:
    """The answer of everybody together.

    ``ŷ = 1 if Σ b_i > 0 else 0``. Under rule ``majority`` at threshold ½ it is the published answer, see `majority`.

    Parameters
    ----------
    ballots : Ballots
        Of experts along the last axis.
    coin : {0, 1} or (...) array of them
        A fair coin for each round, tossed by the caller.

    Returns
    -------
    ReferenceAnswers
        One per round.

    Raises
    ------
    FormulaInputError
        If a coin is neither 0 nor 1, or there is not one per round.

    Examples
    --------
    >>> import numpy as np
    >>> from stream_peer.numerics.references import ballots
    >>> forecasts = np.array([[0.9, 0.4, 0.4], [0.9, 0.1, 0.1]])
    >>> answers_of_all(ballots(forecasts, "majority"), coin=0).answers.tolist()
    [0, 0]
    >>> answers_of_all(ballots(forecasts, "mean"), coin=0).answers.tolist()
    [1, 0]
    """
    return _of_members(ballots, np.ones(1, dtype=np.bool_), coin)


@checked(ballots=BALLOTS, coin=COIN, teams=TEAMS)
def answers_of_others(
    ballots: Ballots, coin: int | SmallIntArray | IntArray, teams: IntArray | None = None
) -> ReferenceAnswers:
    """For each expert the answer of all others, or of all who are not in its team.

    ``ŷ_i = 1 if Σ_{j≠i} b_j > 0 else 0``: the leave-one-out reference under any rule. See `leave_one_out` for why an
    expert is not asked about itself; under rule ``majority`` both give the same answers.

    Parameters
    ----------
    ballots : Ballots
        Of n experts along the last axis. Absent ones get an answer as well.
    coin : {0, 1} or (...) array of them
        A fair coin for each round, tossed by the caller; the same for all experts of the round.
    teams : (n,) int64, optional
        Experts with equal numbers are one team and left out together; negative: in no team.

    Returns
    -------
    ReferenceAnswers
        One per expert.

    Raises
    ------
    FormulaInputError
        If there is not one team number per expert and one coin per round, or a coin is neither 0 nor 1.

    Examples
    --------
    >>> import numpy as np
    >>> from stream_peer.numerics.references import ballots
    >>> answers_of_others(ballots(np.array([0.9, 0.4, 0.4]), "product"), coin=0).answers.tolist()
    [0, 1, 1]
    """
    check_coin(coin, ballots.values.shape[:-1])
    of_others = without_own(np.stack((ballots.values, ballots.leans, ballots.present)), teams)
    return _decided(of_others[0], of_others[1], of_others[2] > 0, np.asarray(coin)[..., np.newaxis])


@checked(ballots=BALLOTS, in_a=_MEMBERS, coins=Each(COIN, 2))
def answers_of_groups(
    ballots: Ballots, in_a: BoolArray, coins: tuple[int | SmallIntArray | IntArray, int | SmallIntArray | IntArray]
) -> GroupAnswers:
    """The answers of the paper's two groups, of which each serves to score the other.

    ``ŷ_A`` is made of the ballots of the experts of A, ``ŷ_B`` of those of all others. The groups may be the same in
    every round, or drawn afresh for each: then both have the same error rate.

    Parameters
    ----------
    ballots : Ballots
        Of n experts along the last axis.
    in_a : (n,) or (..., n) bool
        Who belongs to A.
    coins : two of {0, 1} or (...) arrays of them
        A fair coin for A and another one for B: with a common one, two tied groups would always agree.

    Returns
    -------
    GroupAnswers
        ``given`` is False for a group of which nobody is present.

    Raises
    ------
    FormulaInputError
        If `in_a` does not say of each expert whether it belongs to A, a coin is neither 0 nor 1, or there is not one
        of each per round.

    Examples
    --------
    >>> import numpy as np
    >>> from stream_peer.numerics.references import ballots
    >>> found = answers_of_groups(ballots(np.array([0.9, 0.8, 0.4])), np.array([True, True, False]), coins=(0, 0))
    >>> int(found.a.answers), int(found.b.answers)
    (1, 0)
    """
    n_experts = ballots.values.shape[-1]
    if in_a.shape[-1:] != (n_experts,):
        msg = f"in_a has the shape {in_a.shape}, not (..., {n_experts}): one membership per expert"
        raise FormulaInputError(msg)
    return GroupAnswers(_of_members(ballots, in_a, coins[0]), _of_members(ballots, ~in_a, coins[1]))


def _check_members(groups: GroupAnswers, in_a: BoolArray) -> None:
    """Refuse groups of other rounds."""
    shapes = {np.shape(part) for answers in groups for part in answers}
    try:
        fits = len(shapes) == 1 and np.broadcast_shapes((*shapes.pop(), in_a.shape[-1]), in_a.shape)
    except ValueError:
        fits = False
    if not fits:
        msg = f"in_a has the shape {in_a.shape}, which does not fit the groups' answers"
        raise FormulaInputError(msg)


@checked(_check_members, groups=_GROUPS, in_a=_MEMBERS)
def answers_of_other_group(groups: GroupAnswers, in_a: BoolArray) -> ReferenceAnswers:
    """For each expert the answer of the group to which it does not belong: A's members get ŷ_B, B's get ŷ_A.

    Parameters
    ----------
    groups : GroupAnswers
        As `answers_of_groups` gives them.
    in_a : (n,) or (..., n) bool
        Who belongs to A.

    Returns
    -------
    ReferenceAnswers
        One per expert; ``given`` is False where the other group is empty.

    Examples
    --------
    >>> import numpy as np
    >>> from stream_peer.numerics.references import ballots
    >>> in_a = np.array([True, True, False])
    >>> groups = answers_of_groups(ballots(np.array([0.9, 0.8, 0.4])), in_a, coins=(0, 0))
    >>> answers_of_other_group(groups, in_a).answers.tolist()
    [0, 0, 1]
    """
    pairs = zip(groups.a, groups.b, strict=True)
    return ReferenceAnswers(
        *(np.where(in_a, np.asarray(b)[..., np.newaxis], np.asarray(a)[..., np.newaxis]) for a, b in pairs)
    )


def _of_members(ballots: Ballots, members: BoolArray, coin: int | SmallIntArray | IntArray) -> ReferenceAnswers:
    lead = np.add.reduce(ballots.values * members, axis=-1)
    lean = np.add.reduce(ballots.leans * members, axis=-1)
    given = np.logical_or.reduce(ballots.present & members, axis=-1)
    check_coin(coin, lead.shape)
    return _decided(lead, lean, given, np.asarray(coin))


def _decided(lead: IntArray, lean: IntArray, given: BoolArray, coin: SmallIntArray | IntArray) -> ReferenceAnswers:
    ties = lead == 0
    side = np.where(ties, lean, lead)
    answers = (side > 0) | ((side == 0) & (coin != 0))
    return ReferenceAnswers(np.asarray(answers, dtype=np.int8), np.asarray(ties), np.asarray(given))
