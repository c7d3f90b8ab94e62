"""Lives and what is written of them, as files; and digests of both.

A *life* is what is sent to the service. Its file has one JSON value a line: first a header (``Life`` without ``sent``),
then a list a record (``Sent``). A *tape* is what the service writes. Its file has one JSON object a line:

``{"after": N, "topic": …, "partition": …, "key": …, "value": …, "at": …, "headers": [[NAME, VALUE]], "revision": …}``
    An output, written when N records of the life were sent. ``value`` null: a tombstone.
``{"after": N, "numbers": {"FEED/COLUMN": …}}``
    The feeds' sums at that moment, each 100 records: those that are not zero. A number, or the digest of a row.
``{"after": N, "end": true, "life": DIGEST}``
    The last line.

Bytes are text in UTF-8; other bytes are lone surrogates, as Python's ``surrogateescape`` has them.
"""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from stream_peer.events.topics import DEAD_LETTERS, FEED_LOG, KEYED_BY_FEED

FORMAT = 1
EVERY = 100
"""Records of a life between two looks."""

KINDS = (FEED_LOG, DEAD_LETTERS, "questions", "feeds", "numbers")
"""What has a running digest of its own. ``feeds``: which revisions there are follows the moments of publishing."""

Numbers = Mapping[str, int | str]
Driver = Literal["replay", "worker"]


class Sent(NamedTuple):
    """A record that is sent. ``topic``: also ``line`` (of a file), ``tick`` (time passes) and ``move`` (of a feed)."""

    topic: str
    at: int
    key: str | None
    value: str | None
    headers: Sequence[tuple[str, str]] = ()


class Life(NamedTuple):
    """What is sent, under which settings, and who drives the stages.

    ``ends``: only the end is compared. ``producers``: who may say what; everybody may say everything if left out.
    """

    name: str
    driver: Driver
    settings: Mapping[str, Any]
    sent: Sequence[Sent]
    partitions: int = 1
    feed_log_partitions: int = 1
    ends: bool = False
    producers: Mapping[str, Any] | None = None

    @property
    def header(self) -> dict[str, Any]:
        return {"format": FORMAT, **self._asdict(), "sent": None}

    @property
    def digest(self) -> str:
        return digest_of(line.encode() for line in _lines(self))


class Written(NamedTuple):
    """A record that is written."""

    after: int
    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    at: int
    headers: Sequence[tuple[str, bytes]]

    @property
    def place(self) -> tuple[str, int, str | None]:
        """Within one place the order counts: of the feed-log that is a partition, of all else a key."""
        key = None if self.topic == FEED_LOG else text_of(self.key)
        return self.topic, self.partition, key

    @property
    def kind(self) -> str:
        if self.topic in (FEED_LOG, DEAD_LETTERS):
            return self.topic
        return "feeds" if self.topic in KEYED_BY_FEED else "questions"

    @property
    def revision(self) -> int | None:
        found = self.decoded()
        return found.get("revision") if isinstance(found, dict) else None

    def decoded(self) -> Any:
        try:
            return None if self.value is None else json.loads(self.value)
        except ValueError:
            return None

    def plain(self) -> dict[str, Any]:
        return {
            **self._asdict(),
            "key": text_of(self.key),
            "value": text_of(self.value),
            "revision": self.revision,
            "headers": [[name, text_of(value)] for name, value in self.headers],
        }


class Tape:
    """Takes what a life leaves, in order."""

    def __init__(self) -> None:
        self.after = 0
        self.written: list[Written] = []
        self.looks: list[tuple[int, Numbers]] = []
        self.digests: dict[str, list[str]] = {kind: [] for kind in KINDS}
        self._sums: Counter[str] = Counter()
        self._met: Counter[tuple[str, int, str | None]] = Counter()

    def take(self, record: Written) -> None:
        """An output; whole digests are sums over records, so that only the order within a place counts."""
        self.written.append(record)
        self._met[record.place] += 1
        content = repr((self._met[record.place], *record[1:6], [(name, value) for name, value in record.headers]))
        number = int.from_bytes(hashlib.blake2b(content.encode(), digest_size=16).digest(), "big")
        self._sums[record.kind] = (self._sums[record.kind] + number) % 2**128

    def look(self, numbers: Numbers) -> None:
        """The sums as they are now."""
        self.looks.append((self.after, numbers))
        for kind in KINDS[:-1]:
            self.digests[kind].append(digest_of([b"%d" % self._sums[kind]]))
        self.digests["numbers"].append(digest_of([repr(sorted(numbers.items())).encode()]))

    def places(self) -> dict[tuple[str, int, str | None], list[Written]]:
        """Records by place."""
        found = defaultdict[tuple[str, int, str | None], list[Written]](list)
        for record in self.written:
            found[record.place].append(record)
        return dict(found)


def digest_of(parts: Iterable[bytes]) -> str:
    """Sixteen hexadecimal digits for bytes."""
    found = hashlib.blake2b(digest_size=8)
    for part in parts:
        found.update(part)
    return found.hexdigest()


def text_of(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="surrogateescape")


def bytes_of(text: str | None) -> bytes | None:
    return None if text is None else text.encode(errors="surrogateescape")


def write_life(life: Life, directory: Path) -> None:
    with (directory / f"{life.name}.jsonl").open("w") as file:
        file.writelines(line + "\n" for line in _lines(life))


def read_life(path: Path) -> Life:
    header, *rest = map(json.loads, path.read_text().splitlines())
    if header.pop("format") != FORMAT:
        msg = f"{path} is in another format than {FORMAT}"
        raise ValueError(msg)
    sent = [Sent(topic, at, key, value, headers) for topic, at, key, value, headers in rest]
    return Life(**{**header, "sent": sent})


def write_tape(life: Life, tape: Tape, directory: Path) -> None:
    looks = [{"after": after, "numbers": numbers} for after, numbers in tape.looks]
    rows = sorted([*(record.plain() for record in tape.written), *looks], key=lambda row: int(row["after"]))
    end = {"after": len(life.sent), "end": True, "life": life.digest}
    with (directory / f"{life.name}.jsonl").open("w") as file:
        file.writelines(json.dumps(row) + "\n" for row in (*rows, end))


def read_tape(path: Path) -> Tape:
    tape = Tape()
    for row in map(json.loads, path.read_text().splitlines()):
        if "numbers" in row:
            tape.after = row["after"]
            tape.look(row["numbers"])
        elif "topic" in row:
            del row["revision"]
            headers = [(name, bytes_of(value) or b"") for name, value in row["headers"]]
            plain = {**row, "key": bytes_of(row["key"]), "value": bytes_of(row["value"]), "headers": headers}
            tape.take(Written(**plain))
    return tape


def _lines(life: Life) -> Iterator[str]:
    yield json.dumps(life.header, sort_keys=True)
    yield from (json.dumps(sent) for sent in life.sent)
