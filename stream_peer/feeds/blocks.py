"""Sums of a feed that forgets: of blocks of questions, of which older ones count less when they are read.

A question belongs to the block of its ordinal for good, so a late correction goes where the question went, and nothing
that is stored is ever multiplied. Without ``memory`` there is one block.
"""

from collections.abc import Callable

import msgspec
import numpy as np

from stream_peer.feeds.columns import FEED, VOTE_RULES
from stream_peer.feeds.sums import NOTHING, Contribution, IndexArray, Sums
from stream_peer.numerics.arguments import IntArray, unchecked
from stream_peer.numerics.dependence import N_BLOCKS
from stream_peer.numerics.error_rates.forgetting import MEMORIES_READ, block_factors, block_size

_SQUARED_WEIGHTS = [
    *(FEED.at("moment_weight2", rule) for rule in VOTE_RULES),
    FEED.at("class_weight2"),
    FEED.at("group_weight2"),
    *(FEED.at(f"block_{block}_weight2", rule) for rule in VOTE_RULES for block in range(N_BLOCKS)),
]

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[int, bytes]).decode


class Blocks:
    """Sums by blocks of questions.

    Parameters
    ----------
    memory : int or None
        M: a question M younger counts e times as much; None: all count alike.

    Attributes
    ----------
    by_number : dict of int to Sums
        Those that are read at all.
    n_experts : int
        For how many experts there is room at least.
    """

    def __init__(self, memory: int | None) -> None:
        self.memory = memory
        self._size = unchecked(block_size)(memory) if memory else 0
        self._newest = 0
        self.by_number: dict[int, Sums] = {0: Sums()}
        self._reading: Sums | None = None if memory else self.by_number[0]
        self.n_experts = 0

    def reserve(self, n_experts: int) -> None:
        """Have room for at least that many experts."""
        if n_experts <= self.n_experts:
            return
        self.n_experts = n_experts
        for sums in self.by_number.values():
            sums.reserve(n_experts)
        self._spoil()

    def reach(self, ordinal: int) -> None:
        """A question of this ordinal has come: blocks that are read no more are let go."""
        newest = self._block_of(ordinal)
        if newest > self._newest:
            self._newest = newest
            for block in [block for block in self.by_number if self._is_over(block)]:
                del self.by_number[block]
            self._spoil()

    def add(self, part: Contribution, ordinal: int) -> None:
        """Put a question in."""
        self._fold(ordinal, Sums.add, part)

    def subtract(self, part: Contribution, ordinal: int) -> None:
        """Take a question out."""
        self._fold(ordinal, Sums.subtract, part)

    def evaluations(self, places: IndexArray | None = None) -> list[tuple[int, Contribution]]:
        """What scored forecasts have added to each block, with the ordinal of a question of the block.

        ``places``: other places of the experts, -1 of those to be left out.
        """
        found = ((number * self._size, sums.evaluations(places)) for number, sums in self.by_number.items())
        return [(ordinal, part) for ordinal, part in found if part is not NOTHING]

    @property
    def reading(self) -> Sums:
        """The sums as they count now. Not to be changed."""
        if self._reading is None:
            self._reading = self._read()
        return self._reading

    def _fold(self, ordinal: int, operation: Callable[[Sums, Contribution], None], part: Contribution) -> None:
        block = self._block_of(ordinal)
        if self.memory and self._is_over(block):
            return
        sums = self.by_number.get(block)
        if sums is None:
            sums = self.by_number[block] = Sums()
            sums.reserve(self.n_experts)
        operation(sums, part)
        self._spoil()

    def _block_of(self, ordinal: int) -> int:
        return ordinal // self._size if self._size else 0

    def _is_over(self, block: int) -> bool:
        return (self._newest - block) * self._size > MEMORIES_READ * (self.memory or 0)

    def _spoil(self) -> None:
        if self.memory:
            self._reading = None

    def _read(self) -> Sums:
        numbers = np.array(sorted(self.by_number), dtype=np.int64)
        factors = unchecked(block_factors)(numbers, self._newest, self.memory or 1)
        blocks = [self.by_number[number] for number in numbers.tolist()]
        sums, n_experts = Sums(self.n_experts), self.n_experts
        sums.feed = _weighted([block.feed for block in blocks], factors.tolist())
        squares = _weighted([block.feed[_SQUARED_WEIGHTS] for block in blocks], (factors * factors).tolist())
        sums.feed[_SQUARED_WEIGHTS] = squares
        sums.matrix = _weighted([block.matrix[:, :n_experts] for block in blocks], factors.tolist())
        if any(len(block.histograms) for block in blocks):
            bins = [block.all_histograms()[:n_experts] for block in blocks]
            sums.histograms = _weighted(bins, factors.tolist())
        for shadow in {shadow: None for block in blocks for shadow in block.shadows}:
            sums.shadows[shadow] = _weighted([block.of_shadow(shadow) for block in blocks], factors.tolist())
        return sums

    # --- comparing and storing ---

    def copy(self) -> "Blocks":
        """Blocks of their own with the same values."""
        twin = Blocks(self.memory)
        twin._newest, twin.n_experts = self._newest, self.n_experts
        twin.by_number = {block: sums.copy() for block, sums in self.by_number.items()}
        twin._reading = None if self.memory else twin.by_number[0]
        return twin

    def equals(self, other: "Blocks") -> bool:
        """Whether all blocks agree, bit for bit; a block of zeros is as good as none."""
        nothing = Sums()
        every = self.by_number.keys() | other.by_number.keys()
        return all(self.by_number.get(block, nothing).equals(other.by_number.get(block, nothing)) for block in every)

    def is_zero(self) -> bool:
        """Whether nothing has been put in."""
        return all(sums.is_zero() for sums in self.by_number.values())

    def to_bytes(self, n_experts: int) -> bytes:
        """Stored form; empty if nothing has been put in."""
        full = {block: sums for block, sums in sorted(self.by_number.items()) if not sums.is_zero()}
        return _encode({block: sums.to_bytes(n_experts) for block, sums in full.items()}) if full else b""

    @classmethod
    def from_bytes(cls, data: bytes, n_experts: int, memory: int | None) -> "Blocks":
        """Blocks of ``to_bytes``, with room for ``n_experts``."""
        blocks = cls(memory)
        for block, stored in _decode(data).items() if data else ():
            blocks.by_number[block] = Sums.from_bytes(stored, n_experts)
        if not memory:
            blocks._reading = blocks.by_number[0]
        blocks.reserve(n_experts)
        return blocks


def _weighted(parts: list[IntArray], factors: list[float]) -> IntArray:
    """Their weighted sum, in order, so that the same blocks give the same bits."""
    total = np.zeros(parts[0].shape)
    for part, factor in zip(parts, factors, strict=True):
        total += factor * part
    return np.rint(total).astype(np.int64)
