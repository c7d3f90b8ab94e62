"""What the experts of one question said, and from when it counts.

An entry is what was said, when it was stated and when it arrived: 28 bytes, in memory and in stored state alike. From
when it counts follows from that and from the feed's rules. Entries lie in the order of arrival. Two entries of an
expert with the same moment therefore stand in the order of their offsets, and a stable sort by moment is the order in
which they replace each other.
"""

import math
import struct
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_peer.events.times import NEVER, Milliseconds
from stream_peer.questions.dating import BEGINNING, BUILT_IN, UNKNOWN, Moments, Rules, unused

MAX_ENTRIES = 64
"""An expert keeps at most so many entries of one question."""

_ENTRY = np.dtype([("stated", "<i8"), ("arrived", "<i8"), ("probability", "<f8"), ("who", "<u4")])
_AFTER = 1 << 31  # within ``who``: the entry arrived after its question's resolution
_NUMBER = _AFTER - 1
_WHO = 24  # the byte of ``who`` that holds all of a small number
_FEW = 32
pack_entry = struct.Struct("<qqdI").pack

_FORMER_ENTRY = np.dtype([("at", "<i8"), ("probability", "<f8"), ("who", "<u4")])
_FORMER_MOVED = np.dtype([("stated", "<i8"), ("at", "<i8"), ("who", "<u4")])

Entries = NDArray[Any]


class StandingForecasts(NamedTuple):
    """The forecasts that count at a moment, sorted by expert."""

    experts: list[str]
    probabilities: list[float]


class History:
    """Forecasts of one question: (stated when, arrived when, probability or withdrawn, expert), and who they are.

    Attributes
    ----------
    experts : dict
        The experts, numbered as they came.
    log : bytearray
        The entries.
    counts : bytearray
        How many entries each expert has, by number.
    rules : Rules
        Of the feed that the question belongs to; ``redate`` changes them.
    is_resolved : bool
        Whether the question has an outcome: what is added from now on arrives after it.
    first : int
        The earliest moment from which any entry ever added counts.
    gone : int
        The same, of entries that are not kept any more, or of which it is not known when they arrived.
    """

    __slots__ = ("counts", "experts", "first", "gone", "id_bytes", "is_resolved", "log", "rules")

    def __init__(self) -> None:
        self.experts: dict[str, int] = {}
        self.log = bytearray()
        self.rules = BUILT_IN
        self.is_resolved = False
        self.first: Milliseconds = NEVER
        self.gone: Milliseconds = NEVER
        self.id_bytes = 0
        self.counts = bytearray()

    def __len__(self) -> int:
        return len(self.log) // _ENTRY.itemsize

    def add(
        self,
        expert_id: str,
        probability: float | None,
        stated: Milliseconds,
        arrived: Milliseconds,
        counts: Milliseconds,
    ) -> bool:
        """Append an entry that ``counts`` from a moment on; a probability of None withdraws.

        True if the expert now has more than ``MAX_ENTRIES``.
        """
        who = self.experts.get(expert_id)
        if who is None:
            who = self.number(expert_id)
        count = self.counts[who] + 1
        self.counts[who] = count
        if self.is_resolved:
            who |= _AFTER
        self.log += pack_entry(stated, arrived, math.nan if probability is None else probability, who)
        if counts < self.first:  # noqa: PLR1730 - min() costs twice as much, once a forecast
            self.first = counts
        return count > MAX_ENTRIES

    def add_all(
        self, forecasts: Mapping[str, float | None], stated: Milliseconds, arrived: Milliseconds, counts: Milliseconds
    ) -> bool:
        """Append entries of one moment. True if an expert now has more than ``MAX_ENTRIES``."""
        if counts < self.first and forecasts:
            self.first = counts
        experts, numbers = self.experts, self.counts
        after = _AFTER if self.is_resolved else 0
        packed = []
        most = 0
        for expert_id, probability in forecasts.items():
            who = experts.get(expert_id)
            if who is None:
                who = self.number(expert_id)
            packed.append(pack_entry(stated, arrived, math.nan if probability is None else probability, who | after))
            count = numbers[who] + 1
            numbers[who] = count
            if count > most:  # noqa: PLR1730 - as above
                most = count
        self.log += b"".join(packed)
        return most > MAX_ENTRIES

    def surplus(self, experts: Iterable[str]) -> list[str]:
        """Those of some experts that have more than ``MAX_ENTRIES``."""
        return [expert_id for expert_id in experts if self.counts[self.experts[expert_id]] > MAX_ENTRIES]

    def counts_from(self, rules: Rules, stated: Milliseconds, arrived: Milliseconds) -> Milliseconds:
        """From when a forecast that arrives now would count, by some rules; NEVER if they refuse it."""
        after = np.array([self.is_resolved])
        return int(rules.moments(np.array([stated]), np.array([arrived]), after)[0])

    def unused_of(
        self, rules: Rules, forecasts: Mapping[str, float | None], stated: Milliseconds
    ) -> tuple[set[str], set[str]]:
        """Experts of late forecasts, stated at one moment, who have said the same before, or something newer."""
        known = [(self.experts[name], name) for name in forecasts if name in self.experts]
        numbers = np.array([who for who, _ in known], dtype=np.int64)
        said = [forecasts[name] for _, name in known]
        late = np.array([math.nan if probability is None else probability for probability in said])
        before = self._columns()
        moments = rules.moments(before.stated, before.arrived, before.after)
        own = np.flatnonzero(np.isin(before.who, numbers) & (moments < NEVER))
        found = unused(
            np.concatenate([before.who[own], numbers]),
            np.concatenate([before.stated[own], np.full(len(known), stated)]),
            np.concatenate([before.probability[own], late]).view(np.int64),
            np.arange(len(own) + len(known)) >= len(own),
        )
        names = np.array([name for _, name in known], dtype=object)
        return set(names[found.repeated[len(own) :]]), set(names[found.overtaken[len(own) :]])

    def redate(self, rules: Rules) -> int:
        """Apply other rules; return of how many entries they change from when these count."""
        if not self.log or rules == self.rules:
            self.rules = rules
            return 0
        entries = self._columns()
        before = self._moments(entries)
        self.rules = rules
        moments = self._moments(entries)
        self.first = min(self.gone, int(moments.min(initial=NEVER)))
        return int((moments != before).sum())

    def stated(self, expert_id: str) -> list[tuple[Milliseconds, Milliseconds]]:
        """(stated, counts from) of an expert's entries that count from another moment, in the order of arrival."""
        entries = self._columns()
        moments = self._moments(entries)
        own = (entries.who == self.experts.get(expert_id, -1)) & (moments != entries.stated) & (moments < NEVER)
        return list(zip(entries.stated[own].tolist(), moments[own].tolist(), strict=True))

    def standing_at(
        self,
        moments: Sequence[Milliseconds],
        lifetime: Milliseconds | None = None,
        *,
        before_outcome: bool = False,
    ) -> list[StandingForecasts]:
        """The forecasts that count at each of the ascending ``moments``: the last of each expert, unless it withdraws.

        With a ``lifetime`` an entry stands before the moment at which it is so old, and no longer at it.
        ``before_outcome``: without what arrived after the question's resolution.
        """
        if not moments:
            return []
        entries = self._columns()
        if before_outcome:
            entries = _Columns._make(column[~entries.after] for column in entries)
        at = self._moments(entries)
        order = np.argsort(at, kind="stable")
        cuts = np.searchsorted(at[order], moments, side="right")
        names = list(self.experts)
        last = np.full(len(names), -1, dtype=np.int64)
        standing: list[StandingForecasts] = []
        start = 0
        for cut in cuts.tolist():
            newer = order[start:cut]
            last[entries.who[newer]] = newer  # of a repeated index the last assignment stays
            start = cut
            present = np.flatnonzero(last >= 0)
            if lifetime is not None:
                present = present[at[last[present]] > moments[len(standing)] - lifetime]
            standing.append(_named(names, present, entries.probability[last[present]]))
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
        """Drop an expert's surplus entries; return how many.

        Those that are not used go first, then the oldest, but none that stands at one of ``moments``.
        """
        who = self.experts[expert_id]
        entries = self._columns()
        at = self._moments(entries)
        own = np.flatnonzero(entries.who == who)
        own = own[np.argsort(at[own], kind="stable")]
        used = int(np.searchsorted(at[own], NEVER))
        standing = np.searchsorted(at[own[:used]], np.asarray(moments, dtype=np.int64), side="right") - 1
        free = np.setdiff1d(np.arange(used - 1), standing)
        dropped = own[np.concatenate([np.arange(used, len(own)), free])[: len(own) - MAX_ENTRIES]]
        self.gone = min(self.gone, int(at[dropped].min(initial=NEVER)))
        self.log = bytearray(np.delete(self._entries(), dropped).tobytes())
        self.counts[who] -= len(dropped)
        return len(dropped)

    def drop(self, experts: Collection[str]) -> None:
        """Drop entries and names of some experts. ``first`` stays: it belongs to the question."""
        names, log = self.part({who for name, who in self.experts.items() if name not in experts})
        self.gone = self.first
        self._clear()
        self.merge(names, log)

    def part(self, chosen: set[int]) -> tuple[list[str], bytearray]:
        """Names and log of some experts (by number), with numbers from 0."""
        names = [name for name, who in self.experts.items() if who in chosen]
        numbers = np.full(len(self.experts), -1, dtype=np.int64)
        numbers[[self.experts[name] for name in names]] = np.arange(len(names))
        entries = self._entries()
        entries = entries[numbers[entries["who"] & _NUMBER] >= 0]
        _renumber(entries, numbers)
        return names, bytearray(entries.tobytes())

    def merge(self, names: Sequence[str], log: bytearray) -> None:
        """Append what ``part`` returned, or a whole history, after the entries that are here.

        ``first`` and ``gone`` are the caller's.
        """
        known = self.experts
        numbers = np.array([known[name] if name in known else self.number(name) for name in names], dtype=np.int64)
        entries = np.frombuffer(bytearray(log), _ENTRY)
        _renumber(entries, numbers)
        self.log += entries.tobytes()
        counts = np.bincount(entries["who"] & _NUMBER, minlength=len(self.experts))
        for who, count in enumerate(counts.tolist()):
            self.counts[who] += count

    def restore(self, names: Sequence[str], log: bytearray) -> None:
        """Take up a whole history where there was none. ``first`` and ``gone`` are the caller's."""
        self.experts = {name: who for who, name in enumerate(names)}
        self.id_bytes = len("".join(names).encode())
        self.log = log
        if len(names) <= _FEW:  # nearly all questions of a large state
            self.counts = bytearray(map(log[_WHO :: _ENTRY.itemsize].count, range(len(names))))
            return
        numbers = np.frombuffer(log, _ENTRY)["who"] & _NUMBER
        self.counts = bytearray(np.bincount(numbers, minlength=len(names)).tolist())

    def rename(self, name: Callable[[str], str]) -> None:
        """Rename every expert; no two may get the same name."""
        self.experts = {name(expert_id): who for expert_id, who in self.experts.items()}
        self.id_bytes = sum(len(expert_id.encode()) for expert_id in self.experts)

    def unite(self, name: Callable[[str], str]) -> None:
        """Rename every expert; those with the same new name become one expert."""
        names, log = [name(expert_id) for expert_id in self.experts], self.log
        self._clear()
        self.merge(names, log)
        self.first = min(self.gone, int(self._moments(self._columns()).min(initial=NEVER)))

    def _clear(self) -> None:
        self.experts, self.log = {}, bytearray()
        self.id_bytes, self.counts = 0, bytearray()

    def number(self, expert_id: str) -> int:
        """Number an expert that is new."""
        who = len(self.experts)
        self.experts[expert_id] = who
        self.counts.append(0)
        self.id_bytes += len(expert_id) if expert_id.isascii() else len(expert_id.encode())
        return who

    def _entries(self) -> Entries:
        return np.frombuffer(bytes(self.log), _ENTRY)

    def _columns(self) -> "_Columns":
        entries = self._entries()
        numbers = entries["who"].astype(np.int64)
        who, after = numbers & _NUMBER, numbers >= _AFTER
        return _Columns(entries["stated"], entries["arrived"], entries["probability"], who, after)

    def _moments(self, entries: "_Columns") -> Moments:
        """From when entries count; NEVER: they are not used."""
        moments = self.rules.moments(entries.stated, entries.arrived, entries.after)
        late = (moments != entries.stated) & (moments < NEVER) & (entries.arrived >= BEGINNING)
        if late.any():
            taken = np.flatnonzero(moments < NEVER)
            said = entries.probability[taken].view(np.int64)
            found = unused(entries.who[taken], entries.stated[taken], said, late[taken])
            moments[taken[found.repeated | found.overtaken]] = NEVER
        return moments

    def _by_moment(self) -> Iterator[tuple[Milliseconds, float, int]]:
        entries = self._columns()
        at = self._moments(entries)
        order = np.argsort(at, kind="stable")
        return zip(at[order].tolist(), entries.probability[order].tolist(), entries.who[order].tolist(), strict=True)


class _Columns(NamedTuple):
    """Entries, field by field; ``after`` their question's resolution."""

    stated: Moments
    arrived: Moments
    probability: NDArray[np.float64]
    who: Moments
    after: NDArray[np.bool_]


def from_former(log: bytearray, moved: bytearray) -> bytearray:
    """The entries that an earlier release stored, whose arrival it did not keep: their dates are never corrected.

    ``moved`` holds when those were stated that count from another moment.
    """
    former = np.frombuffer(log, _FORMER_ENTRY)
    entries = np.zeros(len(former), dtype=_ENTRY)
    entries["stated"] = former["at"]
    entries["arrived"] = former["at"] + UNKNOWN
    entries["probability"], entries["who"] = former["probability"], former["who"]
    places: dict[tuple[int, int], list[int]] = {}
    for place, (at, _, who) in enumerate(former.tolist()):
        places.setdefault((at, who), []).append(place)
    for stated, at, who in reversed(np.frombuffer(moved, _FORMER_MOVED).tolist()):  # of one moment the last were moved
        if places.get((at, who)):
            entries["stated"][places[at, who].pop()] = stated
    return bytearray(entries.tobytes())


class _Crowd:
    """The forecasts that count, updated entry by entry in the order of moments."""

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


def _named(names: list[str], present: NDArray[np.intp], values: NDArray[np.float64]) -> StandingForecasts:
    """The experts who have not withdrawn."""
    stands = ~np.isnan(values)
    pairs = sorted(zip([names[who] for who in present[stands].tolist()], values[stands].tolist(), strict=True))
    return StandingForecasts([name for name, _ in pairs], [value for _, value in pairs])


def _renumber(entries: Entries, numbers: NDArray[np.int64]) -> None:
    """Give the experts of entries other numbers, in place."""
    who = entries["who"]
    entries["who"] = numbers[who & _NUMBER].astype(np.uint32) | (who & _AFTER)
