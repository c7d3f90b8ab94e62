import gzip
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from stream_peer.errors import FeedTransferError
from stream_peer.tools.transfer.feed_file import Line, read_feed, write_feed
from tests.feed_transfers import exported_lines


@pytest.fixture
def file(tmp_path: Path) -> Path:
    written = tmp_path / "econ.feed.gz"
    write_feed(written, exported_lines())
    return written


def test_a_file_gives_back_the_lines_that_were_written(file: Path) -> None:
    assert list(read_feed(file)) == exported_lines()


def test_the_same_feed_gives_the_same_bytes(file: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.gz"

    assert write_feed(again, exported_lines()) == file.stat().st_size
    assert again.read_bytes() == file.read_bytes()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_it_begins_with_a_header_that_a_person_can_read(file: Path) -> None:
    with gzip.open(file) as lines:
        header = msgspec.json.decode(lines.readline())

    assert list(header)[:3] == ["kind", "format", "version"]
    assert (header["format"], header["version"], header["feed"]) == ("stream-peer-feed", 3, "f")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not whole"),
        (b"{}\n", "no exported feed"),
        (b"not JSON\n", "no exported feed"),
        (b'{"kind":"header","format":"stream-peer-feed","version":2}\n', "version 2, this release reads 3"),
        (b'{"kind":"header","format":"stream-peer-feed","version":3}\n', "line 1 cannot be read"),
    ],
)
def test_what_is_no_exported_feed_is_refused_with_the_reason(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "other.gz"
    file.write_bytes(gzip.compress(content))

    with pytest.raises(FeedTransferError, match=message):
        list(read_feed(file))


def test_a_file_that_was_cut_off_is_refused(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-40])

    with pytest.raises(
        FeedTransferError, match=r"econ\.feed\.gz is no exported feed, or a damaged one: .*; export the feed again"
    ):
        list(read_feed(file))


def test_a_file_whose_last_lines_are_missing_is_refused(file: Path) -> None:
    lines = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
    file.write_bytes(gzip.compress(b"".join(lines[:-1])))
    with pytest.raises(FeedTransferError, match="breaks off behind line"):
        list(read_feed(file))

    file.write_bytes(gzip.compress(b"".join([*lines[:3], lines[-1]])))
    with pytest.raises(FeedTransferError, match="lines were written"):
        list(read_feed(file))


def test_a_second_header_is_refused(file: Path) -> None:
    lines = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
    file.write_bytes(gzip.compress(b"".join([lines[0], *lines])))

    with pytest.raises(FeedTransferError, match="line 2 is a header, which cannot come there"):
        list(read_feed(file))


@pytest.mark.parametrize("name", ["missing.gz", "plain.txt"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "plain.txt").write_text("forecasts")

    with pytest.raises(FeedTransferError, match=name):
        list(read_feed(tmp_path / name))


def test_nothing_is_left_of_a_file_that_could_not_be_finished(tmp_path: Path) -> None:
    def failing() -> Iterator[Line]:
        header, *_ = exported_lines()
        yield header
        raise FeedTransferError("no more")

    with pytest.raises(FeedTransferError, match="no more"):
        write_feed(tmp_path / "econ.gz", failing())

    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_takes_no_files_is_named(tmp_path: Path) -> None:
    with pytest.raises(FeedTransferError, match="cannot be written"):
        write_feed(tmp_path / "missing" / "econ.gz", exported_lines())
