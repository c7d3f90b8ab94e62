"""Rates that change: sums that forget, so that a rate is that of the last M questions or so.

Sums are kept as they are in buckets of questions and multiplied only when they are read (`bucket_factors`), so that
corrections stay exact. That agrees with sums multiplied by 1 - 1/M at every question: then the effective number of
questions, (Σw)²/Σw², tends to 2M - 1.
"""

import math

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.arguments import FloatArray, IntArray, Numbers, checked, unchecked

__all__ = ["bucket_factors", "bucket_size", "forgetting_factor"]

BUCKETS_IN_MEMORY = 8
"""Into how many buckets the questions of one memory are divided."""

MEMORIES_READ = 5
"""Buckets older than so many memories are left out: e^-5 of their weight would be left."""

_LATEST = 2**31
_MEMORY = Numbers(low=1, high=_LATEST, kind=np.int64)


@checked(memory=Numbers(low=1.0, high=math.inf))
def forgetting_factor(memory: float) -> float:
    """What a question's weight is multiplied by at each later question: ``1 - 1/M``.

    Parameters
    ----------
    memory : float
        M ≥ 1, in questions; infinite to forget nothing.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    FormulaInputError
        If M < 1 or NaN.

    Examples
    --------
    >>> forgetting_factor(1000), forgetting_factor(float("inf"))
    (0.999, 1.0)
    """
    return 1.0 - 1.0 / memory


@checked(memory=_MEMORY)
def bucket_size(memory: int) -> int:
    """Questions in a bucket: ``⌈M/8⌉``.

    Parameters
    ----------
    memory : int
        M ≥ 1, in questions.

    Returns
    -------
    int
        At least 1.

    Raises
    ------
    FormulaInputError
        If M < 1.

    Examples
    --------
    >>> bucket_size(1000), bucket_size(3)
    (125, 1)
    """
    return -(-memory // BUCKETS_IN_MEMORY)


@checked(
    buckets=Numbers("n", low=-_LATEST, high=_LATEST, kind=np.int64),
    newest=Numbers(low=-_LATEST, high=_LATEST, kind=np.int64),
    memory=_MEMORY,
)
def bucket_factors(buckets: IntArray, newest: int, memory: int) -> FloatArray:
    """What the sums of each bucket are multiplied by when they are read.

    ``(1 - 1/M)^age`` with age = (newest - bucket)·⌈M/8⌉ questions, and 0 where the age is above 5·M. Sums of squared
    weights take the square of it.

    Parameters
    ----------
    buckets : (n,) int64
        Numbers of buckets: a question's ordinal divided by `bucket_size`, rounded down.
    newest : int
        The newest bucket's number, at least as large as all others.
    memory : int
        M ≥ 1, in questions.

    Returns
    -------
    (n,) float64
        In [0, 1]; 1 for the newest.

    Raises
    ------
    FormulaInputError
        If M < 1 or a bucket is newer than the newest.

    Examples
    --------
    >>> import numpy as np
    >>> bucket_factors(np.array([0, 40, 47, 48]), newest=48, memory=1000).round(4)
    array([0.    , 0.3677, 0.8824, 1.    ])
    """
    ages = (newest - buckets) * unchecked(bucket_size)(memory)
    if ages.size and int(ages.min()) < 0:
        msg = f"bucket {int(buckets.max())} is newer than the newest, {newest}"
        raise FormulaInputError(msg)
    read = ages <= MEMORIES_READ * memory
    factors: FloatArray = np.where(read, unchecked(forgetting_factor)(memory) ** np.where(read, ages, 0), 0.0)
    return factors
