"""What the experts of one question said, and when it counts from.

Twenty bytes an entry, in memory and in stored state alike, in the order of arrival. Two entries of an expert with the
same moment therefore stand in the order of their offsets, and a stable sort by moment is the order in which they
replace each other.
"""

import math
import struct
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_peer.events.times import NEVER, Milliseconds

MAX_ENTRIES = 64
"""An expert keeps at most so many entries of one question."""

_ENTRY = np.dtype([("at", "<i8"), ("probability", "<f8"), ("who", "<u4")])
_MOVED = np.dtype([("stated", "<i8"), ("at", "<i8"), ("who", "<u4")])
_pack_entry = struct.Struct("<qdI").pack
_pack_moved = struct.Struct("<qqI").pack

Entries = NDArray[Any]


class StandingForecasts(NamedTuple):
    """Who stands at a moment, sorted by expert, and with which forecast."""

    experts: list[str]
    probabilities: list[float]


class History:
    """Forecasts of one question: (moment from which it counts, probability or withdrawn, expert), and who they are.

    ``experts`` numbers the experts as they came, ``first`` is the earliest moment of any entry ever added,
    ``moved`` keeps the stated moment of entries that count from another one.
    """

    __slots__ = ("_counts", "experts", "first", "id_bytes", "log", "moved")

    def __init__(self) -> None:
        self.experts: dict[str, int] = {}
        self.log = bytearray()
        self.moved = bytearray()
        self.first: Milliseconds = NEVER
        self.id_bytes = 0
        self._counts = bytearray()

    def __len__(self) -> int:
        return len(self.log) // _ENTRY.itemsize

    def add(self, expert_id: str, at: Milliseconds, probability: float | None) -> bool:
        """Append an entry; None withdraws. True if the expert now has more than ``MAX_ENTRIES``."""
        who = self.experts.get(expert_id)
        if who is None:
            who = self._number(expert_id)
        self.log += _pack_entry(at, math.nan if probability is None else probability, who)
        if at < self.first:  # noqa: PLR1730 - min() costs twice as much, once a forecast
            self.first = at
        count = self._counts[who] + 1
        self._counts[who] = count
        return count > MAX_ENTRIES

    def add_all(self, forecasts: Mapping[str, float | None], at: Milliseconds) -> bool:
        """Append entries of one moment. True if an expert now has more than ``MAX_ENTRIES``."""
        if at < self.first and forecasts:
            self.first = at
        experts, counts = self.experts, self._counts
        packed = []
        most = 0
        for expert_id, probability in forecasts.items():
            who = experts.get(expert_id)
            if who is None:
                who = self._number(expert_id)
            packed.append(_pack_entry(at, math.nan if probability is None else probability, who))
            count = counts[who] + 1
            counts[who] = count
            if count > most:  # noqa: PLR1730 - as above
                most = count
        self.log += b"".join(packed)
        return most > MAX_ENTRIES

    def surplus(self, experts: Iterable[str]) -> list[str]:
        """Those of some experts that have more than ``MAX_ENTRIES``."""
        return [expert_id for expert_id in experts if self._counts[self.experts[expert_id]] > MAX_ENTRIES]

    def note_moved(self, expert_id: str, stated: Milliseconds, at: Milliseconds) -> None:
        """Keep the stated moment of the entry just added, which counts from ``at`` instead."""
        self.moved += _pack_moved(stated, at, self.experts[expert_id])

    def stated(self, expert_id: str) -> list[tuple[Milliseconds, Milliseconds]]:
        """(stated, counts from) of an expert's entries that were moved, in the order of arrival."""
        entries = np.frombuffer(bytes(self.moved), _MOVED)
        own = entries[entries["who"] == self.experts.get(expert_id, -1)]
        return [(int(entry["stated"]), int(entry["at"])) for entry in own]

    def standing_at(
        self, moments: Sequence[Milliseconds], lifetime: Milliseconds | None = None
    ) -> list[StandingForecasts]:
        """Who stands at each of the ascending ``moments``: the last entry at or before it, unless it withdraws.

        With a ``lifetime`` an entry stands before the moment at which it is so old, and no longer at it.
        """
        if not moments:
            return []
        entries = self._entries()
        order = np.argsort(entries["at"], kind="stable")
        cuts = np.searchsorted(entries["at"][order], moments, side="right")
        names = list(self.experts)
        last = np.full(len(names), -1, dtype=np.int64)
        standing: list[StandingForecasts] = []
        start = 0
        for cut in cuts.tolist():
            newer = order[start:cut]
            last[entries["who"][newer]] = newer  # of a repeated index the last assignment stays
            start = cut
            expired = None if lifetime is None else moments[len(standing)] - lifetime
            standing.append(_named(names, entries, last, expired))
        return standing

    def quorum_moment(
        self, opens: Milliseconds, close: Milliseconds, quorum: int, lifetime: Milliseconds | None = None
    ) -> Milliseconds | None:
        """The first moment from ``opens`` to ``close`` at which at least ``quorum`` experts stand."""
        if len(self.experts) < quorum or opens > close:
            return None
        standing = _Crowd(lifetime)
        moment = opens
        for at, probability, who in self._by_moment():
            effect = max(at, opens)
            if effect > moment:
                if standing.number_at(moment) >= quorum:
                    return moment
                moment = effect
            if moment > close:
                return None
            standing.hear(who, at, probability)
        return moment if standing.number_at(moment) >= quorum else None

    def trim(self, expert_id: str, moments: Sequence[Milliseconds]) -> int:
        """Drop the oldest of an expert's surplus entries, but none that stands at one of ``moments``; how many."""
        entries = self._entries()
        who = self.experts[expert_id]
        own = np.flatnonzero(entries["who"] == who)
        own = own[np.argsort(entries["at"][own], kind="stable")]
        standing = np.searchsorted(entries["at"][own], np.asarray(moments, dtype=np.int64), side="right") - 1
        free = np.setdiff1d(np.arange(len(own) - 1), standing)
        dropped = own[free[: len(own) - MAX_ENTRIES]]
        self._replace(np.delete(entries, dropped), who)
        return len(dropped)

    def let_go(self, experts: Collection[str]) -> None:
        """Keep nothing of some experts: entries, stated moments, names. ``first`` stays: it is the question's."""
        names, log, moved = self.part({who for name, who in self.experts.items() if name not in experts})
        self.experts, self.log, self.moved = {}, bytearray(), bytearray()
        self.id_bytes, self._counts = 0, bytearray()
        self.merge(names, log, moved)

    def part(self, chosen: set[int]) -> tuple[list[str], bytearray, bytearray]:
        """Names, log and moved entries of some experts (by number), numbered anew."""
        names = [name for name, who in self.experts.items() if who in chosen]
        numbers = np.full(len(self.experts), -1, dtype=np.int64)
        numbers[[self.experts[name] for name in names]] = np.arange(len(names))
        return names, _of(self.log, _ENTRY, numbers), _of(self.moved, _MOVED, numbers)

    def merge(self, names: Sequence[str], log: bytearray, moved: bytearray) -> None:
        """Take up what ``part`` gave, or a whole history, and consume it; what is there already came before it."""
        known = self.experts
        numbers = np.array([known[name] if name in known else self._number(name) for name in names], dtype=np.int64)
        entries = np.frombuffer(log, _ENTRY)
        entries["who"] = numbers[entries["who"]]
        late = np.frombuffer(moved, _MOVED)
        late["who"] = numbers[late["who"]]
        self.log += entries.tobytes()
        self.moved += late.tobytes()
        for who, count in enumerate(np.bincount(entries["who"], minlength=len(self.experts)).tolist()):
            self._counts[who] += count

    def rename(self, name: Callable[[str], str]) -> None:
        """Give every expert another name; no two may get the same."""
        self.experts = {name(expert_id): who for expert_id, who in self.experts.items()}
        self.id_bytes = sum(len(expert_id.encode()) for expert_id in self.experts)

    def _number(self, expert_id: str) -> int:
        who = len(self.experts)
        self.experts[expert_id] = who
        self._counts.append(0)
        self.id_bytes += len(expert_id) if expert_id.isascii() else len(expert_id.encode())
        return who

    def _entries(self) -> Entries:
        return np.frombuffer(bytes(self.log), _ENTRY)

    def _by_moment(self) -> Iterator[tuple[Milliseconds, float, int]]:
        entries = self._entries()
        ordered: list[tuple[Milliseconds, float, int]] = entries[np.argsort(entries["at"], kind="stable")].tolist()
        return iter(ordered)

    def _replace(self, entries: Entries, who: int) -> None:
        """The entries after a trim of one expert; of its stated moments no more stay than entries they belong to."""
        self.log = bytearray(entries.tobytes())
        moments, numbers = np.unique(entries["at"][entries["who"] == who], return_counts=True)
        self._counts[who] = int(numbers.sum())
        left = dict(zip(moments.tolist(), numbers.tolist(), strict=True))
        moved = np.frombuffer(bytes(self.moved), _MOVED)
        stays = moved["who"] != who
        for place in np.flatnonzero(~stays)[::-1].tolist():  # of one moment the last to come are the last to go
            at = int(moved["at"][place])
            left[at] = left.get(at, 0) - 1
            stays[place] = left[at] >= 0
        self.moved = bytearray(moved[stays].tobytes())


class _Crowd:
    """Who stands, as entries come by moment."""

    def __init__(self, lifetime: Milliseconds | None) -> None:
        self._lifetime = lifetime
        self._since: dict[int, Milliseconds] = {}
        self._recent: deque[tuple[Milliseconds, int]] = deque()

    def hear(self, who: int, at: Milliseconds, probability: float) -> None:
        if math.isnan(probability):
            self._since.pop(who, None)
            return
        self._since[who] = at
        if self._lifetime is not None:
            self._recent.append((at, who))

    def number_at(self, moment: Milliseconds) -> int:
        if self._lifetime is not None:
            while self._recent and self._recent[0][0] + self._lifetime <= moment:
                at, who = self._recent.popleft()
                if self._since.get(who) == at:
                    del self._since[who]
        return len(self._since)


def _named(
    names: list[str], entries: Entries, last: NDArray[np.int64], expired: Milliseconds | None
) -> StandingForecasts:
    """Those whose last entry is a forecast, and younger than ``expired``."""
    present = np.flatnonzero(last >= 0)
    if expired is not None:
        present = present[entries["at"][last[present]] > expired]
    values = entries["probability"][last[present]]
    stands = ~np.isnan(values)
    pairs = sorted(zip([names[who] for who in present[stands].tolist()], values[stands].tolist(), strict=True))
    return StandingForecasts([name for name, _ in pairs], [value for _, value in pairs])


def _of(log: bytearray, dtype: np.dtype[Any], numbers: NDArray[np.int64]) -> bytearray:
    entries = np.frombuffer(bytearray(log), dtype)
    entries = entries[numbers[entries["who"]] >= 0]
    entries["who"] = numbers[entries["who"]]
    return bytearray(entries.tobytes())
