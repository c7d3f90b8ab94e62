"""Secrets: texts that are never shown, and the files that signing keys are read from."""

import codecs
from pathlib import Path


class Secret:
    """A text that shows itself as ``***`` wherever it is printed, logged or encoded.

    Examples
    --------
    >>> Secret("hunter2"), f"{Secret('hunter2')}", Secret("hunter2").reveal()
    (***, '***', 'hunter2')
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself, for the one call that needs it."""
        return self._text

    def __repr__(self) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other.reveal() == self._text

    def __hash__(self) -> int:
        return hash((Secret, self._text))


MIN_KEY_BYTES = 16
"""Of a line: a shorter one can be guessed."""


def read_keys(file: Path, advice: str) -> tuple[bytes, ...]:
    """The keys of a file, one a line; blanks around them and empty lines do not count.

    Raises
    ------
    ValueError
        If it cannot be read, holds no key, or one that is too short; with ``advice``, and without any key.
    """
    try:
        content = file.read_bytes().removeprefix(codecs.BOM_UTF8)  # which some editors write unasked
    except OSError as error:
        raise ValueError(error.strerror) from None
    keys = tuple(key for line in content.splitlines() if (key := line.strip()))
    if not keys:
        msg = f"is empty: {advice}"
        raise ValueError(msg)
    short = next((number for number, key in enumerate(keys, 1) if len(key) < MIN_KEY_BYTES), None)
    if short is not None:
        msg = f"key {short} has less than {MIN_KEY_BYTES} bytes: {advice}"
        raise ValueError(msg)
    return keys
