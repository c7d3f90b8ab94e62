"""Ids that a person would take for the same: they differ only in blanks, case, or letters that look alike."""

import unicodedata

_CYRILLIC = "\u0430\u0435\u043e\u0440\u0441\u0445\u0443\u0456\u0458\u0455\u0501\u04bb"
_GREEK = "\u03b1\u03bf\u03c1\u03bd\u03b9\u03ba\u03c5\u03c7"
_LATIN = str.maketrans(f"{_CYRILLIC}{_GREEK}01|", "aeopcxyijsdhaopvikuxoll")
"""Letters of the Cyrillic and the Greek alphabet that look like Latin ones, and digits that look like letters."""


def skeleton(text: str) -> str:
    """What is left of an id without what the eye passes over: equal for ids that look alike.

    Examples
    --------
    >>> skeleton("ECMWF ") == skeleton("ecmwf"), skeleton("m\u043edel-10") == skeleton("model-lo")
    (True, True)
    >>> skeleton("model-2") == skeleton("model-3")
    False
    """
    plain = unicodedata.normalize("NFKC", text).casefold().translate(_LATIN)
    return "".join(letter for letter in plain if not letter.isspace() and unicodedata.category(letter)[0] != "C")
