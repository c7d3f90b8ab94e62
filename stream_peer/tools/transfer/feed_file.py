"""Exported feeds as files: gzip, one JSON object a line.

The first line is a header: what this is, whose it is, and under which settings and secret it came about. Then come
the feed's records of the feed-log and its questions. A last line counts the others: without it a file was cut off.
"""

import gzip
import hashlib
import io
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from stream_peer.errors import FeedTransferError
from stream_peer.events.feed_log import AnyFeedLogRecord
from stream_peer.events.times import Milliseconds
from stream_peer.log.ids import Given
from stream_peer.questions.moved import QuestionLine
from stream_peer.tools.replay.files import bounded_line, written_whole

FORMAT = "stream-peer-feed"
VERSION = 3
"""Raised when an earlier release could not read what is written."""

LONGEST = 256_000_000
"""Bytes of a line beyond which it is of no exported feed: a few of gzip may hold a line of any length."""
_DIGEST_BYTES = 8


class Header(msgspec.Struct, frozen=True, kw_only=True, tag="header", tag_field="kind"):
    """What the lines are.

    ``revision`` is the last one that was published; ``forecasts`` the last offset of each partition of
    ``forecast-events`` that is in it. ``meaning``: the settings that give its numbers their meaning.
    ``question_schema`` is of the stored form of questions. ``secret`` is a
    fingerprint, ``forgotten`` are digests of ids that are refused; ``names`` are the later ids of renamed experts, by
    their first; ``pseudonyms`` is the fingerprint of the key that ids were replaced with.
    """

    format: str = FORMAT
    version: int = VERSION
    product: str
    feed: str
    made_at: str
    revision: int
    forecasts: dict[int, int]
    settings: dict[str, Any]
    settings_hash: str
    meaning: dict[str, Any]
    secret: str
    forgotten: list[bytes]
    names: Given = {}
    pseudonyms: str | None = None
    question_schema: int


class RecordLine(msgspec.Struct, frozen=True, kw_only=True, tag="record", tag_field="kind"):
    """A record of the feed-log, and its time."""

    at: Milliseconds
    record: AnyFeedLogRecord


class EndLine(msgspec.Struct, frozen=True, kw_only=True, tag="end", tag_field="kind"):
    """How many lines come before this one."""

    lines: int


Line = Header | RecordLine | QuestionLine | EndLine

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Line).decode
_decode_version = msgspec.json.Decoder(dict[str, Any]).decode


def write_feed(file: Path, lines: Iterable[Line]) -> int:
    """Write a feed; the same lines give the same bytes. The file is there when it is whole; how many bytes it has.

    Raises
    ------
    FeedTransferError
        If it cannot be written.
    """
    try:
        with written_whole(file, packed=True) as write:
            count = 0
            for count, line in enumerate(lines, 1):  # noqa: B007 - counted behind the loop
                write(_encode(line) + b"\n")
            write(_encode(EndLine(lines=count)) + b"\n")
    except OSError as error:
        msg = f"{file} cannot be written: {error.strerror}"
        raise FeedTransferError(msg) from None
    return file.stat().st_size


def read_feed(file: Path) -> Iterator[Line]:
    """The lines of a file, the header first; without the one that counts them.

    Raises
    ------
    FeedTransferError
        If it cannot be read, or is no exported feed, or is not whole. While the lines are read, too.
    """
    try:
        with gzip.open(file) as lines:
            yield from _decoded(_bounded(lines))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        msg = f"{file} is no exported feed, or a damaged one: {error}; export the feed again"
        raise FeedTransferError(msg) from None
    except OSError as error:
        msg = f"{file} cannot be read: {error.strerror or error}"
        raise FeedTransferError(msg) from None
    except FeedTransferError as error:
        msg = f"{file}: {error}"
        raise FeedTransferError(msg) from None


def digest_of_file(file: Path) -> str:
    """Names what a file holds. It can be read: a header was.

    Raises
    ------
    FeedTransferError
        If it cannot be read any more.
    """
    try:
        with file.open("rb") as plain:
            return hashlib.file_digest(plain, lambda: hashlib.blake2b(digest_size=_DIGEST_BYTES)).hexdigest()
    except OSError as error:
        msg = f"{file} cannot be read: {error.strerror or error}"
        raise FeedTransferError(msg) from None


def _bounded(file: io.BufferedIOBase) -> Iterator[bytes]:
    while line := bounded_line(file, LONGEST):
        if len(line) > LONGEST + 1:
            msg = f"a line is longer than {LONGEST:,} bytes; no release writes such lines"
            raise FeedTransferError(msg)
        yield line


def _decoded(texts: Iterable[bytes]) -> Iterator[Line]:
    number, end = 0, None
    for number, text in enumerate(texts, 1):
        line = _line(number, text)
        if end is not None or (number == 1) is not isinstance(line, Header):
            raise FeedTransferError(f"line {number} is a {line.__struct_config__.tag}, which cannot come there")
        if isinstance(line, EndLine):
            end = line
        else:
            yield line
    if end is None:
        raise FeedTransferError(f"it is not whole: it breaks off behind line {number:,}")
    if end.lines != number - 1:
        raise FeedTransferError(f"{end.lines:,} lines were written, {number - 1:,} are there")


def _line(number: int, text: bytes) -> Line:
    if number == 1:
        _check_version(text)
    try:
        line: Line = _decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise FeedTransferError(f"line {number} cannot be read: {error}") from None
    return line


def _check_version(text: bytes) -> None:
    """Whether a first line is one of ours, and of a version that this release reads."""
    try:
        named = _decode_version(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        named = {}
    if named.get("format") != FORMAT:
        msg = "it is no exported feed: it does not begin with the header of one"
        raise FeedTransferError(msg)
    if named.get("version") != VERSION:
        raise FeedTransferError(f"its format has version {named.get('version')!r}, this release reads {VERSION}")
