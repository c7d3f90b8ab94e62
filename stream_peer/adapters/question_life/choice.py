"""Which question to explain: that with the most revisions, or one whose name is like that which was asked for."""

import difflib
from collections import Counter
from collections.abc import Iterable

import msgspec

from stream_peer.engine.stage import Output
from stream_peer.events import topics

_NEAR = 3


class _Named(msgspec.Struct):
    question: str
    revision: int


_decode_named = msgspec.json.Decoder(_Named).decode


class RevisionCounter:
    """Counts how often each question was published again."""

    def __init__(self) -> None:
        self.revisions: Counter[str] = Counter()

    def write(self, output: Output) -> None:
        """Take up an output."""
        if output.topic == topics.REFERENCE_ANSWERS and output.value is not None:
            self.revisions[_decode_named(output.value).question] += 1

    def ranked(self) -> list[str]:
        """The questions that were published, those with the most revisions first."""
        return sorted(self.revisions, key=lambda name: (-self.revisions[name], name))


def near(question_id: str, known: Iterable[str]) -> list[str]:
    """Ids that somebody who wrote ``question_id`` may have meant, the nearest first.

    Examples
    --------
    >>> near("fed-cut", ["fed-cut-june", "cpi-may", "fed-cut-july"])
    ['fed-cut-july', 'fed-cut-june']
    """
    names = sorted(set(known))
    wanted = question_id.lower()
    beginning = [name for name in names if wanted and name.lower().startswith(wanted)]
    containing = [name for name in names if wanted and wanted in name.lower()]
    close = difflib.get_close_matches(question_id, names, n=_NEAR)
    return list(dict.fromkeys([*beginning, *close, *containing]))[:_NEAR]
