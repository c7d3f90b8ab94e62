"""Folding feeds anew from the start of their log, when they cannot be corrected in place.

Whatever a refold gives is what the log up to there gives if its newest meaning had been in force from the start and the
forgotten had never been there. So it may be interrupted and begun again. Scored forecasts alone stay as they were
published, and so does how they did.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stream_peer.feeds.facts import unpack
from stream_peer.feeds.feed import Feed
from stream_peer.feeds.ledger import Entry
from stream_peer.feeds.output_records import feed_outputs
from stream_peer.feeds.question_outputs import question_outputs
from stream_peer.feeds.views import feed_view, list_experts
from stream_peer.log.stage import Effects, Output, Record

if TYPE_CHECKING:
    from stream_peer.feeds.stage import FeedStage

_IN_ONE_RECORD = 200
"""Experts, however long their ids, of whom no output is large enough to be split."""


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
        entry, former = after.entries.get(question_id, Entry()), before.entries[question_id]
        latest = former.latest()
        outputs = question_outputs(after, question_id, entry, entry.latest())
        yield from outputs
        if latest is not None and len(latest.experts) > _IN_ONE_RECORD:
            yield from _tombstones(question_outputs(before, question_id, former, latest), outputs)
    if len(before.experts) > _IN_ONE_RECORD:
        yield from _tombstones(_of_feed(before), _of_feed(after))


def _of_feed(feed: Feed) -> list[Output]:
    return feed_outputs(feed, feed_view(feed, list_experts(feed)))


def _tombstones(before: list[Output], after: list[Output]) -> Iterator[Output]:
    """Of keys that are not written any more since there are fewer parts: else their last record stays for ever."""
    written = {(output.topic, output.key) for output in after}
    for output in before:
        if (output.topic, output.key) not in written:
            yield Output(output.topic, output.key, None, after[0].timestamp)


def questions_without(before: Feed, after: Feed) -> Iterator[str]:
    """Questions in whose rounds an expert stood that is not there any more."""
    gone = {place for place, expert in enumerate(before.experts) if after.roster.is_forgotten(expert)}
    if gone:
        for question_id, entry in before.entries.items():
            said = (*entry.rounds, *filter(None, (entry.first_final,)))
            if any(not gone.isdisjoint(unpack(packed).experts.tolist()) for packed in said):
                yield question_id
