"""The newest ``weights`` and ``error-rates`` of every feed, kept as the bytes that were published.

What was published is decoded when somebody asks for it, and the last few that were asked for stay decoded: a worker
keeps the records of all feeds, and hardly ever is it asked for more than a few of them.
"""

import re
from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple, Self

import msgspec

from stream_peer.events.outputs import Certificate, ErrorRates, ErrorRateSummary, TrustState, Weights, joined_parts

MOST_BYTES = 256_000_000
"""Of records that are kept; beyond it those of the feeds that changed longest ago are evicted."""
_DECODED = 4  # of 10,000 experts, 4 MB each
_WHOLE = -1
_PART_KEY = re.compile(r"([^/]+)/([0-9]{1,9})")


class _Place(msgspec.Struct, frozen=True):
    """What says where a record belongs."""

    feed: str
    revision: int
    part: int = 0
    parts: int = 1


class FeedHead(msgspec.Struct, frozen=True, kw_only=True):
    """What ``weights`` say of a feed, but for its experts."""

    feed: str
    revision: int
    at: str
    settings: str
    status: TrustState
    status_reasons: list[str]
    questions: float
    resolved: float
    error_rate: ErrorRateSummary
    certificate: Certificate | None
    part: int = 0
    parts: int = 1


class _Kept(NamedTuple):
    revision: int
    parts: tuple[bytes, ...]


_place_of = msgspec.json.Decoder(_Place).decode
_head_of = msgspec.json.Decoder(FeedHead).decode
_weights_of = msgspec.json.Decoder(Weights).decode
_rates_of = msgspec.json.Decoder(ErrorRates).decode


class TombstoneKey(NamedTuple):
    """Which record a tombstone ends: the whole one of a feed, or the part of that number of one in parts.

    The keys of a feed lie in several partitions, which are read in any order: a tombstone of a former feed may come
    after the records of a new one of its name. It never ends those, if only records under its own key are ended.
    """

    feed: str
    part: int

    @classmethod
    def of(cls, key: bytes) -> Self:
        """Of a record's key: ``feed``, or ``feed/part``. Any other key is a feed's that does not exist."""
        text = key.decode(errors="replace")
        found = _PART_KEY.fullmatch(text)
        return cls(text, _WHOLE) if found is None else cls(found[1], int(found[2]))

    def ends(self, parts: int) -> bool:
        """Whether it ends a record that came in so many parts."""
        return parts == 1 if self.part == _WHOLE else 1 < parts > self.part


class FeedRecords:
    """Folds both topics. Of each feed the record of the highest revision is kept, once all of its parts are there.

    Parameters
    ----------
    most_bytes : int
        That may be kept.

    Attributes
    ----------
    evicted : set of str
        Feeds whose records are not kept, since there are too many; they are listed all the same.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.evicted: set[str] = set()
        self._most = most_bytes
        self._bytes = 0
        self._heads: dict[str, FeedHead] = {}
        self._weights: OrderedDict[str, _Kept] = OrderedDict()
        self._rates: dict[str, _Kept] = {}
        self._waiting: dict[str, dict[int, bytes]] = {}
        self._waiting_for: dict[str, int] = {}
        self._decoded: OrderedDict[tuple[str, int], Weights] = OrderedDict()
        self._sorted: list[str] | None = []

    # --- folding ---

    def add_weights(self, key: bytes, value: bytes | None) -> None:
        """Take a record of ``weights``; None: there is no such feed any more.

        Raises
        ------
        msgspec.DecodeError
            If it is none.
        """
        if value is None:
            self._end(TombstoneKey.of(key))
            return
        head = _head_of(value)
        known = self._heads.get(head.feed)
        if known is not None and known.revision > head.revision:
            return  # an equal one is newer all the same: after a failed audit it is published again
        parts = (value,) if head.parts == 1 else self._assembled(head, value)
        if parts is not None:
            self._keep(head, parts)

    def add_error_rates(self, key: bytes, value: bytes | None) -> None:
        """Take a record of ``error-rates``; None: there is no such feed any more.

        Raises
        ------
        msgspec.DecodeError
            If it is none.
        """
        if value is None:
            self._rates.pop(TombstoneKey.of(key).feed, None)
            return
        place = _place_of(value)
        known = self._rates.get(place.feed)
        if known is None or known.revision <= place.revision:
            self._rates[place.feed] = _Kept(place.revision, (value,))

    def _assembled(self, head: FeedHead, value: bytes) -> tuple[bytes, ...] | None:
        """All parts of a record, if this was the last that was missing."""
        if self._waiting_for.get(head.feed, -1) > head.revision:
            return None
        if self._waiting_for.get(head.feed) != head.revision:
            self._waiting[head.feed], self._waiting_for[head.feed] = {}, head.revision
        parts = self._waiting[head.feed]
        parts[head.part] = value
        if len(parts) < head.parts:
            return None
        return tuple(parts[number] for number in sorted(parts))

    def _keep(self, head: FeedHead, parts: tuple[bytes, ...]) -> None:
        feed = head.feed
        if feed not in self._heads:
            self._sorted = None
        if self._waiting_for.get(feed, head.revision) <= head.revision:
            self._stop_waiting(feed)
        self._heads[feed] = head
        self._forget_record(feed)
        self.evicted.discard(feed)
        self._weights[feed] = _Kept(head.revision, parts)
        self._bytes += sum(map(len, parts))
        while self._bytes > self._most and len(self._weights) > 1:
            oldest = next(iter(self._weights))
            self._forget_record(oldest)
            self.evicted.add(oldest)

    def _forget_record(self, feed: str) -> None:
        kept = self._weights.pop(feed, None)
        if kept is not None:
            self._bytes -= sum(map(len, kept.parts))
            self._decoded.pop((feed, kept.revision), None)

    def _end(self, key: TombstoneKey) -> None:
        feed = key.feed
        self._waiting.get(feed, {}).pop(key.part, None)
        head = self._heads.get(feed)
        if head is not None and key.ends(head.parts):
            del self._heads[feed]
            self._sorted = None
            self._forget_record(feed)
            self.evicted.discard(feed)

    def _stop_waiting(self, feed: str) -> None:
        self._waiting.pop(feed, None)
        self._waiting_for.pop(feed, None)

    # --- reading ---

    def feeds(self) -> list[str]:
        """Names of all feeds, sorted."""
        if self._sorted is None:
            self._sorted = sorted(self._heads)
        return self._sorted

    def heads(self) -> Mapping[str, FeedHead]:
        """What is known of each feed, but for its experts."""
        return self._heads

    def revisions(self, feed: str) -> tuple[int, int]:
        """Revisions of the feed's ``weights`` and ``error-rates``; -1: there is none."""
        head, rates = self._heads.get(feed), self._rates.get(feed)
        return -1 if head is None else head.revision, -1 if rates is None else rates.revision

    def weights(self, feed: str) -> Weights | None:
        """The newest weights of a feed, put together of its parts; None if they are not kept."""
        kept = self._weights.get(feed)
        if kept is None:
            return None
        place = (feed, kept.revision)
        found = self._decoded.get(place)
        if found is None:
            found = self._decoded[place] = joined_parts([_weights_of(part) for part in kept.parts])
            if len(self._decoded) > _DECODED:
                self._decoded.popitem(last=False)
        self._decoded.move_to_end(place)
        return found

    def error_rates(self, feed: str) -> ErrorRates | None:
        """The newest error rates of a feed; None if there are none."""
        kept = self._rates.get(feed)
        return None if kept is None else _rates_of(kept.parts[0])
