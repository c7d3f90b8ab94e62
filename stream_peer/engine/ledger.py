"""The ledger: one entry a question, with the facts of its rounds and the evidence for its outcome."""

import msgspec

from stream_peer.engine.facts import Facts, boundary_of, unpack
from stream_peer.events.feed_log import Verdict
from stream_peer.events.times import Milliseconds


class Entry:
    """What is known of a question: its weight, the evidence for its outcome, and the facts of its rounds.

    ``rounds`` holds packed facts, ordered by boundary; ``touched`` is the record time of its last news, ``pieces``
    the number of state records that it was last stored in.
    """

    __slots__ = ("evidence", "pieces", "rounds", "touched", "weight")

    def __init__(
        self,
        weight: float = 1.0,
        evidence: Verdict = "open",
        rounds: tuple[bytes, ...] = (),
        touched: Milliseconds = 0,
    ) -> None:
        self.weight = weight
        self.evidence: Verdict = evidence
        self.rounds = rounds
        self.touched = touched
        self.pieces = 0

    def put(self, facts: Facts) -> None:
        """Add a round, or replace the one of the same boundary."""
        kept = [packed for packed in self.rounds if boundary_of(packed) != facts.head.boundary]
        self.rounds = tuple(sorted([*kept, facts.pack()], key=boundary_of))

    def drop(self, boundary: Milliseconds) -> bool:
        """Remove a round; False if there was none."""
        kept = tuple(packed for packed in self.rounds if boundary_of(packed) != boundary)
        found = len(kept) < len(self.rounds)
        self.rounds = kept
        return found

    def facts(self) -> list[Facts]:
        """Facts of all rounds, by boundary."""
        return [unpack(packed) for packed in self.rounds]

    def latest(self) -> Facts | None:
        """Facts of the round with the latest boundary."""
        return unpack(self.rounds[-1]) if self.rounds else None

    def encode(self) -> bytes:
        """Stored form."""
        return msgspec.msgpack.encode((self.weight, self.evidence, self.touched, self.rounds))

    @classmethod
    def decode(cls, data: bytes) -> "Entry":
        """Entry of ``encode``."""
        weight, evidence, touched, rounds = _decode_entry(data)
        return cls(weight, evidence, rounds, touched)


_decode_entry = msgspec.msgpack.Decoder(tuple[float, Verdict, Milliseconds, tuple[bytes, ...]]).decode
