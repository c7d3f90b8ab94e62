"""A worker as the former release was: today's code with the forms of its state, and without what is new in records."""

from typing import Any

import msgspec

from stream_peer.cli import main
from stream_peer.feeds import stage as feed
from stream_peer.feeds import store as feed_store
from stream_peer.kafka.worker import ownership, recreated
from stream_peer.log import changelog as state_log
from stream_peer.log.stage import Snapshot

FORMER_FEED_SCHEMA = feed_store.SCHEMA - 1


class FormerHead(msgspec.Struct, frozen=True):
    """A head from before it said which topic it speaks of."""

    schema: int
    claim: str
    applied: int
    value: bytes


def former_head_row(writer: Any, snapshot: Snapshot, applied: int) -> state_log.ChangelogRow:
    """As ``Writer.head_row`` was."""
    head = FormerHead(state_log.SCHEMA, writer._token, applied, snapshot.head)
    return state_log.ChangelogRow(writer._prefix + b"head", msgspec.msgpack.encode(head))


def topics_are_not_told_apart(_topic_id: str) -> int:
    """Every topic was the first under its name."""
    return 0


def pretend() -> None:
    """Become the former release."""
    for module in (feed, feed_store):
        module.SCHEMA = FORMER_FEED_SCHEMA  # type: ignore[attr-defined]  # whatever imports it has its own
    state_log.Writer.head_row = former_head_row  # type: ignore[method-assign,assignment]  # as it was
    for module in (ownership, recreated):
        module.topic_generation = topics_are_not_told_apart  # type: ignore[attr-defined]  # as it was


if __name__ == "__main__":
    pretend()
    main()
