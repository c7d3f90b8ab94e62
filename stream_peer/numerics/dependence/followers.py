"""Experts who say what the crowd says: their forecasts are nearer to it than those of anybody who thinks for himself.

Votes cannot tell: who always says what the crowd says looks like an expert who is hardly ever wrong. Forecasts can.
Given the question, whatever makes it easy or difficult, the mean of the others scatters by what each of them errs for
himself. An expert who does not look at it cannot come nearer to it than that.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.arguments import FORECAST_ROW, BoolArray, FloatArray, IntArray, Numbers, checked
from stream_peer.numerics.dependence.suspicion import FEWEST_COMMON, Float32Array

__all__ = ["CrowdDistances", "crowd_distances", "find_followers", "find_repeaters"]

FOLLOWS = 0.25
"""A follower's mean square distance is at most this share of the scatter: half the distance."""

GOES_ON = 0.5
"""And at most this one, if it was one before."""

FEWEST_PRESENT = 4
"""So many experts make a crowd."""

_NEARER_THAN_USUAL = 0.25

REPEATS = 0.1
"""Who repeats what was published comes nearer to it, in the mean square, than this share of the usual distance."""

GOES_ON_REPEATING = 0.25
"""And than this one, if it did before."""


class CrowdDistances(NamedTuple):
    """How far each expert of a round is from the crowd.

    Attributes
    ----------
    apart : (n,) float64
        By how much each is above the mean of the others.
    near : (n,) float64
        Square of that, or of the distance from something that the crowd had said before, whichever is less.
    scatter : float
        Variance of the mean of the others, if all differences are errors; 0: no crowd, or one that is of one mind.
    """

    apart: FloatArray
    near: FloatArray
    scatter: float


@checked(forecasts=FORECAST_ROW, said_before=Numbers("k", 0.0, 1.0))
def crowd_distances(forecasts: FloatArray, said_before: Sequence[float] = ()) -> CrowdDistances:
    """Distances of a round's experts from the crowd.

    ``apart = p_i - m_i`` with m_i the mean of the others, ``scatter = s²/(n - 1)`` with s² the sample variance of all.

    Parameters
    ----------
    forecasts : (n,) float64
        In [0, 1].
    said_before : sequence of float
        What was published of the crowd's opinion before this round, such as the mixed forecast of the one before it.

    Returns
    -------
    CrowdDistances
        Zeros with fewer than four experts.

    Examples
    --------
    >>> found = crowd_distances(np.array([0.2, 0.4, 0.6, 0.8, 0.5]), [0.61])
    >>> found.apart.round(4).tolist(), found.near.round(4).tolist(), round(found.scatter, 4)
    ([-0.375, -0.125, 0.125, 0.375, 0.0], [0.1406, 0.0156, 0.0001, 0.0361, 0.0], 0.0125)
    """
    n = len(forecasts)
    if n < FEWEST_PRESENT:
        return CrowdDistances(np.zeros(n), np.zeros(n), 0.0)
    total = np.add.reduce(forecasts)
    apart = forecasts - (total - forecasts) / (n - 1)
    near = np.square(apart)
    for said in said_before:
        near = np.minimum(near, np.square(forecasts - said))
    from_mean = forecasts - total / n
    return CrowdDistances(apart, near, float(np.add.reduce(from_mean * from_mean)) / (n - 1) ** 2)


def _check_known(present: BoolArray, known: IntArray | Sequence[int] = (), **_: object) -> None:
    """Refuse columns of nobody."""
    if len(known) and max(known) >= present.shape[1]:
        msg = f"known has {int(max(known))}, there are {present.shape[1]} experts"
        raise FormulaInputError(msg)


@checked(
    _check_known,
    near=Numbers("t n", 0.0, 1.0),
    apart=Numbers("t n", -1.0, 1.0),
    scatter=Numbers("t", 0.0, 1.0),
    present=Numbers("t n", kind=np.bool_),
    known=Numbers("k", low=0, high=2**53, kind=np.int64),
)
def find_followers(
    near: FloatArray | Float32Array,
    apart: FloatArray | Float32Array,
    scatter: FloatArray,
    present: BoolArray,
    known: Sequence[int] = (),
) -> IntArray:
    """Experts who follow the crowd.

    With n ≥ 40 questions, ``Σ near <= ¼·Σ scatter``: half the distance at which an expert would be who always knew the
    crowd's opinion but for the others' own errors. Of the scatter only that counts by which each differs from question
    to question, ``Σ_j var(apart_j)/n²`` at most: who is always above the mean by as much is no scatter. And the mean of
    apart² is at most a quarter of the median expert's: an expert whom the mix follows is near to what was said before,
    but not to the others.

    Parameters
    ----------
    near, apart : (n_questions, n_experts) float
        As of `crowd_distances`; 0 where nobody was.
    scatter : (n_questions,) float64
    present : (n_questions, n_experts) bool
        Who was there.
    known : sequence of int
        Columns of those who were found before: for them the limit is twice as large.

    Returns
    -------
    (n_followers,) int64
        Their columns, ascending.

    Raises
    ------
    FormulaInputError
        If the arrays do not fit.

    Notes
    -----
    Not in the paper. An expert who makes no errors of its own and shares all of the others' is let be; one that copies
    only the side of the crowd's opinion, or mixes it with half of its own, is missed.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> crowd = rng.random((50, 6))
    >>> rounds = [crowd_distances(np.append(row, row.mean())) for row in crowd]
    >>> near, apart = (np.array([getattr(found, name) for found in rounds]) for name in ("near", "apart"))
    >>> find_followers(near, apart, np.array([found.scatter for found in rounds]), np.ones((50, 7), bool)).tolist()
    [6]
    """
    questions = np.einsum("t,te->e", (scatter > 0.0).astype(np.float64), present)
    usual = questions >= FEWEST_COMMON
    if not usual.any():
        return np.zeros(0, np.int64)
    counted = np.maximum(questions, 1.0)
    offset = np.add.reduce(apart, axis=0, dtype=np.float64) / counted
    went = np.einsum("te,te->e", apart, apart, dtype=np.float64) / counted
    own = np.einsum("e,te->t", np.maximum(went - offset * offset, 0.0), present)
    heads = np.maximum(np.count_nonzero(present, axis=1), 1)
    allowed = np.einsum("t,te->e", np.minimum(scatter, own / (heads * heads)), present)
    came = np.add.reduce(near, axis=0, dtype=np.float64)
    share = np.full(present.shape[1], FOLLOWS)
    share[list(known)] = GOES_ON
    ordered = np.sort(went[usual])
    median = ordered[len(ordered) // 2]
    return np.flatnonzero(usual & (came <= share * allowed) & (went <= _NEARER_THAN_USUAL * median))


@checked(
    _check_known,
    repeated=Numbers("t n", 0.0, 1.0),
    present=Numbers("t n", kind=np.bool_),
    usual=Numbers(low=0.0, high=1.0),
    known=Numbers("k", low=0, high=2**53, kind=np.int64),
)
def find_repeaters(
    repeated: FloatArray | Float32Array, present: BoolArray, usual: float, known: Sequence[int] = ()
) -> IntArray:
    """Experts whose first forecasts say what was published of the question before, however long before.

    With n ≥ 40 questions to which the expert came late, ``Σ repeated <= n·usual/10``. None of what was published then
    was made of its own forecasts: so one whom the mix follows does not repeat it.

    Parameters
    ----------
    repeated : (n_questions, n_experts) float
        Square of the distance between an expert's first forecast and the nearest figure that had been published.
    present : (n_questions, n_experts) bool
        Where there was one.
    usual : float
        Mean square distance of the median expert from the others.
    known : sequence of int
        Columns of those who were found before: for them the limit is a quarter.

    Returns
    -------
    (n_repeaters,) int64
        Their columns, ascending.

    Raises
    ------
    FormulaInputError
        If the arrays do not fit.

    Notes
    -----
    Not in the paper. Who mixes half of what was published with half of its own is missed, and so is one that says
    something else first.

    Examples
    --------
    >>> repeated = np.tile([[0.0001, 0.05]], (40, 1))
    >>> find_repeaters(repeated, np.ones((40, 2), bool), 0.04).tolist()
    [0]
    """
    questions = np.count_nonzero(present, axis=0)
    share = np.full(present.shape[1], REPEATS)
    share[list(known)] = GOES_ON_REPEATING
    came = np.einsum("te,te->e", repeated, present, dtype=np.float64)
    return np.flatnonzero((questions >= FEWEST_COMMON) & (came <= share * usual * questions) & (usual > 0.0))
