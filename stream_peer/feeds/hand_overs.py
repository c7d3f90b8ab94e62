"""Which feed publishes a question that moved: one at a time, so that the last record of its key is the newest.

Nothing orders two partitions of the feed-log. So a feed that a question leaves hands it over, with a record in the log
of the feed that it goes to, and publishes nothing of it any more. The new feed learns from its rounds at once, and
publishes them once it has been handed over. Moves of a question are numbered from 1.

A hand-over is written only when the durable state covers the move: a restart repeats outputs that the durable state
does not cover, and none of them may come behind those of the new feed. What waits for that is part of the state.

A feed writes its blocks of experts who say the same to its log in the same way.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from stream_peer.events import topics
from stream_peer.events.feed_log import (
    BlockNamed,
    HandedOver,
    NamedBlock,
    QuestionArrived,
    QuestionMoved,
    Source,
    encode_feed_log,
)
from stream_peer.events.groups import group_id_of
from stream_peer.events.times import NEVER, Milliseconds
from stream_peer.feeds.deletions import LONGEST_WAIT
from stream_peer.log.pieces import cut, join_chunks
from stream_peer.log.stage import Output

MOST = 100_000
"""Questions that moved which a partition keeps at most. Of more, those that moved longest ago are dropped."""

Place = tuple[str, str]
"""A feed and a question."""


class Holding(msgspec.Struct, array_like=True):
    """Where a question stands with a feed, in numbers of moves; 0: none.

    ``came``: the last by which it came; ``handed``: the last that was handed over to the feed; ``left``: the last by
    which it left. ``since``: the last news. ``leaving``: moves that this feed has not handed over: where to, and by
    which move the question had come, which must be handed over to this feed before. ``is_gone``: the feed was deleted
    since it came.
    """

    came: int = 0
    handed: int = 0
    left: int = 0
    since: Milliseconds = 0
    leaving: dict[int, tuple[str, int]] = {}
    is_gone: bool = False

    @property
    def waits(self) -> bool:
        """Whether the feed that it came from has not handed it over."""
        return self.handed < self.came

    @property
    def has_left(self) -> bool:
        """Whether it is in another feed."""
        return self.left > 0 and self.left >= self.came

    @property
    def publishes(self) -> bool:
        """Whether the feed publishes it."""
        return not (self.waits or self.has_left)


class _Kept(msgspec.Struct, array_like=True):
    """A record of a feed that is to be written: a hand-over, or its blocks."""

    record: HandedOver | BlockNamed
    at: Milliseconds


_encode = msgspec.msgpack.Encoder().encode
_decode_holding = msgspec.msgpack.Decoder(Holding).decode
_decode_kept = msgspec.msgpack.Decoder(_Kept).decode


class HandOvers:
    """The questions of a partition of the feed-log that moved, and the records of its feeds that are to be written.

    Parameters
    ----------
    partition : int
    """

    def __init__(self, partition: int) -> None:
        self._partition = partition
        self._holdings: dict[Place, Holding] = {}
        self._waiting: dict[Place, Milliseconds] = {}
        self._earliest: Milliseconds = NEVER  # nothing has waited for longer
        self._kept: dict[tuple[int, int], _Kept] = {}
        self._groups: set[Place] = set()
        self._last = (-1, 0)
        self._touched: set[Place] = set()
        self._changed: set[tuple[int, int]] = set()
        self._changed_groups: set[Place] = set()

    def publishes(self, feed: str, question_id: str) -> bool:
        """Whether the feed publishes the question; it does unless that has moved."""
        holding = self._holdings.get((feed, question_id)) if self._holdings else None
        return holding is None or holding.publishes

    def elsewhere(self, feed: str) -> set[str]:
        """Questions of the feed that it does not publish."""
        return {place[1] for place, holding in self._holdings.items() if place[0] == feed and not holding.publishes}

    def publishes_all(self, feed: str, group: str, parts: Iterable[str]) -> bool:
        """Whether the feed publishes a group that has changed: only if it publishes all its parts.

        If it waits for some of them, it is noted that the group is to be published then.
        """
        blocked = [part for part in parts if not self.publishes(feed, part)]
        self._note_group((feed, group), waits=bool(blocked) and not any(self.has_left(feed, part) for part in blocked))
        return not blocked

    def awaited_group(self, feed: str, part: str) -> str | None:
        """The group of a part, if it has changed while the feed waited for some of its parts."""
        group = group_id_of(part) if self._groups else None
        return group if group is not None and (feed, group) in self._groups else None

    def _note_group(self, place: Place, *, waits: bool) -> None:
        if waits != (place in self._groups):
            self._groups.symmetric_difference_update((place,))
            self._changed_groups.add(place)

    def has_left(self, feed: str, question_id: str) -> bool:
        """Whether a question has left the feed, and has not come back."""
        holding = self._holdings.get((feed, question_id))
        return holding is not None and holding.has_left

    def have_left(self, feed: str, questions: Iterable[str]) -> bool:
        """Whether all of these questions have left the feed, and no other one has come to it."""
        if not all(self.has_left(feed, question_id) for question_id in questions):
            return False
        return all(holding.has_left for place, holding in self._holdings.items() if place[0] == feed)

    def delete(self, feed: str) -> None:
        """The feed was deleted, and its questions with it: what is handed over to it from here on has no feed."""
        for place, holding in self._holdings.items():
            if place[0] == feed and not holding.is_gone:
                holding.is_gone = True
                self._touched.add(place)
        for place in sorted(self._groups):
            if place[0] == feed:
                self._note_group(place, waits=False)

    def is_gone(self, feed: str, question_id: str) -> bool:
        """Whether a question that moved came to the feed before this was deleted."""
        holding = self._holdings.get((feed, question_id))
        return holding is not None and holding.is_gone

    def has_round(self, feed: str, question_id: str, at: Milliseconds) -> None:
        """A feed has a round of a question. If that left it and has not come back, the feed that had it was deleted.

        So it is a new question, and its moves are numbered from 1 again.
        """
        if self._holdings and self.has_left(feed, question_id):
            self._holding(feed, question_id, at)[1].left = 0

    def arrive(self, event: QuestionArrived, at: Milliseconds, *, is_gone: bool = False) -> bool:
        """A question came to a feed; ``is_gone``: to its former life. Returns whether it is published from here on."""
        place, holding = self._holding(event.feed, event.question_id, at)
        if event.move <= holding.left:
            holding.left = 0
        holding.came, holding.is_gone = event.move, is_gone
        if holding.waits:
            self._wait(place, at)
        return holding.publishes

    def leave(self, event: QuestionMoved, revision: int, at: Milliseconds) -> None:
        """A question leaves a feed, which hands it over once it was handed over itself."""
        place, holding = self._holding(event.feed, event.question_id, at)
        holding.left = event.move
        self._note_group((event.feed, group_id_of(event.question_id) or ""), waits=False)
        holding.leaving[event.move] = event.to, holding.came
        self._hand_on(place, holding, revision, at)

    def take_over(self, event: HandedOver, revision: int, at: Milliseconds) -> bool:
        """A question was handed over to a feed. Returns whether the feed publishes it from here on."""
        place, holding = self._holding(event.feed, event.question_id, at)
        was_published, holding.handed = holding.publishes, max(holding.handed, event.move)
        self._hand_on(place, holding, revision, at)
        return holding.publishes and not was_published

    def is_overdue(self, at: Milliseconds) -> bool:
        """Whether a question may have waited for too long."""
        return at >= self._earliest + LONGEST_WAIT

    def overdue(self, revision: int, at: Milliseconds) -> Iterator[Place]:
        """Questions that no feed has handed over for too long, which their feeds publish from here on."""
        if not self.is_overdue(at):
            return
        for place, since in sorted(self._waiting.items()):
            if at >= since + LONGEST_WAIT:
                holding = self._holdings[place]
                holding.handed = holding.came
                self._touched.add(place)
                self._hand_on(place, holding, revision, at)
                if holding.publishes:
                    yield place
        self._earliest = min(self._waiting.values(), default=NEVER)

    def name_blocks(
        self, feed: str, questions: int, blocks: Sequence[NamedBlock], revision: int, at: Milliseconds
    ) -> None:
        """A feed has found experts who say the same."""
        self._keep(BlockNamed(src=self._source(revision), feed=feed, questions=questions, blocks=list(blocks)), at)

    def due(self) -> list[Output]:
        """The records to write once the durable state covers them."""
        return [
            Output(topics.FEED_LOG, kept.record.feed.encode(), encode_feed_log(kept.record), kept.at)
            for _, kept in sorted(self._kept.items())
        ]

    def written(self) -> None:
        """What was due is in the log."""
        self._changed.update(self._kept)
        self._kept.clear()

    def _holding(self, feed: str, question_id: str, at: Milliseconds) -> tuple[Place, Holding]:
        place = feed, question_id
        holding = self._holdings.get(place)
        if holding is None:
            if len(self._holdings) >= MOST:
                self._drop_oldest()
            holding = self._holdings[place] = Holding()
        holding.since = at
        self._touched.add(place)
        return place, holding

    def _drop_oldest(self) -> None:
        """Some at once, since it takes a look at all of them."""
        oldest = sorted((holding.since, place) for place, holding in self._holdings.items())
        for _, place in oldest[: MOST // 100]:
            del self._holdings[place]
            self._waiting.pop(place, None)
            self._touched.add(place)

    def _hand_on(self, place: Place, holding: Holding, revision: int, at: Milliseconds) -> None:
        if not holding.waits:
            self._waiting.pop(place, None)
        for move, (to, came) in sorted(holding.leaving.items()):
            if came <= holding.handed:
                del holding.leaving[move]
                source = self._source(revision)
                self._keep(HandedOver(src=source, feed=to, question_id=place[1], move=move), at)

    def _source(self, revision: int) -> Source:
        """Of the next record that the record of a revision causes."""
        number = self._last = (revision, self._last[1] + 1 if self._last[0] == revision else 0)
        # Revisions go on to grow when the topic is recreated, as offsets do not.
        return Source(topics.FEED_LOG, self._partition, 0, *number)

    def _keep(self, record: HandedOver | BlockNamed, at: Milliseconds) -> None:
        number = record.src.position
        self._kept[number] = _Kept(record, at)
        self._changed.add(number)

    def _wait(self, place: Place, since: Milliseconds) -> None:
        self._waiting[place] = since
        self._earliest = min(self._earliest, since)

    def snapshot(self) -> dict[bytes, bytes | None]:
        """State records changed since the last call."""
        rows: dict[bytes, bytes | None] = {}
        for place in sorted(self._touched):
            holding = self._holdings.get(place)
            name = "/".join(place).encode()
            rows.update({b"h/" + name: None} if holding is None else cut(b"h", name, _encode(holding)))
        for number in sorted(self._changed):
            kept, name = self._kept.get(number), b"%d/%d" % number
            rows.update({b"o/" + name: None} if kept is None else cut(b"o", name, _encode(kept)))
        for place in sorted(self._changed_groups):
            name = "/".join(place).encode()
            rows.update(cut(b"g", name, b"") if place in self._groups else {b"g/" + name: None})
        self._touched.clear()
        self._changed.clear()
        self._changed_groups.clear()
        return rows

    def load(self, entries: Mapping[bytes, bytes]) -> None:
        """Take up what an earlier owner left."""
        for name, (data, _) in join_chunks(b"h", entries).items():
            place = _place(name)
            holding = self._holdings[place] = _decode_holding(data)
            if holding.waits:
                self._wait(place, holding.since)
        self._groups = {_place(name) for name in join_chunks(b"g", entries)}
        for data, _ in join_chunks(b"o", entries).values():
            kept = _decode_kept(data)
            self._kept[kept.record.src.position] = kept


def _place(name: bytes) -> Place:
    feed, _, question_id = name.decode().partition("/")
    return feed, question_id
