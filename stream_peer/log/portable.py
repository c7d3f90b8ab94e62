"""A feed as lines of text, which can be kept, moved to another cluster, and read without Kafka.

The first line is a header: what this is, whose it is, and under which settings and secret it came about. Then come the
feed itself, its ledger by question, rounds of which parts are missing, and the questions with what was said of them;
a last line counts the others, so that a file that was cut off is known as such.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from stream_peer.errors import FeedTransferError
from stream_peer.events.feed_log import Place, Round, Verdict
from stream_peer.events.incoming import QuestionWeight
from stream_peer.events.times import Milliseconds
from stream_peer.feeds.standing import Standing
from stream_peer.log.names import Given

FORMAT = "stream-peer-feed"
VERSION = 2
"""Raised when an earlier release could not read what is written."""


class Header(msgspec.Struct, frozen=True, kw_only=True, tag="header", tag_field="kind"):
    """What the lines are.

    ``revision`` is the last one that was published, ``next_revision`` the one that the next record of the feed-log
    gets; ``applied`` the last offset of the feed-log that is in it and ``feed_clock`` its time, ``forecasts`` such an
    offset of each partition of ``forecast-events``. ``feed_schema`` and ``question_schema`` are of the stored forms
    within the lines. ``secret`` is a fingerprint, ``forgotten`` are digests of ids that are refused; ``names`` are the
    later ids of renamed experts, by their first; ``pseudonyms`` is the fingerprint of the key that ids were replaced
    with.
    """

    format: str = FORMAT
    version: int = VERSION
    product: str
    feed: str
    made_at: str
    revision: int
    next_revision: int
    applied: int
    forecasts: dict[int, int]
    feed_clock: Milliseconds
    settings: dict[str, Any]
    settings_hash: str
    secret: str
    forgotten: list[bytes]
    names: Given = {}
    pseudonyms: str | None = None
    feed_schema: int
    question_schema: int


class FeedLine(msgspec.Struct, frozen=True, kw_only=True, tag="feed", tag_field="kind"):
    """The feed without its ledger. Experts are numbered by their places, from 0; ``settled`` are sums, packed."""

    experts: list[str]
    teams: dict[str, str]
    excluded: list[str]
    meaning: dict[str, Any]
    settled: bytes
    standing: Standing


class EntryLine(msgspec.Struct, frozen=True, kw_only=True, tag="entry", tag_field="kind"):
    """A question in the ledger; ``rounds`` are its packed facts, ``first_final`` those of its scored forecast."""

    question_id: str
    weight: QuestionWeight
    evidence: Verdict
    touched: Milliseconds
    ordinal: Place
    rounds: list[bytes]
    first_final: bytes | None
    revision: int
    provisional: Verdict = "open"


class ExpiredLine(msgspec.Struct, frozen=True, kw_only=True, tag="expired", tag_field="kind"):
    """A question that has left the ledger."""

    question_id: str
    at: Milliseconds


class WaitingLine(msgspec.Struct, frozen=True, kw_only=True, tag="waiting", tag_field="kind"):
    """The parts of a round that are there so far."""

    round: Round


class QuestionLine(msgspec.Struct, frozen=True, kw_only=True, tag="question", tag_field="kind"):
    """A question as the question stage stores it, or the stub that is left of it; in one piece.

    ``clock``: the time of its partition, up to which what is due of it was said.
    """

    question_id: str
    clock: Milliseconds
    stored: bytes


class EndLine(msgspec.Struct, frozen=True, kw_only=True, tag="end", tag_field="kind"):
    """How many lines come before this one."""

    lines: int


Line = Header | FeedLine | EntryLine | ExpiredLine | WaitingLine | QuestionLine | EndLine

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Line).decode
_decode_version = msgspec.json.Decoder(dict[str, Any]).decode


def encode_line(line: Line) -> bytes:
    """One line, with its end."""
    return _encode(line) + b"\n"


def with_end(lines: Iterable[Line]) -> Iterator[Line]:
    """The lines, and one that counts them."""
    count = 0
    for count, line in enumerate(lines, 1):  # noqa: B007 - counted behind the loop
        yield line
    yield EndLine(lines=count)


class LineReader:
    """Reads line after line, and knows what must come first and last.

    Attributes
    ----------
    ended : bool
        Whether the last line was read.
    """

    def __init__(self) -> None:
        self.ended = False
        self._number = 0

    def read(self, text: bytes) -> Line:
        """The next line.

        Raises
        ------
        FeedTransferError
            If it is none, or cannot come next.
        """
        self._number += 1
        if self._number == 1:
            _check_version(text)
        try:
            line: Line = _decode(text)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise FeedTransferError(f"line {self._number} cannot be read: {error}") from None
        if self.ended or (self._number == 1) is not isinstance(line, Header):
            raise FeedTransferError(f"line {self._number} is a {line.__struct_config__.tag}, which cannot come there")
        if isinstance(line, EndLine):
            self._end(line)
        return line

    def _end(self, line: EndLine) -> None:
        self.ended = True
        if line.lines != self._number - 1:
            raise FeedTransferError(f"{line.lines:,} lines were written, {self._number - 1:,} are there")

    def finish(self) -> None:
        """There are no more lines.

        Raises
        ------
        FeedTransferError
            If there should be.
        """
        if not self.ended:
            raise FeedTransferError(f"it is not whole: it breaks off behind line {self._number:,}")


def decode_lines(lines: Iterable[bytes]) -> Iterator[Line]:
    """All lines up to the end, the header first; without the one that counts them.

    Raises
    ------
    FeedTransferError
        If this is no such thing, of another version, damaged, or not whole.
    """
    reader = LineReader()
    for text in lines:
        line = reader.read(text)
        if not isinstance(line, EndLine):
            yield line
    reader.finish()


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
