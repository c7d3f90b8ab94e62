"""The question stage's changelogs in the middle of the short life, as the release that wrote the file left them."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

from stream_peer.log.changelog import ChangelogRow
from tests.golden.records import bytes_of, text_of

FILE = Path(__file__).parent / "question-changelogs.json.gz"
Rows = list[ChangelogRow]


def write(changelogs: Sequence[Rows]) -> None:
    """A list of (key, value) for each partition."""
    plain = [[[text_of(key), text_of(value)] for key, value, _ in rows] for rows in changelogs]
    FILE.write_bytes(gzip.compress(json.dumps(plain).encode(), mtime=0))


def read() -> list[Rows]:
    """The same."""
    plain = json.loads(gzip.decompress(FILE.read_bytes()))
    return [[ChangelogRow(bytes_of(key) or b"", bytes_of(value)) for key, value in rows] for rows in plain]
