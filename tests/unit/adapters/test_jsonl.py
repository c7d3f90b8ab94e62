import gzip
import json
import os
from pathlib import Path

import pytest

from stream_peer.adapters.jsonl import Line, OutputFiles, read_lines
from stream_peer.engine.stage import Output
from stream_peer.errors import UnreadableFileError


@pytest.mark.parametrize("compressed", [False, True])
def test_lines_are_read_with_their_place_whatever_the_name_of_the_file(tmp_path: Path, compressed: bool) -> None:
    path = tmp_path / "events.txt"
    content = b'{"a":1}\n\n  \r\n\xff\r\n'
    path.write_bytes(gzip.compress(content) if compressed else content)

    assert list(read_lines(path)) == [Line("events.txt:1", b'{"a":1}'), Line("events.txt:4", b"\xff")]


@pytest.mark.parametrize("compressed", [False, True])
def test_a_pipe_is_read_like_a_file(compressed: bool) -> None:
    content = b'{"a":1}\n' * 5
    read, write = os.pipe()
    os.write(write, gzip.compress(content) if compressed else content)
    os.close(write)

    lines = list(read_lines(Path(f"/dev/fd/{read}")))
    os.close(read)

    assert [line.payload for line in lines] == [b'{"a":1}'] * 5


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
