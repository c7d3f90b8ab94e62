"""Files of a replay are read whatever their packing and encoding, and written whole or with a sentence why not."""

import errno
import gzip
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from stream_peer.errors import UnreadableFileError, UnwritableFileError
from stream_peer.events.incoming import MAX_EVENT_BYTES
from stream_peer.log.stage import LogRecord, Output
from stream_peer.tools.replay import files
from stream_peer.tools.replay.files import FileLine, KeptLog, OutputFiles, bounded_line, read_lines


@pytest.mark.parametrize("compressed", [False, True])
def test_lines_are_read_with_their_place_whatever_the_name_of_the_file(tmp_path: Path, compressed: bool) -> None:
    path = tmp_path / "events.txt"
    content = b'{"a":1}\n\n  \r\n\xff\r\n'
    path.write_bytes(gzip.compress(content) if compressed else content)

    assert list(read_lines(path)) == [FileLine("events.txt:1", b'{"a":1}'), FileLine("events.txt:4", b"\xff")]


@pytest.mark.parametrize("compressed", [False, True])
def test_a_pipe_is_read_like_a_file(compressed: bool) -> None:
    content = b'{"a":1}\n' * 5
    read, write = os.pipe()
    os.write(write, gzip.compress(content) if compressed else content)
    os.close(write)

    lines = list(read_lines(Path(f"/dev/fd/{read}")))
    os.close(read)

    assert [line.payload for line in lines] == [b'{"a":1}'] * 5


EVENT = '{"type":"forecast","expert_id":"Zoë 𝄞"}'


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_text_is_read_in_either_encoding_with_or_without_a_byte_order_mark(
    tmp_path: Path, encoding: str, compressed: bool
) -> None:
    path = tmp_path / "events.jsonl"
    content = f"{EVENT}\r\n\r\n{EVENT}\n".encode(encoding)
    path.write_bytes(gzip.compress(content) if compressed else content)

    assert list(read_lines(path)) == [FileLine(f"events.jsonl:{number}", EVENT.encode()) for number in (1, 3)]


def test_files_with_marks_that_were_put_together_have_one_before_each_of_them(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(f"{EVENT}\n".encode("utf-8-sig") * 2)

    assert [line.payload for line in read_lines(path)] == [EVENT.encode()] * 2


def test_what_is_no_text_in_utf_16_is_replaced_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(f"{EVENT}\n".encode("utf-16") + b"\x00\xd8" + f"x\n{EVENT}\n".encode("utf-16-le")[:-1])

    payloads = [line.payload for line in read_lines(path)]

    assert payloads[0] == EVENT.encode()
    assert payloads[1].startswith("\ufffdx".encode())


class Counted(io.BytesIO):
    """A stream that notes how much was asked for at once."""

    most = 0

    def readline(self, size: int | None = -1, /) -> bytes:
        assert size is not None
        assert size > 0
        self.most = max(self.most, size)
        return super().readline(size)


def test_of_a_line_without_end_no_more_is_read_than_shows_that_it_is_too_long() -> None:
    stream = Counted(b"short\n" + b"x" * 1_000_000 + b"\nlast")

    lines = [bounded_line(stream, 10) for _ in range(4)]

    assert lines == [b"short\n", b"x" * 12, b"last", b""]
    assert stream.most == 1 << 16


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_line_as_long_as_an_event_may_be_is_read_whole_and_one_byte_more_is_refused(
    tmp_path: Path, end: bytes
) -> None:
    path = tmp_path / "long.jsonl"
    path.write_bytes(b"x" * MAX_EVENT_BYTES + end + b"x" * (MAX_EVENT_BYTES + 1) + end + b" " * 2_000_000 + end + b"{}")

    sizes = {line.place: len(line.payload) for line in read_lines(path)}

    assert sizes["long.jsonl:1"] == MAX_EVENT_BYTES
    assert sizes["long.jsonl:4"] == 2
    assert MAX_EVENT_BYTES < sizes["long.jsonl:2"] <= MAX_EVENT_BYTES + 2
    assert MAX_EVENT_BYTES < sizes["long.jsonl:3"] <= MAX_EVENT_BYTES + 2


def test_blank_lines_without_end_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_BLANK", 1000)
    path = tmp_path / "blank.gz"
    path.write_bytes(gzip.compress(b"{}\n" + b"\n" * 999 + b"{}\n" + b"\n" * 1001))

    lines = read_lines(path)

    assert [next(lines).place for _ in range(2)] == ["blank.gz:1", "blank.gz:1001"]
    with pytest.raises(UnreadableFileError, match="more than 1,000 blank lines"):
        next(lines)


def test_how_far_a_file_is_read_is_told(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"{}\n" * 10_000)
    told: list[tuple[int, int]] = []

    assert len(list(read_lines(path, lambda done, total: told.append((done, total))))) == 10_000
    assert [total for _, total in told] == [30_000, 30_000]
    assert 0 < told[0][0] <= told[1][0] <= 30_000


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError, match=r"nothing\.jsonl cannot be read: No such file"):
        list(read_lines(tmp_path / "nothing.jsonl"))


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError, match="cannot be read"):
        list(read_lines(tmp_path))


@pytest.mark.parametrize("damage", [slice(0, 20), slice(0, -4)])
def test_a_damaged_gzip_file_is_named(tmp_path: Path, damage: slice) -> None:
    path = tmp_path / "cut.gz"
    path.write_bytes(gzip.compress(bytes(range(256)) * 50)[damage])

    with pytest.raises(UnreadableFileError, match=r"cut\.gz is a damaged gzip file"):
        list(read_lines(path))


def test_gzip_bytes_that_are_none_are_a_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "bad.gz"
    path.write_bytes(b"\x1f\x8b rubbish that is no gzip")

    with pytest.raises(UnreadableFileError, match="damaged"):
        list(read_lines(path))


def test_outputs_become_one_file_a_topic(tmp_path: Path) -> None:
    with OutputFiles(tmp_path / "out") as files:
        files.write(Output("weights", b"econ", b'{"feed":"econ"}', 0))
        files.write(Output("weights", b"econ", None, 0))
        headers = [("stream-peer-reason", b"not-json"), ("__streams.errors.offset", b"3")]
        files.write(Output("dead-letters", None, b"\xff{", 0, headers=headers))
        files.write(Output("elsewhere", None, b"{}", 0))

    assert (tmp_path / "out" / "weights.jsonl").read_text(encoding="utf-8") == '{"feed":"econ"}\n'
    letter = json.loads((tmp_path / "out" / "dead-letters.jsonl").read_text(encoding="utf-8"))
    assert letter == {"reason": "not-json", "message": "", "offset": 3, "payload": "\ufffd{"}


RECORDS = [LogRecord(n, 7 * n, b"econ", b"%d" % n * 10) for n in range(5)]


@pytest.fixture(params=[10, 1_000_000], ids=["on disk", "in memory"])
def log(request: pytest.FixtureRequest) -> Iterator[KeptLog]:
    kept = KeptLog(in_memory=request.param)
    yield kept
    kept.close()


def test_a_log_gives_back_what_it_was_given_as_far_as_asked_and_goes_on_after_it(log: KeptLog) -> None:
    for record in RECORDS[:3]:
        log.append(record)

    first, again = list(log.up_to(1)), list(log.up_to(9))
    log.append(RECORDS[3])

    assert first == RECORDS[:2]
    assert again == RECORDS[:3]
    assert list(log.up_to(3)) == RECORDS[:4]


def test_empty_keys_and_values_stay_what_they_are(log: KeptLog) -> None:
    odd = [LogRecord(0, 0, None, None), LogRecord(1, 0, b"", b"")]
    for record in odd:
        log.append(record)

    assert list(log.up_to(1)) == odd


def test_a_full_disk_is_said_to_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    log = KeptLog()

    def fail(_: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(log._file, "write", fail)

    with pytest.raises(UnwritableFileError, match="No space left on device"):
        log.append(RECORDS[0])
    log.close()
