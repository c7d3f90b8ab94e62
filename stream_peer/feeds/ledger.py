"""The ledger: one entry a question, with the facts of its rounds and the evidence for its outcome.

It is bounded: an entry goes when nothing is expected to change it any more, or when there are too many. What it added
to the sums stays in them for good; of the question only its name is kept for a while, so that news that come too late
are known as such.
"""

from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from stream_peer.events.feed_log import Verdict
from stream_peer.events.groups import group_id_of
from stream_peer.events.times import NEVER, Milliseconds
from stream_peer.feeds.facts import Facts, boundary_of, unpack
from stream_peer.log.clock import Agenda
from stream_peer.log.pieces import whole
from stream_peer.settings.feed.model import FeedSettings


class Entry:
    """What is known of a question: its weight, the evidence for its outcome, and the facts of its rounds.

    ``rounds`` holds packed facts, ordered by boundary; ``first_final`` those of its scored forecast, which nothing
    replaces (see ``scored``): None while it has none yet, empty if it can have none any more. ``revision`` is that of
    the record which published it, and while there is none that of the last record that published a round or took one
    back. ``touched`` is the record time of its last news, ``ordinal`` its number among the questions of its feed,
    ``provisional`` an outcome that is shown while there is no other, ``pieces`` the number of state records that it was
    last stored in, ``audit`` the number of the audit that looked at it last, ``options`` of a part how many options its
    group has, ``rank`` its number among the parts of its group, from 1 on.
    """

    __slots__ = (
        *("audit", "evidence", "first_final", "options", "ordinal", "pieces", "rank"),
        *("_facts", "_record", "provisional", "revision", "rounds", "touched", "weight"),
    )
    first_final: bytes | None
    rounds: tuple[bytes, ...]

    def __init__(
        self,
        weight: float = 1.0,
        evidence: Verdict = "open",
        rounds: tuple[bytes, ...] = (),
        touched: Milliseconds = 0,
        ordinal: int = 0,
        first_final: bytes | None = None,
        revision: int = -1,
        provisional: Verdict = "open",
    ) -> None:
        self.provisional: Verdict = provisional
        self.weight = weight
        self.evidence: Verdict = evidence
        self.rounds = rounds
        self.first_final = first_final
        self._record = b""
        self._facts: Sequence[Facts] | None = None
        self.revision = revision
        self.touched = touched
        self.ordinal = ordinal
        self.pieces = 0
        self.audit = 0
        self.options = 0
        self.rank = 1

    def rest_on(self, record: bytes) -> None:
        """Hold no facts of its own until ``hold``, but read them in its state record, which is kept anyway."""
        self._record, self.rounds, self.first_final = record, (), None
        del self.rounds, self.first_final  # so that Python asks ``__getattr__`` for them

    if not TYPE_CHECKING:  # else a checker would take every name for an attribute

        def __getattr__(self, name: str) -> object:
            """Facts that are read in the state record. Entries that hold theirs, which are most, pay nothing for it."""
            if name not in ("rounds", "first_final"):
                raise AttributeError(name)
            stored = _decode_entry(whole(self._record))
            return stored.rounds if name == "rounds" else stored.first()

    def hold(self) -> None:
        """Hold its facts itself from here on, for they change."""
        if self._record:
            stored = _decode_entry(whole(self._record))
            self.rounds, self.first_final, self._record = stored.rounds, stored.first(), b""

    def keep_facts(self) -> None:
        """Hold its facts as they are not packed, too, since they are asked for again, until ``let_go``."""
        self._facts = self.facts()

    def let_go(self) -> None:
        """Hold packed facts alone."""
        self._facts = None

    def put(self, facts: Facts) -> None:
        """Add a round, or replace the one of the same boundary."""
        self.hold()
        packed = facts.pack()
        if not self.rounds:  # by far the most frequent
            self.rounds, self._facts = (packed,), (facts,)
            return
        kept = [one for one in zip(self.rounds, self.facts(), strict=True) if one[1].boundary != facts.boundary]
        by_boundary = sorted([*kept, (packed, facts)], key=lambda one: one[1].boundary)
        self.rounds, self._facts = tuple(one for one, _ in by_boundary), [one for _, one in by_boundary]

    def drop(self, boundary: Milliseconds) -> bool:
        """Remove a round; False if there was none."""
        self.hold()
        rounds = self.rounds
        kept = tuple(packed for packed in rounds if boundary_of(packed) != boundary)
        found = len(kept) < len(rounds)
        self.rounds, self._facts = kept, [facts for facts in self.facts() if facts.boundary != boundary]
        return found

    def facts(self) -> Sequence[Facts]:
        """Facts of all rounds, by boundary."""
        return [unpack(packed) for packed in self.rounds] if self._facts is None else self._facts

    def latest(self) -> Facts | None:
        """Facts of the round with the latest boundary."""
        if self._facts is not None:
            return self._facts[-1] if self._facts else None
        rounds = self.rounds
        return unpack(rounds[-1]) if rounds else None

    def encode(self) -> bytes:
        """Stored form."""
        rounds, first = self.rounds, self.first_final
        place = rounds.index(first) if first is not None and first in rounds else first
        stored: tuple[Any, ...] = (
            self.weight,
            self.evidence,
            self.touched,
            self.ordinal,
            rounds,
            place,
            self.revision,
            self.provisional,
            self.options,
        )
        return _encode(stored if self.rank == 1 else (*stored, self.rank))

    @classmethod
    def decode(cls, data: bytes) -> "Entry":
        """Entry of ``encode``."""
        stored = _decode_entry(data)
        rounds, first = stored.rounds, stored.first()
        number, shown = stored.ordinal, stored.provisional
        entry = cls(stored.weight, stored.evidence, rounds, stored.touched, number, first, stored.revision, shown)
        entry.options, entry.rank = stored.options, stored.rank
        return entry


class StoredEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An entry as it is stored. ``first_final`` is a place in ``rounds`` if it is one of them as it stands.

    ``rank`` is left out where it is 1.
    """

    weight: float
    evidence: Verdict
    touched: Milliseconds
    ordinal: int
    rounds: tuple[bytes, ...]
    first_final: int | bytes | None
    revision: int
    provisional: Verdict = "open"
    options: int = 0
    rank: int = 1

    def first(self) -> bytes | None:
        """Packed facts of the scored forecast."""
        place = self.first_final
        return self.rounds[place] if isinstance(place, int) else place


_encode = msgspec.msgpack.Encoder().encode
_decode_entry = msgspec.msgpack.Decoder(StoredEntry).decode


class Limits(NamedTuple):
    """How long entries stay after their last news, without an outcome and with one, and how many there may be."""

    without_outcome: Milliseconds
    with_outcome: Milliseconds
    most: int

    @classmethod
    def of(cls, settings: FeedSettings) -> "Limits":
        """The limits of a feed."""
        return cls(settings.ledger_for, settings.retract_for, settings.ledger_max)


class Ledger:
    """The entries of a feed by question, and which questions have left it.

    Attributes
    ----------
    entries : dict of str to Entry
    expired : dict of str to int
        Questions whose entry has gone, and when; at most ``most`` of them, the earliest are dropped first.
    groups : dict of str to set of str
        Of each group its parts among both.
    ordinals : int
        How many questions were ever taken in.
    """

    def __init__(self, limits: Limits) -> None:
        self.entries: dict[str, Entry] = {}
        self.expired: dict[str, Milliseconds] = {}
        self.groups: dict[str, set[str]] = {}
        self.ordinals = 0
        self._limits = limits
        self._agenda = Agenda()
        self._left: list[tuple[Milliseconds, str]] = []

    def __contains__(self, question_id: str) -> bool:
        return question_id in self.entries or question_id in self.expired

    def begin(self, question_id: str) -> Entry:
        """The entry of a question that is new here."""
        entry = self.entries[question_id] = Entry(ordinal=self.ordinals)
        self.ordinals += 1
        entry.rank = self._note_part(question_id)
        return entry

    def _note_part(self, question_id: str) -> int:
        """Count a part to its group; how many parts of it are known now, 1 of a question that is none."""
        group = group_id_of(question_id)
        if group is None:
            return 1
        parts = self.groups.setdefault(group, set())
        parts.add(question_id)
        return len(parts)

    def note_options(self, group: str, options: int) -> list[str]:
        """A group has so many options; the parts that have not known it."""
        found = [(part, self.entries[part]) for part in sorted(self.groups.get(group, ())) if part in self.entries]
        changed = [(part, entry) for part, entry in found if entry.options != options]
        for _, entry in changed:
            entry.options = options
        return [part for part, _ in changed]

    def keep(self, question_id: str, entry: Entry) -> None:
        """An entry has had news: its time in the ledger starts again."""
        without, with_outcome, _ = self._limits
        self._agenda.put(question_id, entry.touched + (without if entry.evidence == "open" else with_outcome))

    def is_due(self, now: Milliseconds) -> bool:
        """Whether ``expire`` has anything to give."""
        return self._agenda.next <= now or len(self.entries) > self._limits.most

    def expire(self, now: Milliseconds) -> Iterator[tuple[str, Entry]]:
        """Entries whose time is over, or that are too many, each taken out."""
        for question_id in self._agenda.due(now):
            yield question_id, self._expired(question_id, now)
        surplus = len(self.entries) - self._limits.most
        if surplus > 0:
            first = self._agenda.due(NEVER - 1)
            for _ in range(surplus):
                question_id = next(first)
                yield question_id, self._expired(question_id, now)

    def forget_expired(self) -> Iterator[str]:
        """Names of expired questions that are too many, the earliest first, each taken out."""
        while len(self.expired) > self._limits.most:
            _, question_id = heappop(self._left)
            del self.expired[question_id]
            group = group_id_of(question_id)
            if group is not None:
                self.groups[group].discard(question_id)
                if not self.groups[group]:
                    del self.groups[group]
            yield question_id

    def limit(self, limits: Limits) -> None:
        """Other limits from here on."""
        if limits != self._limits:
            self._limits = limits
            self._plan_anew()

    def restore(self, stored: Mapping[str, Entry | Milliseconds], ordinals: int) -> None:
        """Load stored entries, and when questions left the ledger."""
        self.entries = {name: entry for name, entry in stored.items() if isinstance(entry, Entry)}
        self.expired = {name: when for name, when in stored.items() if not isinstance(when, Entry)}
        self.ordinals = ordinals
        self.groups = {}
        for question_id in stored:
            self._note_part(question_id)
        self._left = [(when, question_id) for question_id, when in self.expired.items()]
        heapify(self._left)
        self._plan_anew()

    def _plan_anew(self) -> None:
        self._agenda = Agenda()
        for question_id, entry in self.entries.items():
            self.keep(question_id, entry)

    def _expired(self, question_id: str, now: Milliseconds) -> Entry:
        self.expired[question_id] = now
        heappush(self._left, (now, question_id))
        return self.entries.pop(question_id)


def encode_expired(when: Milliseconds) -> bytes:
    """Stored form of an expired question: what an entry never begins with."""
    return msgspec.msgpack.encode(when)


def decode_entry(data: bytes) -> Entry | Milliseconds:
    """The entry, or when it expired."""
    return _decode_either(data) if len(data) < _LONGEST_NUMBER else Entry.decode(data)


_LONGEST_NUMBER = 10
"""Bytes: no entry is as short, no number longer."""
_decode_either = msgspec.msgpack.Decoder(Milliseconds).decode
