"""Names of questions, feeds, experts and settings that somebody may have meant."""

import difflib
from collections.abc import Iterable

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
