"""Folding feeds anew from the start of their log, when they cannot be corrected in place.

Whatever a refold gives is what the log up to there gives if its newest meaning had been in force from the start and the
forgotten had never been there. So it may be interrupted and begun again.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stream_peer.engine.facts import unpack
from stream_peer.engine.feed_state import Feed
from stream_peer.engine.ledger import Entry
from stream_peer.engine.question_outputs import question_outputs
from stream_peer.engine.stage import Effects, Output, Record

if TYPE_CHECKING:
    from stream_peer.engine.feed import FeedStage


class FeedRefold:
    """A refold under way; see ``Refolding``.

    Parameters
    ----------
    stage : FeedStage
        Whose state it replaces.
    shadow : FeedStage
        Empty; folds the log.
    up_to : int
        The last offset to fold.
    """

    def __init__(self, stage: "FeedStage", shadow: "FeedStage", up_to: int) -> None:
        self.up_to = up_to
        self._stage, self._shadow = stage, shadow

    def step(self, record: Record) -> None:
        """Fold one record."""
        if record.offset <= self.up_to:
            self._shadow.step(record, Effects())

    def finish(self) -> None:
        """Replace the state."""
        self._stage.take_up(self._shadow)


def said_without(before: Feed, after: Feed) -> Iterator[Output]:
    """What is to be said anew because an expert is not there any more."""
    for question_id in questions_without(before, after):
        entry = after.entries.get(question_id, Entry())
        yield from question_outputs(after, question_id, entry, entry.latest())


def questions_without(before: Feed, after: Feed) -> Iterator[str]:
    """Questions in whose rounds an expert stood that is not there any more."""
    gone = {place for place, expert in enumerate(before.experts) if after.roster.is_forgotten(expert)}
    if gone:
        for question_id, entry in before.entries.items():
            if any(not gone.isdisjoint(unpack(packed).experts.tolist()) for packed in entry.rounds):
                yield question_id
