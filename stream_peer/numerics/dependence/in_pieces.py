"""What takes long, in pieces: a generator that gives way between them, and in the end returns what all of them give."""

from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Pieces: TypeAlias = Generator[None, None, T]


def done_at_once(pieces: Pieces[T]) -> T:
    """Do all pieces one after the other.

    Examples
    --------
    >>> def doubled(numbers):
    ...     for place, number in enumerate(numbers):
    ...         numbers[place] = 2 * number
    ...         yield
    ...     return numbers
    >>> done_at_once(doubled([1, 2]))
    [2, 4]
    """
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            result: T = end.value
            return result
