"""Files of a replay: events and outputs as JSON lines, compressed or not, and the feed-log while it is folded."""

import codecs
import gzip
import io
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import SpooledTemporaryFile, gettempdir
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple

import msgspec

from stream_peer.errors import UnreadableFileError, UnwritableFileError
from stream_peer.events import topics
from stream_peer.events.incoming import MAX_EVENT_BYTES
from stream_peer.events.times import Milliseconds
from stream_peer.log.dead_letters import refusal_of
from stream_peer.log.stage import LogRecord, Output

MOST_BLANK = 1_000_000
"""Blank lines one after the other beyond which a file is none of events: a few bytes of gzip may hold any number."""

_GZIP = b"\x1f\x8b"
_MARK = codecs.BOM_UTF8
_UTF_16 = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16", b"{\0": "utf-16-le", b"\0{": "utf-16-be"}
"""Text of two bytes a letter, by its first two: a byte order mark, or the brace of the first event."""
_AT_ONCE = 1 << 16
_LEVEL = 6  # of gzip

Progress = Callable[[int, int], None]
"""Told how many of how many are done: bytes read, events folded or written."""


class FileLine(NamedTuple):
    """A line of a file, and where it stands: ``forecasts.jsonl:17``."""

    place: str
    payload: bytes


def read_lines(path: Path, progress: Progress | None = None) -> Iterator[FileLine]:
    """The lines of a file that are not blank; gzip and UTF-16 are told by the first bytes, whatever the file's name.

    Of a line that is longer than an event may be, only so much is kept that it is refused for its length.

    Raises
    ------
    UnreadableFileError
        If there is no such file, it may not be read, it is damaged, or has ``MOST_BLANK`` blank lines in a row.
    """
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            for number, line in enumerate(lines_of(plain_text(file), path.name), 1):
                if progress is not None and number % 4096 == 0 and size:
                    progress(file.tell(), size)
                yield line
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        msg = f"{path} is a damaged gzip file: {error}"
        raise UnreadableFileError(msg) from error
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror or error}"
        raise UnreadableFileError(msg) from error


def plain_text(file: io.BufferedReader) -> io.BufferedReader:
    """The bytes of a file as UTF-8. Only looked at, never read again from the start: it may be a pipe."""
    if file.peek(len(_GZIP)).startswith(_GZIP):
        file = io.BufferedReader(gzip.GzipFile(fileobj=file), _AT_ONCE)
    encoding = _UTF_16.get(file.peek(2)[:2])
    return file if encoding is None else io.BufferedReader(_Recoded(file, encoding), _AT_ONCE)


class _Recoded(io.RawIOBase):
    """Text in another encoding, as UTF-8; what is no text in it becomes U+FFFD."""

    def __init__(self, file: io.BufferedIOBase, encoding: str) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._ready = b""

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Some bytes more; 0 at the end."""
        while not self._ready:
            raw = self._file.read(_AT_ONCE)
            self._ready = self._decoder.decode(raw, final=not raw).encode()
            if not raw:
                break
        size = min(len(buffer), len(self._ready))
        buffer[:size], self._ready = self._ready[:size], self._ready[size:]
        return size


def lines_of(file: io.BufferedIOBase, name: str) -> Iterator[FileLine]:
    """The lines of plain text that are not blank, as those of a file of this name."""
    number = blank = 0
    while line := bounded_line(file, MAX_EVENT_BYTES):
        number += 1
        payload = line.removeprefix(_MARK).strip() or (line if len(line) > MAX_EVENT_BYTES + 1 else b"")
        if payload:
            blank = 0
            yield FileLine(f"{name}:{number}", payload)
            continue
        blank += 1
        if blank > MOST_BLANK:
            msg = f"{name} has more than {MOST_BLANK:,} blank lines one after the other: it is no file of events"
            raise UnreadableFileError(msg)


def bounded_line(file: io.BufferedIOBase, longest: int) -> bytes:
    """The next line with its end; of a longer one than ``longest`` bytes two bytes more than these. Empty: no more."""
    line = file.readline(longest + 2)
    if len(line) > longest + 1 and not line.endswith(b"\n"):
        while (rest := file.readline(_AT_ONCE)) and not rest.endswith(b"\n"):
            pass
    return line


class OutputFiles:
    """Writes outputs into one file of JSON lines a topic; a context manager that closes them."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        names = (*topics.OUTPUTS, topics.FEED_LOG)
        self._files: dict[str, BinaryIO] = {name: (directory / f"{name}.jsonl").open("wb") for name in names}

    def __enter__(self) -> "OutputFiles":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        failed = None
        for file in self._files.values():
            try:
                file.close()
            except OSError as problem:  # what was buffered does not fit; the descriptor is closed all the same
                failed = problem
        if failed is not None and error is None:
            raise self._unwritable(failed)

    def write(self, output: Output) -> None:
        """Append an output's value; of a dead letter what was wrong and how it began, since it may be no JSON.

        Raises
        ------
        UnwritableFileError
            If there is no room for it. Leaving the context raises it for what was still buffered.
        """
        file = self._files.get(output.topic)
        if file is None or (output.value is None and output.topic != topics.DEAD_LETTERS):
            return
        value = _letter(output) if output.topic == topics.DEAD_LETTERS else output.value or b""
        try:
            file.write(value + b"\n")
        except OSError as problem:
            raise self._unwritable(problem) from problem

    def _unwritable(self, problem: OSError) -> UnwritableFileError:
        return UnwritableFileError(f"the topics cannot be written to {self._directory}: {problem.strerror or problem}")


def _letter(output: Output) -> bytes:
    payload = (output.value or b"").decode("utf-8", "replace")
    return msgspec.json.encode({**refusal_of(output.headers)._asdict(), "payload": payload})


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
        self._records = 0

    def __len__(self) -> int:
        return self._records

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
        self._records += 1

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


@contextmanager
def written_whole(file: Path, *, packed: bool) -> Iterator[Callable[[bytes], object]]:
    """Write a file, which has its name only when it is whole; the same bytes give the same file, by gzip too.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    unfinished = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with unfinished.open("wb") as plain:
            if packed:
                with gzip.GzipFile(filename="", mode="wb", fileobj=plain, compresslevel=_LEVEL, mtime=0) as to:
                    yield to.write
            else:
                yield plain.write
        unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)
