"""Rounds that came in parts, until the last part is there."""

from collections.abc import Mapping

import msgspec

from stream_peer.errors import RejectedEvent
from stream_peer.events.feed_log import Round
from stream_peer.events.rejections import Reason
from stream_peer.log.pieces import cut, join_chunks, removed

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Round).decode


class Assembly:
    """Puts the parts of rounds together. Parts of a question come in order; a first part drops those before it."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str], Round] = {}
        self._stored: dict[tuple[str, str], int] = {}
        self._touched: set[tuple[str, str]] = set()

    def add(self, event: Round) -> Round | None:
        """The whole round, or None while parts are missing.

        Raises
        ------
        RejectedEvent
            If the part before this one is missing.
        """
        place = event.feed, event.question_id
        before = self._waiting.pop(place, None)
        if before is not None or event.parts > 1:
            self._touched.add(place)
        if event.part:
            event = _extended(before, event)
        if event.part + 1 >= event.parts:
            return event
        self._waiting[place] = event
        return None

    def put(self, event: Round) -> None:
        """Load the parts of a round that have arrived."""
        place = event.feed, event.question_id
        self._waiting[place] = event
        self._touched.add(place)

    def discard(self, feed: str, expert: str) -> None:
        """Keep nothing of an expert in what waits of a feed's rounds."""
        for place, event in self._waiting.items():
            if place[0] == feed and expert in event.experts:
                rows = zip(event.experts, event.probabilities, strict=True)
                left = {other: probability for other, probability in rows if other != expert}
                self._waiting[place] = msgspec.structs.replace(
                    event, experts=list(left), probabilities=list(left.values())
                )
                self._touched.add(place)

    def snapshot(self) -> dict[bytes, bytes | None]:
        """State records changed since the last call."""
        rows: dict[bytes, bytes | None] = {}
        for place in sorted(self._touched):
            name, before = "/".join(place).encode(), self._stored.pop(place, 0)
            if place in self._waiting:
                records = cut(b"p", name, _encode(self._waiting[place]), before)
                self._stored[place] = sum(value is not None for value in records.values())
                rows.update(records)
            else:
                rows.update(removed(b"p", name, before))
        self._touched.clear()
        return rows

    def load(self, entries: Mapping[bytes, bytes]) -> None:
        """Load the state of an earlier owner."""
        for data, pieces in join_chunks(b"p", entries).values():
            event = _decode(data)
            place = event.feed, event.question_id
            self._waiting[place] = event
            self._stored[place] = pieces


def _extended(before: Round | None, event: Round) -> Round:
    """The parts so far with one more."""
    if before is None or (before.boundary, before.part + 1) != (event.boundary, event.part):
        message = f"part {event.part} of {event.parts} of a round, without the one before it"
        raise RejectedEvent(Reason.WRONG_TYPE, field="part", message=message)
    return msgspec.structs.replace(
        event,
        experts=[*before.experts, *event.experts],
        probabilities=[*before.probabilities, *event.probabilities],
    )
