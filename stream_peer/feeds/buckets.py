"""The sums of a feed by buckets of questions.

With ``memory`` older buckets count less when they are read. A question belongs to the bucket of its ordinal for good,
so a late correction goes where the question went, and nothing that is stored is ever multiplied. Without ``memory``
there is one bucket.
"""

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from stream_peer.feeds.columns import EXPERT, FEED, SHADOW, SUBSAMPLE, VOTE_RULES
from stream_peer.feeds.sums import BINS, NOTHING, VOTES_SHAPE, Contribution, Sums
from stream_peer.numerics.arguments import FloatArray, IndexArray, IntArray, unchecked
from stream_peer.numerics.error_rates.forgetting import MEMORIES_READ, bucket_factors, bucket_size

_SQUARED_WEIGHTS = [
    *(FEED.at("moment_weight2", rule) for rule in VOTE_RULES),
    FEED.at("class_weight2"),
    FEED.at("group_weight2"),
]
_NO_SHADOW: FloatArray = np.zeros(SHADOW.size)
_FEW = 4
"""An expert of so many is a few: their histograms alone are added up."""
_SQUARED_VOTES = SUBSAMPLE.at("votes_weight2")

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[int, bytes]).decode


class _WeightedSum:
    """The sum of buckets, each times its factor, in floats. Squares of weights are times the square of the factor."""

    def __init__(self, n_experts: int) -> None:
        self._feed: FloatArray = np.zeros(FEED.size)
        self._votes: FloatArray = np.zeros(VOTES_SHAPE)
        self._matrix: FloatArray = np.zeros((EXPERT.size, n_experts))
        self._shadows: dict[int, FloatArray] = {}
        self._buckets: list[tuple[Sums, float]] = []
        self._bins: FloatArray | None = None

    def add(self, bucket: Sums, factor: float) -> None:
        """Add a bucket."""
        self._buckets.append((bucket, factor))
        of_feed, of_votes = np.full(len(self._feed), factor), np.full(VOTES_SHAPE[-1], factor)
        of_feed[_SQUARED_WEIGHTS] = of_votes[_SQUARED_VOTES] = factor * factor
        self._feed += of_feed * np.array(bucket.feed, np.float64)
        self._votes += of_votes * bucket.votes
        self._matrix += factor * bucket.matrix[:, : self._matrix.shape[1]]
        for shadow, columns in bucket.shadows.items():
            total = self._shadows.get(shadow, _NO_SHADOW).copy()
            total += factor * columns
            self._shadows[shadow] = total

    def copy(self) -> "_WeightedSum":
        """A sum of its own with the same values."""
        twin = _WeightedSum(0)
        twin._feed, twin._votes, twin._matrix = self._feed.copy(), self._votes.copy(), self._matrix.copy()
        twin._shadows = dict(self._shadows)
        return twin

    def add_bins(self, experts: IndexArray, total: FloatArray) -> None:
        """Add the weighted histograms of some experts, (n, BINS). Those of all are kept once many are asked for."""
        if self._bins is None and _FEW * len(experts) < self._matrix.shape[1]:
            _add_bins(self._buckets, experts, total)
            return
        if self._bins is None:
            everybody = np.arange(self._matrix.shape[1], dtype=np.int32)
            self._bins = np.zeros((len(everybody), BINS))
            _add_bins(self._buckets, everybody, self._bins)
        total += self._bins.take(experts, axis=0)

    def fill(self, sums: Sums) -> None:
        """Put the rounded values into sums."""
        sums.feed = np.rint(self._feed).astype(np.int64).tolist()
        sums.votes = np.rint(self._votes).astype(np.int64)
        sums.matrix = np.rint(self._matrix).astype(np.int64)
        sums.shadows = {shadow: np.rint(columns).astype(np.int64) for shadow, columns in self._shadows.items()}


class _ReadSums(Sums):
    """Sums to be read, of weighted buckets. Histograms are the largest part: they are added up where they are read."""

    def __init__(self, older: _WeightedSum, newest: Sums, factor: float) -> None:
        super().__init__()
        self._older, self._newest, self._factor = older, newest, factor
        total = older.copy()
        total.add(newest, factor)
        total.fill(self)

    def read_histograms(self, experts: IndexArray) -> IntArray:
        """Histograms of some experts: those of the buckets are added up for them alone."""
        total = np.zeros((len(experts), BINS))
        self._older.add_bins(experts, total)
        _add_bins([(self._newest, self._factor)], experts, total)
        return np.rint(total, out=total).astype(np.int64)


def _add_bins(buckets: Sequence[tuple[Sums, float]], experts: IndexArray, total: FloatArray) -> None:
    """Add histograms of buckets, each times its factor. Buckets in which no forecast was counted have none."""
    for bucket, factor in buckets:
        if len(bucket.histograms):
            total += factor * bucket.read_histograms(experts)


class Buckets:
    """Sums by buckets of questions.

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
        self._size = unchecked(bucket_size)(memory) if memory else 0
        self._newest = 0
        self.by_number: dict[int, Sums] = {0: Sums()}
        self._sums: Sums | None = None if memory else self.by_number[0]
        self._older: _WeightedSum | None = None
        self.n_experts = 0

    def reserve(self, n_experts: int) -> None:
        """Have room for at least that many experts."""
        if n_experts <= self.n_experts:
            return
        self.n_experts = n_experts
        for sums in self.by_number.values():
            sums.reserve(n_experts)
        self._changed()

    def reach(self, ordinal: int) -> None:
        """Note a question of this ordinal, and drop buckets that are no longer read."""
        newest = self._bucket_of(ordinal)
        if newest > self._newest:
            self._newest = newest
            for bucket in [bucket for bucket in self.by_number if self._is_over(bucket)]:
                del self.by_number[bucket]
            self._changed()

    def add(self, part: Contribution, ordinal: int) -> None:
        """Put a question in."""
        if self.memory:
            self._fold(ordinal, Sums.add, part)
        else:
            self.by_number[0].add(part)

    def subtract(self, part: Contribution, ordinal: int) -> None:
        """Take a question out."""
        if self.memory:
            self._fold(ordinal, Sums.subtract, part)
        else:
            self.by_number[0].subtract(part)

    def evaluations(self, places: IndexArray | None = None) -> list[tuple[int, Contribution]]:
        """What scored forecasts have added to each bucket, with the ordinal of a question of the bucket.

        ``places``: other places of the experts, -1 of those to be left out.
        """
        found = ((number * self._size, sums.evaluations(places)) for number, sums in self.by_number.items())
        return [(ordinal, part) for ordinal, part in found if part is not NOTHING]

    @property
    def sums(self) -> Sums:
        """The sums as they count now. Not to be changed."""
        if self._sums is None:
            self._sums = self._read()
        return self._sums

    def _fold(self, ordinal: int, operation: Callable[[Sums, Contribution], None], part: Contribution) -> None:
        bucket = self._bucket_of(ordinal)
        if self._is_over(bucket):
            return
        sums = self.by_number.get(bucket)
        if sums is None:
            sums = self.by_number[bucket] = Sums()
            sums.reserve(self.n_experts)
            self._older = None
        operation(sums, part)
        self._changed(bucket)

    def _bucket_of(self, ordinal: int) -> int:
        return ordinal // self._size if self._size else 0

    def _is_over(self, bucket: int) -> bool:
        return (self._newest - bucket) * self._size > MEMORIES_READ * (self.memory or 0)

    def _changed(self, bucket: int | None = None) -> None:
        """A bucket has changed, or (None) which there are, or their room: what was read is read no more."""
        if not self.memory:
            return
        if self._sums is not None:
            self._sums.version += 1  # readings of it are stale
            self._sums = None
        if bucket is None or bucket != max(self.by_number):
            self._older = None

    def _read(self) -> Sums:
        """The weighted sum of all buckets. That of all but the newest is kept: seldom does another one change.

        Buckets are added in their order, so that the same ones give the same bits.
        """
        numbers = sorted(self.by_number)
        factors = unchecked(bucket_factors)(np.array(numbers, dtype=np.int64), self._newest, self.memory or 1).tolist()
        *older, newest = zip((self.by_number[number] for number in numbers), factors, strict=True)
        if self._older is None:
            self._older = _WeightedSum(self.n_experts)
            for bucket, factor in older:
                self._older.add(bucket, factor)
        return _ReadSums(self._older, *newest)

    # --- comparing and storing ---

    def copy(self) -> "Buckets":
        """Buckets of their own with the same values."""
        twin = Buckets(self.memory)
        twin._newest, twin.n_experts = self._newest, self.n_experts
        twin.by_number = {bucket: sums.copy() for bucket, sums in self.by_number.items()}
        twin._sums = None if self.memory else twin.by_number[0]
        return twin

    def equals(self, other: "Buckets") -> bool:
        """Whether all buckets agree, bit for bit; a bucket of zeros is as good as none."""
        nothing = Sums()
        every = self.by_number.keys() | other.by_number.keys()
        return all(self.by_number.get(bucket, nothing).equals(other.by_number.get(bucket, nothing)) for bucket in every)

    def is_zero(self) -> bool:
        """Whether nothing has been put in."""
        return all(sums.is_zero() for sums in self.by_number.values())

    def to_bytes(self, n_experts: int) -> bytes:
        """Stored form; empty if nothing has been put in."""
        full = {bucket: sums for bucket, sums in sorted(self.by_number.items()) if not sums.is_zero()}
        return _encode({bucket: sums.to_bytes(n_experts) for bucket, sums in full.items()}) if full else b""

    @classmethod
    def from_bytes(cls, data: bytes, n_experts: int, memory: int | None) -> "Buckets":
        """Buckets of ``to_bytes``, with room for ``n_experts``."""
        buckets = cls(memory)
        for bucket, stored in _decode(data).items() if data else ():
            buckets.by_number[bucket] = Sums.from_bytes(stored, n_experts)
        if not memory:
            buckets._sums = buckets.by_number[0]
        buckets.reserve(n_experts)
        return buckets
