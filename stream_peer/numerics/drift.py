"""Did error rates and experts change? Looked for in the last questions of a feed.

- `scan_for_changes`: the likeliest change of the mean of a series, and how many standard deviations it is; the
  maximally selected two-sample z, for many series at once
- `agreement_change`, `measured_change`: of the agreement that the symmetric rate is read from, and of the share of
  answers found wrong
- `expert_changes`: of each expert's agreement with its own reference answers, beside that of the others

How long the past counts in an error rate is another question: see ``error_rates.forgetting``.

The limits were chosen by simulation: a window of 512 questions that is looked at after every 25 new ones, 2,500
questions in which nothing changes, independent experts who err .05 to .45 of the time. Of 500 such feeds of six experts
2 raised an alarm for the rate and 3 for an expert, of 500 of twelve none and 3. Questions whose votes depend on those
of others (fifty states in one week) raise more.
"""

import math
from typing import NamedTuple

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.arguments import (
    AT_LEAST_0,
    SIZE,
    VOTE_ROWS,
    BoolArray,
    Fields,
    FloatArray,
    IntArray,
    Numbers,
    Optional,
    SmallIntArray,
    checked,
    unchecked,
)
from stream_peer.numerics.error_rates.moments import MOMENT_SUMS, MomentSums

__all__ = [
    "RATE_LIMIT",
    "Changes",
    "Earlier",
    "ExpertChanges",
    "RateChange",
    "agreement_change",
    "expert_changes",
    "expert_limit",
    "measured_change",
    "scan_for_changes",
    "scan_of_sums",
]

FEWEST_IN_PART = 25.0
"""Effective observations that either side of a cut must have: fewer are no new state of things."""

_LEAST_VARIANCE = 1e-12


class Earlier(NamedTuple):
    """Sums over what came before the rows of a scan, of each series.

    Attributes
    ----------
    weight, weight2 : (n_series,) float64
        Σw and Σw².
    total, square : (n_series,) float64
        Σw·x and Σw·x².
    """

    weight: FloatArray
    weight2: FloatArray
    total: FloatArray
    square: FloatArray


class Changes(NamedTuple):
    """The likeliest change of each series.

    Attributes
    ----------
    z : (n_series,) float64
        By how many standard deviations the mean from there on is above the mean before; 0 where no cut has enough
        observations on both sides, and for a series that does not vary.
    cuts : (n_series,) int64
        The first row of the new state.
    """

    z: FloatArray
    cuts: IntArray


_EARLIER = Fields(
    Earlier,
    {
        "weight": Numbers("n", low=0.0),
        "weight2": Numbers("n", low=0.0),
        "total": Numbers("n"),
        "square": Numbers("n", low=0.0),
    },
)


@checked(
    values=Numbers("t n"), weights=Numbers("t n", 0.0, 1.0), spans=Numbers("n", low=0.0), earlier=Optional(_EARLIER)
)
def scan_for_changes(
    values: FloatArray, weights: FloatArray, spans: FloatArray, earlier: Earlier | None = None
) -> Changes:
    """The cut of each series at which the weighted means before and after it differ most, in standard deviations.

    With n = (Σw)²/Σw² effective observations before a cut and m from it on, Δ the difference of the means, s² the
    variance of the whole series, b its span and W the Σw of the side that has less of it:
    ``z = Δ / √(s²·(1/n + 1/m) + b·|Δ|/(3·W))``, at the cut at which |z| is largest, the first of equal ones. Cuts with
    fewer than 25 effective observations on either side are left out.

    Without the last term this is the likelihood ratio test for one change of a normal mean, the maximally selected
    two-sample z of Sen & Srivastava 1975 and Hawkins 1977, with the variance of a series without a change. That term
    is Bernstein's: votes agree or they do not, and three lapses in a row of an expert who nearly always agrees would
    be nine standard deviations. With it each cut has ``P(|z| > c) ≤ 2·exp(-c²/2)`` for independent observations within
    the span, if s² is known, however skewed they are.

    Parameters
    ----------
    values : (n_rows, n_series) float64
        By time, the oldest first.
    weights : (n_rows, n_series) float64
        In [0, 1]; 0: there is no such observation.
    spans : (n_series,) float64
        Largest possible distance of an observation from the mean.
    earlier : Earlier, optional
        What came before the rows: cuts are among the rows, but all of it is before them.

    Returns
    -------
    Changes

    Raises
    ------
    FormulaInputError
        If the shapes do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.array([[1.0, -1.0], [1.0, 1.0]] * 25 + [[0.0, -1.0], [-1.0, 1.0]] * 25)
    >>> found = scan_for_changes(values, np.ones((100, 2)), np.array([2.0, 2.0]))
    >>> found.z.round(2).tolist(), found.cuts.tolist()
    ([-6.88, 0.23], [50, 25])
    """
    weighted = weights * values
    return unchecked(scan_of_sums)(np.stack((weights, weights * weights, weighted, weighted * values)), spans, earlier)


def _check_rows(sums: FloatArray, **_: object) -> None:
    """Refuse negative sums of weights and of squares."""
    if not np.minimum.reduce(sums[[0, 1, 3]], axis=None, initial=0.0) >= 0.0:
        msg = f"sums has {float(sums[[0, 1, 3]].min())!r} among those of weights and squares, must be >= 0"
        raise FormulaInputError(msg)


@checked(_check_rows, sums=Numbers("4 t n"), spans=Numbers("n", low=0.0), earlier=Optional(_EARLIER))
def scan_of_sums(sums: FloatArray, spans: FloatArray, earlier: Earlier | None = None) -> Changes:
    """`scan_for_changes` of rows that stand for several observations each, and are not cut.

    Parameters
    ----------
    sums : (4, n_rows, n_series) float64
        Of each row Σw, Σw², Σw·x and Σw·x².
    spans : (n_series,) float64
        Largest possible distance of an observation from the mean.
    earlier : Earlier, optional
        What came before the rows.

    Returns
    -------
    Changes

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[[10.0]] * 10, [[10.0]] * 10, [[-10.0]] * 5 + [[10.0]] * 5, [[10.0]] * 10])
    >>> scan_of_sums(rows, np.array([2.0]))
    Changes(z=array([7.74596669]), cuts=array([5]))
    """
    _, n_rows, n_series = sums.shape
    if not n_rows:
        return Changes(np.zeros(n_series), np.zeros(n_series, np.int64))
    running = np.zeros((4, n_series, n_rows + 1))  # each series by itself: adding up across many is slow
    if earlier is not None:
        running[..., 0] = earlier
    running[..., 1:] = sums.swapaxes(1, 2)
    np.add.accumulate(running, axis=2, out=running)
    z = _z_at_cuts(running, spans[:, None])
    cuts = np.abs(z).argmax(axis=1)
    return Changes(z[np.arange(n_series), cuts], cuts)


def _z_at_cuts(sums: FloatArray, spans: FloatArray) -> FloatArray:
    """Z of each cut, given sums of weights, their squares, weighted values and squares up to it; the last are all."""
    weight, weight2, total, square = sums[..., -1:]
    some = np.maximum(weight, _LEAST_VARIANCE)
    mean = total / some
    variance = square / some - mean * mean
    first, first2, first_total, _ = sums[..., :-1]
    second, second2, second_total = weight - first, weight2 - first2, total - first_total
    fits = (first * first >= FEWEST_IN_PART * first2) & (first > 0.0)
    fits &= (second * second >= FEWEST_IN_PART * second2) & (second > 0.0) & (variance > _LEAST_VARIANCE)
    first, second = np.where(fits, first, 1.0), np.where(fits, second, 1.0)
    steps = second_total / second - first_total / first
    noise = variance * (first2 / (first * first) + second2 / (second * second))
    noise += spans * np.abs(steps) / (3.0 * np.minimum(first, second))
    z: FloatArray = np.where(fits, steps / np.sqrt(np.where(fits, noise, 1.0)), 0.0)
    return z


RATE_LIMIT = 4.5
"""A change of more standard deviations is no chance, however often one looks: see `agreement_change`."""


_ALIGNED = Numbers("n", -1.0, 1.0)
_WEIGHTS = Numbers("n", 0.0, 1.0)


class RateChange(NamedTuple):
    """The likeliest change of an error rate.

    Attributes
    ----------
    z : float
        Its standard deviations, positive if ``now`` is above ``before``; 0 if nothing can be said.
    before, now : float
        Error rates before it and from then on.
    cut : int
        First question of the new state.
    """

    z: float
    before: float
    now: float
    cut: int


@checked(pair=_ALIGNED, rest=_ALIGNED, weights=_WEIGHTS, earlier=Optional(MOMENT_SUMS), least=AT_LEAST_0)
def agreement_change(
    pair: FloatArray, rest: FloatArray, weights: FloatArray, earlier: MomentSums | None = None, least: float = 0.0
) -> RateChange | None:
    """Scan the two moments that the symmetric error rate is read from, ``pair`` and ``rest``, for a change.

    `scan_for_changes` of each, with the largest distance from their mean as the span; of the two the one whose absolute
    z is larger. If all experts err more, both fall; if there are fewer experts, only ``rest`` does. The rates before
    and after are those of `MomentSums`, each with its 20 pseudo-questions; z has the sign of their difference.

    With everything that came before the window before every cut, a slow drift shows as well, as a window that is
    unlike all the past.

    Notes
    -----
    Not in the paper, whose rates do not change. The distance ``ln rest - ½·ln pair`` of which the rate is made has less
    power: with 12 experts it finds a step of the rate from .10 to .35 half as often.

    Parameters
    ----------
    pair, rest : (n_questions,) float64
        Of a question's mean over its rounds, the oldest first.
    weights : (n_questions,) float64
        In [0, 1]; 0 leaves a question out.
    earlier : MomentSums, optional
        Of all questions before these.
    least : float
        The rates of a change of fewer standard deviations are not asked for.

    Returns
    -------
    RateChange or None
        None if all weights are 0, or the change is less than that.

    Raises
    ------
    FormulaInputError
        If the shapes do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> new = np.repeat([0.0, 1.0], 100)
    >>> wave = np.tile([-0.1, 0.1], 100)
    >>> found = agreement_change(0.3 - 0.2 * new + wave, 0.5 - 0.3 * new - wave, np.ones(200))
    >>> round(found.z, 2), round(found.before, 3), round(found.now, 3), found.cut
    (10.0, 0.071, 0.195, 100)
    """
    if not weights.any():
        return None
    moments = np.stack((pair, rest), axis=1)
    found = unchecked(scan_for_changes)(
        moments, np.stack((weights, weights), axis=1), _spans(moments, weights), _of_moments(earlier)
    )
    larger = int(np.abs(found.z).argmax())
    if abs(found.z[larger]) < least:
        return None
    cut = int(found.cuts[larger])
    before = _sums_of(pair[:cut], rest[:cut], weights[:cut])
    now = _sums_of(pair[cut:], rest[cut:], weights[cut:])
    before = before if earlier is None else earlier.merge(before)
    rate_before, rate_now = (unchecked(MomentSums.estimate)(sums).zero for sums in (before, now))
    return _signed(abs(float(found.z[larger])), rate_before, rate_now, cut)


def _check_earlier(earlier_wrong: float, earlier: float, **_: object) -> None:
    """Refuse more wrong answers than there were."""
    if earlier_wrong > earlier:
        msg = f"earlier_wrong is {earlier_wrong!r}, more than earlier, {earlier!r}"
        raise FormulaInputError(msg)


@checked(_check_earlier, wrong=_WEIGHTS, weights=_WEIGHTS, earlier_wrong=AT_LEAST_0, earlier=AT_LEAST_0)
def measured_change(wrong: FloatArray, weights: FloatArray, earlier_wrong: float, earlier: float) -> RateChange | None:
    """Scan the shares of wrong reference answers of resolved questions for a change.

    `scan_for_changes` with a span of 1. Of earlier questions the mean square of the shares is taken to be their mean,
    the largest possible, and each to weigh 1.

    Parameters
    ----------
    wrong : (n_questions,) float64
        Share of wrong ones among the reference answers to a question, in [0, 1], the oldest first.
    weights : (n_questions,) float64
        In [0, 1]; 0: its outcome is not known.
    earlier_wrong, earlier : float
        Of all resolved questions before these, Σw·wrong and Σw.

    Returns
    -------
    RateChange or None
        None if all weights are 0. Rates are plain shares, before NaN if nothing was before.

    Raises
    ------
    FormulaInputError
        If the shapes do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> wrong = np.concatenate((np.tile([1.0, 0.0, 0.0, 0.0, 0.0], 40), np.tile([1.0, 0.0], 100)))
    >>> found = measured_change(wrong, np.ones(400), earlier_wrong=20.0, earlier=100.0)
    >>> round(found.z, 2), round(found.before, 2), found.now, found.cut
    (6.24, 0.2, 0.5, 200)
    """
    if not weights.any():
        return None
    past = np.array([earlier]), np.array([earlier]), np.array([earlier_wrong]), np.array([earlier_wrong])
    found = unchecked(scan_for_changes)(wrong[:, None], weights[:, None], np.ones(1), Earlier(*past))
    cut = int(found.cuts[0])
    weighted = weights * wrong
    first = earlier + float(np.add.reduce(weights[:cut]))
    first_wrong = earlier_wrong + float(np.add.reduce(weighted[:cut]))
    second, second_wrong = float(np.add.reduce(weights[cut:])), float(np.add.reduce(weighted[cut:]))
    before = first_wrong / first if first > 0.0 else float("nan")
    now = second_wrong / second if second > 0.0 else float("nan")
    return RateChange(float(found.z[0]), before, now, cut)


def _signed(surprise: float, before: float, now: float, cut: int) -> RateChange:
    return RateChange(surprise if now >= before else -surprise, before, now, cut)


def _spans(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Largest distance from the mean, of each series."""
    means = np.add.reduce(weights[:, None] * values, axis=0) / np.add.reduce(weights)
    distances = np.where(weights[:, None] > 0.0, np.abs(values - means), 0.0)
    spans: FloatArray = np.maximum.reduce(distances, axis=0)
    return spans


def _of_moments(sums: MomentSums | None) -> Earlier | None:
    if sums is None:
        return None
    weight, weight2 = np.array([sums.weight] * 2), np.array([sums.weight2] * 2)
    return Earlier(weight, weight2, np.array([sums.pair, sums.rest]), np.array([sums.pair2, sums.rest2]))


def _sums_of(pair: FloatArray, rest: FloatArray, weights: FloatArray) -> MomentSums:
    columns = (weights, weights * weights, weights * pair, weights * rest)
    squares = (weights * pair * pair, weights * rest * rest, weights * pair * rest)
    return MomentSums(*(float(np.add.reduce(column)) for column in (*columns, *squares)))


AT_ONCE = 128
"""Experts that are looked at together: what is needed in between is bounded."""

FEWEST_VOTERS = 3
"""Who agrees with the only other one says as much of that one as of itself: such questions are left out."""

QUESTIONS_A_STEP = 8
"""A change is dated to so many questions: with a cut at each of them a look would cost four times as much."""

_LIMIT_OF_NONE = 15.6
_A_DOUBLING = 1.3863
_SPAN = 2.0
_PSEUDO_AGREED = 10.0
_LARGEST_RATIO = 4.0
_GRID = 2.0**20


class ExpertChanges(NamedTuple):
    """How the agreement of each expert with its own reference answers changed, beside that of the others.

    Attributes
    ----------
    z : (n_experts,) float64
        Standard deviations of the likeliest change, negative if it agrees less from then on; 0 if nothing can be said.
    before, now : (n_experts,) float64
        Share of its answered questions in which it agreed, before that change and from then on; NaN without.
    since : (n_experts,) int64
        Questions that it has answered from then on.
    """

    z: FloatArray
    before: FloatArray
    now: FloatArray
    since: IntArray


@checked(n_experts=SIZE)
def expert_limit(n_experts: int) -> float:
    """How many standard deviations are no chance if so many experts are looked at, however often.

    ``√(15.6 + 2·ln 2·b)``, b the binary digits of N: with twice as many experts there are twice as many chances, and
    tails ``exp(-z²/2)`` half as heavy make up for it, as Bonferroni asks.

    Parameters
    ----------
    n_experts : int
        N ≥ 0.

    Returns
    -------
    float
        At least 3.9.

    Raises
    ------
    FormulaInputError
        If N < 0.

    Examples
    --------
    >>> [round(expert_limit(n), 2) for n in (6, 12, 60, 10_000)]
    [4.45, 4.6, 4.89, 5.92]
    """
    return math.sqrt(_LIMIT_OF_NONE + _A_DOUBLING * n_experts.bit_length())


@checked(votes=VOTE_ROWS, answers=VOTE_ROWS)
def expert_changes(votes: SmallIntArray, answers: SmallIntArray) -> ExpertChanges:
    """Scan each expert's agreement for a change, over the questions of a window that it answered.

    With x = v·R = ±1 of an expert in a question, m the mean of x over the others who voted, and sums over its
    questions, ``ratio = (Σx + 10)/max(Σm + 10, 1)`` within [0, 4] (20 pseudo-questions of agreement ½) and
    ``r = x - ratio·m``; then `scan_for_changes` of r with a span of 2, cuts being at every eighth question, counted
    from the newest.

    If questions get harder for all, x and m shrink alike and r stays what it was: a hard batch accuses nobody, where
    x alone would accuse all the good ones. If one expert changes, its r does; those of N others move by 1/N of that.

    Notes
    -----
    Not in the paper. Agreement with leave-one-out answers is ``(1 - 2·error of the expert)·(1 - 2η)`` in expectation
    if experts err independently; its ratio to the others' does not depend on η. An expert who agrees more often than
    the others has a ratio above 1, and r may then be further than 2 from its mean: Bernstein's term is too small for
    it. No false alarm came of that in simulation (one who errs .02 to .05 of the time among others who err .4 to .45).

    Parameters
    ----------
    votes : (n_questions, n_experts) int8
        +1, -1, or 0 for none; the oldest question first.
    answers : (n_questions, n_experts) int8
        Each expert's own reference answer as +1 or -1; 0: absent.

    Returns
    -------
    ExpertChanges

    Raises
    ------
    FormulaInputError
        If the shapes do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> answers = np.ones((200, 5), np.int8)
    >>> votes = np.where(np.arange(200)[:, None] % np.array([3, 4, 5, 6, 7]) == 0, -1, 1).astype(np.int8)
    >>> votes[120:, 0] = -votes[120:, 0]
    >>> found = expert_changes(votes, answers)
    >>> found.z.round(1).tolist()
    [-4.1, 1.2, 1.4, 1.6, 1.9]
    >>> float(found.before[0].round(2)), float(found.now[0].round(2)), int(found.since[0])
    (0.67, 0.34, 80)
    """
    agreement = votes * answers
    return changes_of(agreement, np.add.reduce(agreement, axis=1, dtype=np.int64), np.count_nonzero(agreement, axis=1))


def _no_changes(n_experts: int) -> ExpertChanges:
    unknown = np.full((2, n_experts), np.nan)
    return ExpertChanges(np.zeros(n_experts), unknown[0], unknown[1], np.zeros(n_experts, np.int64))


def changes_of(
    agreement: SmallIntArray, total: IntArray, voters: IntArray, limits: FloatArray | None = None
) -> ExpertChanges:
    """`expert_changes` by the agreement v·R of some experts, and sum and number of that of all in each question.

    ``limits``: whose ``|z|`` is surely not above its own has z = 0, and nothing else is said of that expert.
    """
    found = _no_changes(agreement.shape[1])
    judged = np.flatnonzero(np.count_nonzero(agreement, axis=0) >= 2 * FEWEST_IN_PART)
    for start in range(0, len(judged), AT_ONCE):
        some = judged[start : start + AT_ONCE]
        of_some = agreement if len(some) == len(found.z) else agreement[:, some]
        changes = _changes(of_some, total, voters, None if limits is None else limits[some])
        for everybody, changed in zip(found, changes, strict=True):
            everybody[some] = changed
    return found


def _changes(agreement: SmallIntArray, total: IntArray, voters: IntArray, limits: FloatArray | None) -> ExpertChanges:
    """Those of some experts, given sum and number of agreements of everybody in each question.

    All sums are exact: their order, hence that of the experts, makes no difference. In a question m has one of two
    values, by whether the expert agrees; so what eight questions add is a product of a few numbers of each question
    with who voted in it and who agrees.
    """
    others = np.maximum(voters - 1, 1)
    if_agrees, if_not = (np.rint((total - own) / others * _GRID) / _GRID for own in (1, -1))
    mean, more = 0.5 * (if_agrees + if_not), 0.5 * (if_agrees - if_not)
    one, none = np.ones(len(total)), np.zeros(len(total))
    of_voters = one, none, mean, more, mean * mean + more * more
    of_agreed = none, one, more, mean, 2.0 * mean * more
    weights = np.stack((of_voters, of_agreed)).transpose(2, 0, 1) * (voters >= FEWEST_VOTERS)[:, None, None]
    marks = np.stack((agreement != 0, agreement), axis=1, dtype=np.float64)
    sums = np.matmul(_steps(weights).swapaxes(1, 2), _steps(marks))
    counts, agreed, around, both, square = sums.swapaxes(0, 1)
    ratios = np.add.reduce(agreed, axis=0) + _PSEUDO_AGREED
    ratios /= np.maximum(np.add.reduce(around, axis=0) + _PSEUDO_AGREED, 1.0)
    ratios = np.minimum(np.maximum(ratios, 0.0), _LARGEST_RATIO)
    squares = counts - 2.0 * ratios * both + ratios * ratios * square
    rows = np.stack((counts, counts, agreed - ratios * around, squares))
    found = _no_changes(len(ratios))
    likely = np.arange(len(ratios)) if limits is None else np.flatnonzero(_may_exceed(rows, limits))
    if not len(likely):  # mostly: a scan takes longer than all else
        return found
    found.z[likely], cuts = unchecked(scan_of_sums)(rows[..., likely], np.full(len(likely), _SPAN))
    is_before, answered, balance = np.arange(len(rows[0]))[:, None] < cuts, counts[:, likely], agreed[:, likely]
    before, right = (np.add.reduce(sums * is_before, axis=0) for sums in (answered, balance))
    since, right_since = (np.add.reduce(sums * ~is_before, axis=0) for sums in (answered, balance))
    found.before[likely], found.now[likely] = _share(right, before), _share(right_since, since)
    found.since[likely] = since
    return found


_NEARLY = 0.99
"""Of what is to be exceeded: rounding must not exclude who exceeds it."""


def _may_exceed(rows: FloatArray, limits: FloatArray) -> BoolArray:
    """Whose z may be above a limit at some cut, given sums for `scan_of_sums` in which each weight is 0 or 1.

    With a and b observations on its sides, n of all, and S the sum before it less a times the mean, the means differ by
    S·n/(ab). So z² is at most S²·n/(ab·s²): it is that without the part of the noise that comes of the span.
    """
    counts, _, totals, squares = rows
    n, total, square = (np.add.reduce(of_rows, axis=0) for of_rows in (counts, totals, squares))
    mean = total / np.maximum(n, 1.0)
    variance = square / np.maximum(n, 1.0) - mean * mean
    first, moved = np.add.accumulate(np.stack((counts, totals - mean * counts)), axis=1)
    second = n - first
    may: BoolArray = moved * moved * n > _NEARLY * limits * limits * np.maximum(variance, 0.0) * first * second
    may &= np.minimum(first, second) >= FEWEST_IN_PART
    found: BoolArray = np.logical_or.reduce(may, axis=0)
    return found


def _steps(values: FloatArray) -> FloatArray:
    """What is said of each question, by steps of eight: (n_steps, 8·k, n). The oldest step has what is left."""
    missing = -len(values) % QUESTIONS_A_STEP
    whole = np.concatenate((np.zeros((missing, *values.shape[1:])), values)) if missing else values
    return whole.reshape(len(whole) // QUESTIONS_A_STEP, -1, values.shape[2])


def _share(balance: FloatArray, answered: FloatArray) -> FloatArray:
    """Share of agreements, NaN where nothing was answered."""
    shares = np.full(len(answered), np.nan)
    np.divide(0.5 * (answered + balance), answered, out=shares, where=answered > 0.0)
    return shares
