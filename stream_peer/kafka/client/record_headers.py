"""Names of headers that are not UTF-8. Kafka takes them from anybody, and aiokafka ends at them."""

from collections.abc import Iterator
from typing import Any

from aiokafka.consumer import fetcher
from aiokafka.record.default_records import _DefaultRecordBatchPy
from aiokafka.record.memory_records import MemoryRecords

_LENGTH = slice(8, 12)  # of a batch, behind its first offset: the bytes that follow
_BEFORE = 12
_MAGIC = 16
_WITH_HEADERS = 2


def read_any_names() -> None:
    """From here on consumers of aiokafka read records whatever the names of their headers."""
    fetcher.MemoryRecords = _Records


class _Records:
    """``MemoryRecords``, whose batches read any names."""

    def __init__(self, content: bytes) -> None:
        self._records = MemoryRecords(content)
        self._left = memoryview(content)

    def size_in_bytes(self) -> int:
        return int(self._records.size_in_bytes())

    def has_next(self) -> bool:
        return bool(self._records.has_next())

    def next_batch(self) -> Any:
        batch = self._records.next_batch()
        size = _BEFORE + int.from_bytes(self._left[_LENGTH], "big")
        content, self._left = self._left[:size], self._left[size:]
        return _Batch(batch, content) if content[_MAGIC] >= _WITH_HEADERS else batch


class _Batch:
    """A batch that is read as always; only if that fails for a name it is read again, slowly, from its first record.

    Whoever reads it skips the records that it has had.
    """

    __slots__ = ("_batch", "_content")

    def __init__(self, batch: Any, content: memoryview) -> None:
        self._batch = batch
        self._content = content

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __next__(self) -> Any:
        return next(self._batch)

    def __iter__(self) -> Iterator[Any]:
        try:
            yield from self._batch
        except UnicodeDecodeError:
            yield from _AnyNames(self._content)


class _AnyNames(_DefaultRecordBatchPy):
    """A batch in which a name is text whatever its bytes are."""

    _buffer: bytearray

    def _maybe_uncompress(self) -> None:
        super()._maybe_uncompress()
        if not isinstance(self._buffer, _Buffer):
            self._buffer = _Buffer(self._buffer)


class _Buffer(bytearray):
    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        return _Name(found) if isinstance(place, slice) else found


class _Name(bytearray):
    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:  # noqa: ARG002 - as it is asked for
        return super().decode(encoding, "backslashreplace")
