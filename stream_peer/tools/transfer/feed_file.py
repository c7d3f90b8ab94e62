"""Exported feeds as files: gzip, one JSON object a line."""

import gzip
import io
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from stream_peer import __version__
from stream_peer.errors import FeedTransferError
from stream_peer.events.times import to_iso
from stream_peer.log.portable import Line, decode_lines, encode_line, with_end
from stream_peer.tools.replay.jsonl import bounded_line
from stream_peer.tools.transfer.stored_feed import Origin

_LEVEL = 6
LONGEST = 256_000_000
"""Bytes of a line beyond which it is of no exported feed: a few of gzip may hold a line of any length."""


def origin(document: Mapping[str, Any] | None = None) -> Origin:
    """The release that runs, and the time; ``document``: settings, where the state names none."""
    return Origin(__version__, to_iso(int(datetime.now(tz=UTC).timestamp() * 1000)), document or {})


def write_feed(file: Path, lines: Iterable[Line]) -> int:
    """Write a feed; the same lines give the same bytes. The file is there when it is whole; how many bytes it has.

    Raises
    ------
    FeedTransferError
        If it cannot be written.
    """
    unfinished = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with (
            unfinished.open("wb") as plain,
            gzip.GzipFile(filename="", mode="wb", fileobj=plain, compresslevel=_LEVEL, mtime=0) as packed,
        ):
            for line in with_end(lines):
                packed.write(encode_line(line))
        unfinished.replace(file)
    except OSError as error:
        msg = f"{file} cannot be written: {error.strerror}"
        raise FeedTransferError(msg) from None
    finally:
        unfinished.unlink(missing_ok=True)
    return file.stat().st_size


def _bounded(file: io.BufferedIOBase) -> Iterator[bytes]:
    while line := bounded_line(file, LONGEST):
        if len(line) > LONGEST + 1:
            msg = f"a line is longer than {LONGEST:,} bytes; no release writes such lines"
            raise FeedTransferError(msg)
        yield line


def read_feed(file: Path) -> Iterator[Line]:
    """The lines of a file, the header first.

    Raises
    ------
    FeedTransferError
        If it cannot be read, or is no exported feed, or is not whole. While the lines are read, too.
    """
    try:
        with gzip.open(file) as lines:
            yield from decode_lines(_bounded(lines))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        msg = f"{file} is no exported feed, or a damaged one: {error}; export the feed again"
        raise FeedTransferError(msg) from None
    except OSError as error:
        msg = f"{file} cannot be read: {error.strerror or error}"
        raise FeedTransferError(msg) from None
    except FeedTransferError as error:
        msg = f"{file}: {error}"
        raise FeedTransferError(msg) from None
