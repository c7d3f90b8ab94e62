"""Text of others as a person may see it: control characters are spelt out; and names that a misspelt one may mean."""

import difflib
import re
from collections.abc import Iterable

_CLASS = (
    r"\x00-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u2028-\u202e"
    r"\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"
)
"""Control and format characters, those that turn the direction of text among them; line ends; lone surrogates."""

_ANY = re.compile(f"[{_CLASS}]")
_IN_LINES = re.compile(f"(?![\n\t])[{_CLASS}]")


def spelt(text: str) -> str:
    r"""A name or a sentence on one line, whatever it holds.

    An escape sequence, a line end or a mark that turns text round is written as JSON writes it, ``\u001b``: it does
    nothing, everybody sees it, and JSON means what it meant before.

    Examples
    --------
    >>> print(spelt("ann\x1b[2J\nbob \u202etxt.exe"))
    ann\u001b[2J\u000abob \u202etxt.exe
    """
    return _ANY.sub(_escape, text)


def spelt_lines(text: str) -> str:
    """Text of several lines, whose line ends and tabs are ours."""
    return _IN_LINES.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


_NEAR = 3
_MOST_PAIRS = 4_000_000  # of characters to be compared: a worker, too, is asked, and has half a second for it


def near_names(name: str, known: Iterable[str]) -> list[str]:
    """Those of the known names that somebody who wrote ``name`` may have meant, the nearest first.

    Of too many and too long ones only those are found that begin with ``name`` or hold it.

    Examples
    --------
    >>> near_names("fed-cut", ["fed-cut-june", "cpi-may", "fed-cut-july"])
    ['fed-cut-july', 'fed-cut-june']
    """
    known_names = sorted(set(known))
    wanted = name.lower()
    beginning = [one for one in known_names if wanted and one.lower().startswith(wanted)]
    containing = [one for one in known_names if wanted and wanted in one.lower()]
    pairs = len(name) * sum(map(len, known_names))
    close = difflib.get_close_matches(name, known_names, n=_NEAR) if pairs <= _MOST_PAIRS else []
    return list(dict.fromkeys([*beginning, *close, *containing]))[:_NEAR]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a sentence that refuses a name: which of the known ones may be meant; empty if none is near.

    Examples
    --------
    >>> did_you_mean("hdge", ["hedge", "ada-hedge", "five"])
    '; did you mean hedge or ada-hedge?'
    >>> did_you_mean("", ["hedge"])
    ''
    """
    meant = near_names(name, known) if name else []
    return f"; did you mean {' or '.join(meant)}?" if meant else ""
