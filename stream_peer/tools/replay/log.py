"""The feed-log of a replay, kept for as long as somebody may have to fold it again."""

import struct
from collections.abc import Iterator
from tempfile import SpooledTemporaryFile, gettempdir

import msgspec

from stream_peer.errors import UnwritableFileError
from stream_peer.events.times import Milliseconds
from stream_peer.log.stage import LogRecord

IN_MEMORY = 64_000_000
"""Bytes of a partition's log up to which it stays out of a temporary file."""

_Row = tuple[int, Milliseconds, bytes | None, bytes | None]

_LENGTH = struct.Struct("<I")
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Row).decode


class KeptLog:
    """One partition's records in order; close it at the end. Headers are not kept: the feed-log's records have none."""

    def __init__(self, in_memory: int = IN_MEMORY) -> None:
        self._file = SpooledTemporaryFile(max_size=in_memory)  # noqa: SIM115 - lives as long as the replay

    def append(self, record: LogRecord) -> None:
        """Keep a record.

        Raises
        ------
        UnwritableFileError
            If there is no room for it.
        """
        row = _encode((record.offset, record.timestamp, record.key, record.value))
        try:
            self._file.write(_LENGTH.pack(len(row)) + row)
        except OSError as error:
            msg = f"no room in {gettempdir()} for what a rebuild needs: {error.strerror or error}"
            raise UnwritableFileError(msg) from error

    def up_to(self, offset: int) -> Iterator[LogRecord]:
        """The records from the first to that of ``offset``. Append nothing before the last of them was taken.

        Others may read at the same time: each goes on from where it was.
        """
        self._file.seek(0)
        while header := self._file.read(_LENGTH.size):
            record = LogRecord(*_decode(self._file.read(_LENGTH.unpack(header)[0])))
            if record.offset > offset:
                break
            position = self._file.tell()
            yield record
            self._file.seek(position)
        self._file.seek(0, 2)

    def close(self) -> None:
        """Let the records go."""
        self._file.close()
