"""Names of questions, feeds and experts that somebody may have meant."""

import difflib
from collections.abc import Iterable

_NEAR = 3


def near(name: str, known: Iterable[str]) -> list[str]:
    """Those of the known names that somebody who wrote ``name`` may have meant, the nearest first.

    Examples
    --------
    >>> near("fed-cut", ["fed-cut-june", "cpi-may", "fed-cut-july"])
    ['fed-cut-july', 'fed-cut-june']
    """
    known_names = sorted(set(known))
    wanted = name.lower()
    beginning = [one for one in known_names if wanted and one.lower().startswith(wanted)]
    containing = [one for one in known_names if wanted and wanted in one.lower()]
    close = difflib.get_close_matches(name, known_names, n=_NEAR)
    return list(dict.fromkeys([*beginning, *close, *containing]))[:_NEAR]
