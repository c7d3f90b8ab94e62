"""By how much two experts agree more than what others say of both allows."""

from typing import NamedTuple

import numpy as np

from stream_peer.numerics.dependence.tallies import (
    FEWEST_WITNESSED,
    Float32Array,
    Tallies,
    covariances,
    disagreement,
    independent,
    means,
    tallies,
)
from stream_peer.numerics.losses import BoolArray, FloatArray, IntArray

TIMES_LESS = 0.5
"""Copies disagree on less than this share of what they should."""

LEAST_EFFECT = 0.1
"""And by so much less: .2 in the mean of v_i·v_j."""

_N_BLOCKS = 10
_FEWEST_WITNESSES = 2
_NEARER = 1.5
_NEAR = 0.05


class Suspicion(NamedTuple):
    """What speaks against pairs of experts, each (n_pairs,) float64.

    Attributes
    ----------
    z : by how many standard deviations they disagree less than half as much as they should; -inf if they do not at
        all, or there are no two witnesses
    disagreement : share of common questions on which they do not agree
    expected : what it would be if they knew of each other only through the outcome
    common : questions that both voted on
    """

    z: FloatArray
    disagreement: FloatArray
    expected: FloatArray
    common: FloatArray


class _Counts(NamedTuple):
    """Tallies of the experts of the pairs, first and second, with each witness; of witnesses; and of the pairs."""

    first: Tallies
    second: Tallies
    witnesses: Tallies
    pairs: Tallies


def suspicion(cast: Float32Array, pairs: IntArray, witnesses: IntArray) -> Suspicion:
    """What speaks against pairs of experts.

    Given the outcome independent votes have ``cov(v_i, v_j) = d_i·d_j``, so with witnesses k ≠ l
    ``cov_ij = Σ cov_ik·cov_jl / Σ cov_kl``: nobody's error rate needs to be known, and the outcomes may be as rare and
    the error rates of the two classes as different as they like. From it follows on which share e of their common
    questions they should disagree; on d they do. ``z = (e/2 - d)/√(s² + d(1-d)/n)``, s the jackknife's deviation of
    e/2 - d over 10 blocks of questions.

    Not heard are the two themselves, and who is hardly further from one of them than they are from each other: a third
    copy would say that all is well.

    Parameters
    ----------
    cast : (n_questions, n_experts) float32
        +1, -1, or 0 for no vote.
    pairs : (n_pairs, 2) int64
        Columns.
    witnesses : (n_witnesses,) int64
        Columns, no two of them nearly identical.

    Returns
    -------
    Suspicion

    Notes
    -----
    If experts share more than the outcome with everybody, such as what makes a question difficult, this is part of
    what witnesses say, and is no suspicion.
    """
    total = _count(cast, pairs, witnesses)
    heard = _heard(total, pairs, witnesses)
    expected, found = _expected(total, heard), disagreement(total.pairs)
    z = np.full(len(pairs), -np.inf)
    likely = (TIMES_LESS * expected > found) & (np.count_nonzero(heard, axis=1) >= _FEWEST_WITNESSES)
    if likely.any():
        z[likely] = _deviations(cast, pairs[likely], witnesses, heard[likely])
    return Suspicion(z, found, expected, total.pairs.common)


def _deviations(cast: Float32Array, pairs: IntArray, witnesses: IntArray, heard: BoolArray) -> FloatArray:
    """By how many standard deviations pairs disagree less than half as much as they should."""
    parts = [_count(block, pairs, witnesses) for block in np.array_split(cast, _N_BLOCKS)]
    total = _added(parts)
    found, common = disagreement(total.pairs), np.maximum(total.pairs.common, 1.0)
    without = np.array([_excess(_without(total, part), heard) for part in parts])
    spread = without - np.add.reduce(without, axis=0) / _N_BLOCKS
    variance = (_N_BLOCKS - 1) / _N_BLOCKS * np.add.reduce(spread * spread, axis=0)
    variance += np.maximum(found * (1.0 - found), 1.0 / common) / common
    deviations: FloatArray = _excess(total, heard) / np.sqrt(variance)
    return deviations


def _count(cast: Float32Array, pairs: IntArray, witnesses: IntArray) -> _Counts:
    involved, place = np.unique(pairs, return_inverse=True)
    first, second = place.reshape(-1, 2).T
    with_witnesses = tallies(cast[:, involved], cast[:, witnesses])
    one, two = cast[:, pairs[:, 0]], cast[:, pairs[:, 1]]
    there, others = np.abs(one), np.abs(two)
    sums = (
        np.add.reduce(rows, axis=0, dtype=np.float64) for rows in (one * two, there * others, one * others, there * two)
    )
    return _Counts(
        Tallies(*(table[first] for table in with_witnesses)),
        Tallies(*(table[second] for table in with_witnesses)),
        tallies(cast[:, witnesses], cast[:, witnesses]),
        Tallies(*sums),
    )


def _added(parts: list[_Counts]) -> _Counts:
    kinds = zip(*parts, strict=True)
    return _Counts(*(Tallies(*(np.add.reduce(tables) for tables in zip(*kind, strict=True))) for kind in kinds))


def _without(total: _Counts, part: _Counts) -> _Counts:
    kinds = zip(total, part, strict=True)
    return _Counts(*(Tallies(*(a - b for a, b in zip(whole, block, strict=True))) for whole, block in kinds))


def _heard(total: _Counts, pairs: IntArray, witnesses: IntArray) -> BoolArray:
    """Which witnesses are heard of which pair, (n_pairs, n_witnesses)."""
    own = disagreement(total.pairs) / np.maximum(independent(total.pairs), 1e-9)
    heard: BoolArray = np.ones((len(pairs), len(witnesses)), np.bool_)
    for counted, expert in zip((total.first, total.second), pairs.T, strict=True):
        relative = disagreement(counted) / np.maximum(independent(counted), 1e-9)
        far = relative > _NEARER * own[:, None] + _NEAR
        heard &= (far | (counted.common < FEWEST_WITNESSED)) & (witnesses != expert[:, None])
    return heard


def _expected(counts: _Counts, heard: BoolArray) -> FloatArray:
    """On which share of questions the pairs should disagree; the least of all where witnesses do not tell."""
    first, second = (heard & (counted.common >= FEWEST_WITNESSED) for counted in (counts.first, counts.second))
    among = (counts.witnesses.common >= FEWEST_WITNESSED).astype(np.float64)
    np.fill_diagonal(among, 0.0)
    seen = np.einsum("pk,kl->pl", covariances(counts.first) * first, among) * (covariances(counts.second) * second)
    known = np.einsum("pk,kl->pl", first.astype(np.float64), among * covariances(counts.witnesses)) * second
    above, below = np.add.reduce(seen, axis=1), np.add.reduce(known, axis=1)
    _, left, right = means(counts.pairs)
    most = np.sqrt((1.0 - left * left) * (1.0 - right * right))
    shared = np.where(below > 0.0, above / np.where(below > 0.0, below, 1.0), np.inf)
    expected: FloatArray = independent(counts.pairs) - 0.5 * np.minimum(np.maximum(shared, 0.0), most)
    return expected


def _excess(counts: _Counts, heard: BoolArray) -> FloatArray:
    return TIMES_LESS * _expected(counts, heard) - disagreement(counts.pairs)
