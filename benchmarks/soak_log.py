"""A changelog as it is after compaction, in a file: the last row of each key, and no tombstones."""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from stream_peer.log.changelog import ChangelogRow, StateRecord

OVERHEAD = 12
"""Bytes around key and value of a record in a batch of records."""

_decode = msgspec.msgpack.Decoder(StateRecord).decode


class Compacted:
    """One partition of a changelog. Rows are durable with ``commit``, as a broker's are when it acknowledges."""

    def __init__(self, file: Path) -> None:
        self._database = sqlite3.connect(file)
        self._database.execute("PRAGMA synchronous = OFF")
        self._database.execute("CREATE TABLE IF NOT EXISTS log (key BLOB PRIMARY KEY, place INTEGER, value BLOB)")
        (last,) = self._database.execute("SELECT max(place) FROM log").fetchone()
        self.end = 0 if last is None else last + 1

    def append(self, rows: Iterable[ChangelogRow]) -> int:
        """Append rows; the place of the first."""
        base = self.end
        for row in rows:
            if row.value is None:
                self._database.execute("DELETE FROM log WHERE key = ?", (row.key,))
            else:
                self._database.execute("REPLACE INTO log VALUES (?, ?, ?)", (row.key, self.end, row.value))
            self.end += 1
        return base

    def commit(self) -> None:
        """Make what was appended durable."""
        self._database.commit()

    def rows(self) -> Iterator[tuple[int, bytes, bytes]]:
        """All rows in the order of the log."""
        yield from self._database.execute("SELECT place, key, value FROM log ORDER BY place")

    def size(self) -> int:
        """Bytes of all rows."""
        (size,) = self._database.execute(
            "SELECT total(length(key) + length(value) + ?) FROM log", (OVERHEAD,)
        ).fetchone()
        return int(size)

    def values(self) -> Iterator[tuple[bytes, bytes]]:
        """Kind and newest value of every key that holds state."""
        for key, value in self._database.execute("SELECT key, value FROM log"):
            kind = key.partition(b"/")[2]
            if kind != b"head" and not kind.startswith(b"claim/"):
                newest = _decode(value).value
                if newest is not None:
                    yield kind, newest


class Held(NamedTuple):
    """How many there are of what stays because it was once said."""

    live: int
    stubs: int
    entries: int
    names: int


def held(question_state: Iterable[tuple[bytes, bytes]], feed_state: Iterable[tuple[bytes, bytes]]) -> Held:
    """Count what the state of the two stages holds, given as kinds and values.

    ``live``: questions with their forecasts; ``stubs``: those of which only feed and outcome are left; ``entries``: of
    the ledgers; ``names``: of questions that have left a ledger.
    """
    questions = Counter(_first(value) == "s" for kind, value in question_state if kind.startswith(b"q/"))
    entries = Counter(len(value) > _SHORTEST_ENTRY for kind, value in feed_state if kind.startswith(b"e/"))
    return Held(questions[False], questions[True], entries[True], entries[False])


_SHORTEST_ENTRY = 16


def _first(value: bytes) -> Any:
    return msgspec.msgpack.decode(value)[0]
