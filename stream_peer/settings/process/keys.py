"""Files that hold keys."""

import codecs
from pathlib import Path

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
