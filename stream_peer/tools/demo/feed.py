"""The demo's events, their settings, and the pace at which they are sent."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from stream_peer.events.incoming import Tick
from stream_peer.events.partitioning import partition_of
from stream_peer.events.times import NEVER, Milliseconds, to_iso
from stream_peer.tools.replay.file_events import file_event, last_event_time
from stream_peer.tools.replay.files import FileLine, read_lines

FEED = "digits-even"
MALFORMED = 3
RANDOM_EXPERT = "random"
DATA = Path(__file__).parent / "data" / "digits_even.jsonl.gz"

SETTINGS: dict[str, Any] = {
    "feeds": {FEED: {"history": True, "round_every": "45m", "grace": "60s", "publish_every": "200ms"}}
}
"""Events of last year, sent in a minute: their own times count. Questions are open for 90 minutes: two rounds each."""

GRACE: Milliseconds = 60_000
_QUESTION_ID = re.compile(rb'"question_id":"([^"]{1,256})"')


class FeedEvent(NamedTuple):
    """One message for ``forecast-events``; a malformed one is sent as it is."""

    key: bytes | None
    value: bytes

    def partition(self, partitions: int) -> int:
        """Where Kafka's default partitioner would send it."""
        return partition_of(self.key, partitions) if self.key else 0


def read_events() -> list[FeedEvent]:
    """The demo's messages, in the order of their arrival; keyed by question."""
    return [FeedEvent(_key(line.payload), line.payload) for line in read_lines(DATA)]


def _key(line: bytes) -> bytes | None:
    """The question's id, found without decoding: malformed messages have a key as well."""
    found = _QUESTION_ID.search(line)
    return found.group(1) if found else None


def closing_tick(events: Sequence[FeedEvent]) -> bytes:
    """The event that ends a feed of the past, one for each partition: every deadline up to its last moment is due."""
    last = last_event_time([file_event(FileLine(FEED, event.value)) for event in events], NEVER)
    now = to_iso(last + GRACE + 1000)
    return msgspec.json.encode({"type": Tick.__struct_config__.tag, "now": now})


def paced(events: Sequence[FeedEvent], seconds: float, clock: Callable[[], float]) -> Iterator[Sequence[FeedEvent]]:
    """Slices of the events, each those that are due by the clock since the last one, over ``seconds`` in all.

    A slice may be empty: the caller waits a moment and asks again. Someone who asks late gets more at once.
    """
    start, sent = clock(), 0
    while sent < len(events):
        share = (clock() - start) / seconds if seconds > 0 else 1.0
        due = min(len(events), int(share * len(events)))
        yield events[sent:due]
        sent = due
