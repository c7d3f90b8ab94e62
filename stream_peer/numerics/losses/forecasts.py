"""Arrays of numbers, and the checks that forecasts and answers get."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from stream_peer.errors import ForecastRangeError, FormulaInputError

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
SmallIntArray: TypeAlias = npt.NDArray[np.int8]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
BitArray: TypeAlias = npt.NDArray[np.uint8]

Answers: TypeAlias = float | FloatArray | IntArray | SmallIntArray | BitArray
"""An answer for all forecasts or one for each: 0, 1, or, if it is soft, anything between."""


def check_probabilities(forecasts: FloatArray) -> None:
    """Refuse forecasts that are no probabilities.

    Parameters
    ----------
    forecasts : (..., n) float64
        May be empty.

    Raises
    ------
    ForecastRangeError
        If a forecast is NaN or outside [0, 1]. The message holds the first such value and its place, counted
        through the leading axes.

    Examples
    --------
    >>> import numpy as np
    >>> check_probabilities(np.array([0.0, 0.3, 1.0]))
    >>> check_probabilities(np.array([0.5, 55.0]))
    Traceback (most recent call last):
    ...
    stream_peer.errors.ForecastRangeError: forecast 1 is 55.0, not within 0..1
    """
    if _within_0_and_1(forecasts):
        return
    place, value = _first_outside(forecasts)
    msg = f"forecast {place} is {value!r}, not within 0..1"
    raise ForecastRangeError(msg)


def check_answers(answers: Answers) -> None:
    """Refuse answers outside [0, 1].

    Parameters
    ----------
    answers : float or array
        Outcomes or reference answers: 0, 1, or between if they are soft. An array may be empty.

    Raises
    ------
    FormulaInputError
        If an answer is NaN or outside [0, 1]. The message holds the first such value and its place.

    Examples
    --------
    >>> import numpy as np
    >>> check_answers(np.array([0, 1, 1]))
    >>> check_answers(-1)
    Traceback (most recent call last):
    ...
    stream_peer.errors.FormulaInputError: answer 0 is -1.0, not within 0..1
    """
    if isinstance(answers, float | int):
        if 0 <= answers <= 1:
            return
    elif _within_0_and_1(answers):
        return
    place, value = _first_outside(np.asarray(answers, dtype=np.float64))
    msg = f"answer {place} is {value!r}, not within 0..1"
    raise FormulaInputError(msg)


def _within_0_and_1(values: FloatArray | IntArray | SmallIntArray | BitArray) -> bool:
    if values.size == 0:
        return True
    return bool(np.minimum.reduce(values, None) >= 0 and np.maximum.reduce(values, None) <= 1)


def _first_outside(values: FloatArray) -> tuple[int, float]:
    flat = np.ravel(values)
    first = int(np.argmin((flat >= 0.0) & (flat <= 1.0)))
    return first, float(flat[first])
