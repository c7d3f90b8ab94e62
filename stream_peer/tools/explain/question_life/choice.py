"""Which question to explain, if none was named: that with the most revisions."""

from collections import Counter

import msgspec

from stream_peer.events import topics
from stream_peer.log.stage import Output


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
