"""Records that a partition of ``forecast-events`` needs to continue from a state that cannot be trusted.

A state from before signatures was folded from headers that anybody could write: a forged source hides records that come
later, controls among them. Markers carry what stands on ``control-events``, and the last of them says that signatures
count from its place on.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from stream_peer.errors import RejectedEvent
from stream_peer.events import topics
from stream_peer.events.feed_log import Source
from stream_peer.events.incoming import (
    Deleted,
    Erased,
    ExpertControl,
    FeedControl,
    Renamed,
    SettingsControl,
    SettingsStanding,
    SignaturesFromHere,
    decode,
)
from stream_peer.events.times import Milliseconds
from stream_peer.events.topics import MAX_RECORD_BYTES
from stream_peer.log.signatures import Signatures
from stream_peer.log.sources import MARKERS
from stream_peer.log.stage import Output, Record
from stream_peer.questions.control_stage import SETTINGS_KEY, check_control, check_settings

_encode = msgspec.json.Encoder().encode


T = TypeVar("T", Deleted, Erased, Renamed)


class RepairTarget(NamedTuple):
    """A partition of ``forecast-events``: which, of which generation of the topic, and the offset of its end.

    The end numbers markers: it is higher whenever a partition is repaired again, so a copy of a marker is a repeat.
    """

    partition: int
    generation: int
    end: int


class Controls:
    """The content of ``control-events``: settings applied last, renamed and erased experts, deleted feeds.

    ``reached``: of each partition, the last offset that was read; ``renamed``: in their order; ``experts``: of each
    feed, the ids that a control names, each with the first id of its expert.
    """

    def __init__(self) -> None:
        self.settings: SettingsStanding | None = None
        self.renamed: list[Renamed] = []
        self.experts: dict[str, dict[str, str]] = {}
        self._erased: dict[Erased, None] = {}
        self._deleted: dict[str, Milliseconds] = {}
        self.reached: dict[int, int] = {}

    def add(self, partition: int, record: Record) -> None:
        """Add the next record of a partition. Events that the control stage refuses are ignored here as well."""
        self.reached[partition] = record.offset
        try:
            event = decode(record.value)
            if isinstance(event, SettingsControl):
                check_settings(event)
                self._note_settings(partition, event, record.timestamp)
            elif isinstance(event, ExpertControl | FeedControl):
                check_control(event)
                self._note(event, record.timestamp)
        except RejectedEvent:
            return

    def _note_settings(self, partition: int, event: SettingsControl, at: Milliseconds) -> None:
        if self.settings is None or at >= self.settings.at:
            self.settings = SettingsStanding(document=event.document, hash=event.hash, at=at, partition=partition)

    def _note(self, event: ExpertControl | FeedControl, at: Milliseconds) -> None:
        if isinstance(event, FeedControl):
            if event.delete:
                self._deleted[event.feed] = max(at, self._deleted.get(event.feed, 0))
                self.renamed = [one for one in self.renamed if one.feed != event.feed]
                self.experts.pop(event.feed, None)
            return
        firsts = self.experts.setdefault(event.feed, {})
        first = firsts.setdefault(event.expert_id, event.expert_id)
        if event.rename is not None:
            firsts.setdefault(event.rename, first)
            self.renamed.append(Renamed(feed=event.feed, expert_id=event.expert_id, rename=event.rename))
        elif event.forget:
            self._erased[Erased(feed=event.feed, expert_id=event.expert_id)] = None

    def __str__(self) -> str:
        settings = "no settings" if self.settings is None else f"settings {self.settings.hash}"
        experts = f"renamed experts: {len(self.renamed)}, forgotten experts: {len(self._erased)}"
        return f"{settings}, {experts}, deleted feeds: {len(self._deleted)}"

    def markers(self, place: RepairTarget, generation: int, signatures: Signatures, now: Milliseconds) -> list[Output]:
        """Signed markers for a partition, in their order; ``generation``: of ``control-events``.

        The one that has signatures count comes last: what a command that was interrupted has written only adds.

        Raises
        ------
        RejectedEvent
            If the settings are too large for a marker.
        """
        reached = sorted(self.reached.items())
        marks = [Source(topics.CONTROL_EVENTS, p, generation, offset, place.partition) for p, offset in reached]
        events = [*self._pieces(), SignaturesFromHere(marks=marks, settings=self.settings)]
        return [self._marker(event, index, place, signatures, now) for index, event in enumerate(events)]

    def _pieces(self) -> Iterator[SignaturesFromHere]:
        """Deleted feeds come first: that drops their names. Erased experts come last: all their names are erased."""
        for deleted in _packed([Deleted(feed=feed, at=at) for feed, at in self._deleted.items()]):
            yield SignaturesFromHere(deleted=deleted)
        for renamed in _packed(self.renamed):
            yield SignaturesFromHere(renamed=renamed)
        for erased in _packed(list(self._erased)):
            yield SignaturesFromHere(erased=erased)

    @staticmethod
    def _marker(
        event: SignaturesFromHere, index: int, place: RepairTarget, signatures: Signatures, now: Milliseconds
    ) -> Output:
        value = _encode(event)
        decode(value)  # raises if the stage would refuse it
        source = Source(MARKERS, 0, place.generation, place.end, index)
        return signatures.signed(Output(topics.FORECAST_EVENTS, SETTINGS_KEY, value, now, place.partition), source)


def _packed(pieces: Sequence[T]) -> Iterator[list[T]]:
    """Pieces in lists of which none is too large for a marker."""
    packed, size = list[T](), 0
    for piece in pieces:
        size += len(_encode(piece)) + 1
        if packed and size > MAX_RECORD_BYTES:
            yield packed
            packed, size = [], len(_encode(piece)) + 1
        packed.append(piece)
    if packed:
        yield packed
