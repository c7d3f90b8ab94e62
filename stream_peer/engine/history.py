"""What the experts of one question said, and when it counts from.

Twenty bytes an entry, in memory and in stored state alike, in the order of arrival. Two entries of an expert with the
same moment therefore stand in the order of their offsets, and a stable sort by moment is the order in which they
replace each other.
"""

import math
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
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


class Standing(NamedTuple):
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

    def standing_at(self, moments: Sequence[Milliseconds]) -> list[Standing]:
        """Who stands at each of the ascending ``moments``: the last entry at or before it, unless it withdraws."""
        if not moments:
            return []
        entries = self._entries()
        order = np.argsort(entries["at"], kind="stable")
        cuts = np.searchsorted(entries["at"][order], moments, side="right")
        names = list(self.experts)
        last = np.full(len(names), -1, dtype=np.int64)
        standing = []
        start = 0
        for cut in cuts.tolist():
            newer = order[start:cut]
            last[entries["who"][newer]] = newer  # of a repeated index the last assignment stays
            start = cut
            standing.append(_named(names, entries["probability"], last))
        return standing

    def quorum_moment(self, opens: Milliseconds, close: Milliseconds, quorum: int) -> Milliseconds | None:
        """The first moment from ``opens`` to ``close`` at which at least ``quorum`` experts stand."""
        if len(self.experts) < quorum or opens > close:
            return None
        standing: set[int] = set()
        moment = opens
        for at, probability, who in self._by_moment():
            effect = max(at, opens)
            if effect > moment:
                if len(standing) >= quorum:
                    return moment
                moment = effect
            if moment > close:
                return None
            if math.isnan(probability):
                standing.discard(who)
            else:
                standing.add(who)
        return moment if len(standing) >= quorum else None

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

    def part(self, chosen: set[int]) -> tuple[list[str], bytearray, bytearray]:
        """Names, log and moved entries of some experts (by number), numbered anew."""
        names = [name for name, who in self.experts.items() if who in chosen]
        numbers = np.full(len(self.experts), -1, dtype=np.int64)
        numbers[[self.experts[name] for name in names]] = np.arange(len(names))
        return names, _of(self.log, _ENTRY, numbers), _of(self.moved, _MOVED, numbers)

    def merge(self, names: Sequence[str], log: bytearray, moved: bytearray) -> None:
        """Take up what ``part`` gave, or a whole history, and consume it; none of the experts may be known yet."""
        numbers = np.array([self._number(name) for name in names], dtype=np.int64)
        entries = np.frombuffer(log, _ENTRY)
        entries["who"] = numbers[entries["who"]]
        late = np.frombuffer(moved, _MOVED)
        late["who"] = numbers[late["who"]]
        self.log += entries.tobytes()
        self.moved += late.tobytes()
        for who, count in enumerate(np.bincount(entries["who"], minlength=len(self.experts)).tolist()):
            self._counts[who] += count

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
        """The entries after a trim of one expert; of its moved ones those stay whose entry stayed."""
        self.log = bytearray(entries.tobytes())
        own = entries["at"][entries["who"] == who]
        self._counts[who] = len(own)
        moved = np.frombuffer(bytes(self.moved), _MOVED)
        self.moved = bytearray(moved[(moved["who"] != who) | np.isin(moved["at"], own)].tobytes())


def _named(names: list[str], probabilities: Entries, last: NDArray[np.int64]) -> Standing:
    present = np.flatnonzero(last >= 0)
    values = probabilities[last[present]]
    stands = ~np.isnan(values)
    pairs = sorted(zip([names[who] for who in present[stands].tolist()], values[stands].tolist(), strict=True))
    return Standing([name for name, _ in pairs], [value for _, value in pairs])


def _of(log: bytearray, dtype: np.dtype[Any], numbers: NDArray[np.int64]) -> bytearray:
    entries = np.frombuffer(bytearray(log), dtype)
    entries = entries[numbers[entries["who"]] >= 0]
    entries["who"] = numbers[entries["who"]]
    return bytearray(entries.tobytes())
