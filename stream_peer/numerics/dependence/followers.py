"""Experts who say what the crowd says: their forecasts are nearer to it than those of anybody who thinks for himself.

Votes cannot tell: who always says what the crowd says looks like an expert who is hardly ever wrong. Forecasts can.
Given the question, whatever makes it easy or difficult, the mean of the others scatters by what each of them errs for
himself. An expert who does not look at it cannot come nearer to it than that.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.arguments import (
    FORECAST_ROW,
    BoolArray,
    Each,
    Fields,
    FloatArray,
    IntArray,
    Numbers,
    checked,
)
from stream_peer.numerics.dependence.suspicion import FEWEST_COMMON, Float32Array

__all__ = ["CrowdDistances", "CrowdSums", "crowd_distances", "crowd_sums", "find_followers", "find_repeaters"]

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
    """How far experts are from the crowds of their rounds.

    Attributes
    ----------
    apart : (n,) float64
        By how much each is above the mean of the others.
    near : (n,) float64
        Square of that, or of the distance from something that the crowd had said before, whichever is less.
    scatter : (n_rounds,) float64
        Variance of the mean of the others, if all differences are errors; 0: no crowd, or one that is of one mind.
    """

    apart: FloatArray
    near: FloatArray
    scatter: FloatArray


def _check_sizes(forecasts: FloatArray, sizes: IntArray, said_before: Sequence[Sequence[float]] = ()) -> None:
    """Refuse rounds that are not all of the forecasts."""
    if int(np.add.reduce(sizes)) != len(forecasts) or len(said_before) not in (0, len(sizes)):
        msg = f"sizes are of {int(np.add.reduce(sizes))} forecasts in {len(sizes)} rounds, there are {len(forecasts)}"
        raise FormulaInputError(msg)


@checked(
    _check_sizes,
    forecasts=FORECAST_ROW,
    sizes=Numbers("m", low=1, high=2**53, kind=np.int64),
    said_before=Each(Numbers("k", 0.0, 1.0)),
)
def crowd_distances(
    forecasts: FloatArray, sizes: IntArray, said_before: Sequence[Sequence[float]] = ()
) -> CrowdDistances:
    """Distances of the experts of rounds from the crowd.

    In a round ``apart = p_i - m_i`` with m_i the mean of the others, ``scatter = s²/(n - 1)`` with s² the sample
    variance of all.

    Parameters
    ----------
    forecasts : (n,) float64
        In [0, 1], of one round behind the other.
    sizes : (n_rounds,) int64
        Forecasts of each round.
    said_before : sequence of sequence of float
        Of each round, what was published of the crowd's opinion before it, such as the mixed forecast of the one
        before; nothing of any if left out.

    Returns
    -------
    CrowdDistances
        Zeros of rounds with fewer than four experts.

    Examples
    --------
    >>> found = crowd_distances(np.array([0.2, 0.4, 0.6, 0.8, 0.5, 0.9]), np.array([5, 1]), [[0.61], []])
    >>> found.apart.round(4).tolist(), found.near.round(4).tolist(), found.scatter.round(4).tolist()
    ([-0.375, -0.125, 0.125, 0.375, 0.0, 0.0], [0.1406, 0.0156, 0.0001, 0.0361, 0.0, 0.0], [0.0125, 0.0])
    """
    ends = np.add.accumulate(sizes)
    starts, others = ends - sizes, np.maximum(sizes - 1, 1)
    is_crowd = sizes >= FEWEST_PRESENT
    totals = np.add.reduceat(forecasts, starts)
    total, mean, n_others, counts = np.repeat(np.stack((totals, totals / sizes, others, is_crowd)), sizes, axis=1)
    apart = (forecasts - (total - forecasts) / n_others) * counts
    near, from_mean = apart * apart, forecasts - mean
    for start, end, said_first in zip(starts.tolist(), ends.tolist(), said_before, strict=False):
        for said in said_first if end - start >= FEWEST_PRESENT else ():
            near[start:end] = np.minimum(near[start:end], np.square(forecasts[start:end] - said))
    return CrowdDistances(apart, near, np.add.reduceat(from_mean * from_mean, starts) * is_crowd / (others * others))


class CrowdSums(NamedTuple):
    """Of each expert, over the questions in which it stood: whole numbers of a unit, so that they add up exactly.

    Attributes
    ----------
    present : (n,) float64
        How many there are.
    in_crowd : (n,) float64
        Those with a scatter.
    apart, square, near, scatter : (n,) float64
        Sums of `CrowdDistances`; ``square``: of the squares of apart.
    late : (n,) float64
        Questions of which something had been published before its first forecast.
    repeated : (n,) float64
        Sum of the squares of the distance of that forecast from the nearest such figure.
    """

    present: FloatArray
    in_crowd: FloatArray
    apart: FloatArray
    square: FloatArray
    near: FloatArray
    scatter: FloatArray
    late: FloatArray
    repeated: FloatArray


_COARSE, _FINE = 2.0**20, 2.0**40  # parts of one that are counted; fine ones are squares of coarse ones


@checked(
    near=Numbers("t n", 0.0, 1.0),
    apart=Numbers("t n", -1.0, 1.0),
    scatter=Numbers("t", 0.0, 1.0),
    present=Numbers("t n", kind=np.bool_),
    repeated=Numbers("t n", -1.0, 1.0),
)
def crowd_sums(
    near: FloatArray | Float32Array,
    apart: FloatArray | Float32Array,
    scatter: FloatArray,
    present: BoolArray,
    repeated: FloatArray | Float32Array,
) -> CrowdSums:
    """Sums over questions of how far experts were from the crowd.

    Parameters
    ----------
    near, apart : (n_questions, n_experts) float
        As of `crowd_distances`; 0 where nobody was.
    scatter : (n_questions,) float64
    present : (n_questions, n_experts) bool
        Who was there.
    repeated : (n_questions, n_experts) float
        Square of the distance of an expert's first forecast from the nearest figure that had been published; -1 where
        there was none.

    Returns
    -------
    CrowdSums

    Raises
    ------
    FormulaInputError
        If the arrays do not fit.

    Examples
    --------
    >>> rows = np.array([[0.25, 0.5]]), np.array([[0.5, -0.5]]), np.array([0.125]), np.ones((1, 2), bool)
    >>> found = crowd_sums(*rows, np.array([[-1.0, 0.25]]))
    >>> found.square.tolist(), found.late.tolist(), found.repeated.tolist()
    ([0.25, 0.25], [0.0, 1.0], [0.0, 0.25])
    """
    weights = np.stack((np.ones(len(scatter)), scatter > 0.0, np.rint(scatter * _FINE)))
    counts, in_crowd, scatters = np.einsum("kt,te->ke", weights, present)
    went = np.rint(np.multiply(apart, _COARSE, dtype=np.float64))
    came = np.rint(np.multiply(near, _FINE, dtype=np.float64))
    first = np.rint(np.multiply(repeated, _FINE, dtype=np.float64))
    return CrowdSums(
        counts,
        in_crowd,
        np.add.reduce(went, axis=0) / _COARSE,
        np.add.reduce(went * went, axis=0) / _FINE,
        np.add.reduce(came, axis=0) / _FINE,
        scatters / _FINE,
        np.add.reduce(first >= 0.0, axis=0, dtype=np.float64),
        np.add.reduce(np.maximum(first, 0.0), axis=0) / _FINE,
    )


def _check_known(sums: CrowdSums, known: IntArray | Sequence[int] = (), **_: object) -> None:
    """Refuse columns of nobody."""
    if len(known) and max(known) >= len(sums.present):
        msg = f"known has {int(max(known))}, there are {len(sums.present)} experts"
        raise FormulaInputError(msg)


_COUNT = Numbers("n", low=0.0, high=1e9)
_SUMS = Fields(CrowdSums, dict.fromkeys(CrowdSums._fields, _COUNT) | {"apart": Numbers("n", -1e9, 1e9)})


@checked(
    _check_known,
    sums=_SUMS,
    scatter=Numbers("t", 0.0, 1.0),
    present=Numbers("t n", kind=np.bool_),
    known=Numbers("k", low=0, high=2**53, kind=np.int64),
)
def find_followers(sums: CrowdSums, scatter: FloatArray, present: BoolArray, known: Sequence[int] = ()) -> IntArray:
    """Experts who follow the crowd.

    With n ≥ 40 questions, ``Σ near <= ¼·Σ scatter``: half the distance at which an expert would be who always knew the
    crowd's opinion but for the others' own errors. Of the scatter only that counts by which each differs from question
    to question, ``Σ_j var(apart_j)/n²`` at most: who is always above the mean by as much is no scatter. And the mean of
    apart² is at most a quarter of the median expert's: an expert whom the mix follows is near to what was said before,
    but not to the others.

    Parameters
    ----------
    sums : CrowdSums
        Over all questions.
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
    >>> rounds = [crowd_distances(np.append(row, row.mean()), np.array([7])) for row in crowd]
    >>> near, apart = (np.array([getattr(found, name) for found in rounds]) for name in ("near", "apart"))
    >>> scatter, present = np.concatenate([found.scatter for found in rounds]), np.ones((50, 7), bool)
    >>> find_followers(crowd_sums(near, apart, scatter, present, np.zeros((50, 7))), scatter, present).tolist()
    [6]
    """
    usual = sums.in_crowd >= FEWEST_COMMON
    if not usual.any():
        return np.zeros(0, np.int64)
    counted = np.maximum(sums.in_crowd, 1.0)
    offset, went = sums.apart / counted, sums.square / counted
    share = np.full(len(went), FOLLOWS)
    share[list(known)] = GOES_ON
    ordered = np.sort(went[usual])
    median = ordered[len(ordered) // 2]
    likely = np.flatnonzero(usual & (went <= _NEARER_THAN_USUAL * median) & (sums.near <= share * sums.scatter))
    if not len(likely):  # nearly always
        return likely
    own = np.einsum("e,te->t", np.maximum(went - offset * offset, 0.0), present)
    heads = np.maximum(np.count_nonzero(present, axis=1), 1)
    allowed = np.einsum("t,te->e", np.minimum(scatter, own / (heads * heads)), present[:, likely])
    found: IntArray = likely[sums.near[likely] <= share[likely] * allowed]
    return found


@checked(
    _check_known,
    sums=_SUMS,
    usual=Numbers(low=0.0, high=1.0),
    known=Numbers("k", low=0, high=2**53, kind=np.int64),
)
def find_repeaters(sums: CrowdSums, usual: float, known: Sequence[int] = ()) -> IntArray:
    """Experts whose first forecasts say what was published of the question before, however long before.

    With n ≥ 40 questions to which the expert came late, ``Σ repeated <= n·usual/10``. None of what was published then
    was made of its own forecasts: so one whom the mix follows does not repeat it.

    Parameters
    ----------
    sums : CrowdSums
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
    >>> rows, none = np.tile([[0.0001, 0.05]], (40, 1)), np.zeros((40, 2))
    >>> find_repeaters(crowd_sums(none, none, np.zeros(40), np.ones((40, 2), bool), rows), 0.04).tolist()
    [0]
    """
    share = np.full(len(sums.late), REPEATS)
    share[list(known)] = GOES_ON_REPEATING
    return np.flatnonzero((sums.late >= FEWEST_COMMON) & (sums.repeated <= share * usual * sums.late) & (usual > 0.0))
