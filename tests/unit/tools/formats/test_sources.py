"""Files are known by their first bytes, packed or not; what is damaged is said."""

import gzip
import json
import sys
import zipfile
from pathlib import Path

import pytest

from stream_peer.errors import MissingExtraError, UnreadableFileError
from stream_peer.tools.formats.sources import ImportSources
from tests.unit.tools.formats.support import SAMPLES

CSV = b'\xef\xbb\xbfName,Text\r\nanna,"two\nlines, and a comma"\r\nboris\r\n'


def rows(path: Path) -> list[tuple[str, dict[str, object], str]]:
    sources = ImportSources([path])
    return [(row.place, dict(row.fields), row.fault) for source in sources.all for row in sources.rows(source)]


def test_csv_is_read_with_its_quotes_and_a_row_of_other_length_has_a_fault(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(CSV)

    good, bad = rows(tmp_path / "f")

    assert good == ("f:3", {"name": "anna", "text": "two\nlines, and a comma"}, "")
    assert bad == ("f:4", {}, "it has 1 fields, the header has 2")


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_the_delimiter_is_that_of_the_header(tmp_path: Path, delimiter: str) -> None:
    (tmp_path / "f").write_text(f"a{delimiter}b\n1,5{delimiter}2\n")

    assert rows(tmp_path / "f") == [("f:2", {"a": "1,5", "b": "2"}, "")]


def test_packed_files_are_read_like_plain_ones(tmp_path: Path) -> None:
    (tmp_path / "f.gz").write_bytes(gzip.compress(CSV))
    with zipfile.ZipFile(tmp_path / "f.zip", "w") as archive:
        archive.writestr("inner/f.csv", CSV)

    assert [place for place, *_ in rows(tmp_path / "f.gz")] == ["f.gz:3", "f.gz:4"]
    assert [place for place, *_ in rows(tmp_path / "f.zip")] == ["f.zip/inner/f.csv:3", "f.zip/inner/f.csv:4"]


def test_json_may_be_an_array_lines_or_one_document(tmp_path: Path) -> None:
    items = [{"id": 1}, {"id": 2}]
    (tmp_path / "array").write_text(json.dumps([*items, 3]))
    (tmp_path / "lines").write_text("\n".join(map(json.dumps, items)))
    (tmp_path / "document").write_text(json.dumps({"all": items}, indent=2))

    assert [fields for _, fields, _ in rows(tmp_path / "array")] == [*items, {}]
    assert [fields for _, fields, _ in rows(tmp_path / "lines")] == items
    assert rows(tmp_path / "document") == [("document", {"all": items}, "")]


def test_a_directory_stands_for_its_tables(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "two.csv").write_text("a\n2\n")
    (tmp_path / "one.csv").write_text("a\n1\n")
    (tmp_path / "README.md").write_text("not a table")

    assert [place for place, *_ in rows(tmp_path)] == ["two.csv:2", "one.csv:2"]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"[{}, ", "damaged JSON"),
        (b"{\n", "damaged JSON"),
        (b"PK\x03\x04 no archive", "cannot be read"),
        (b"PAR1 no table", "damaged Parquet"),
        (gzip.compress(CSV * 1000, mtime=0)[:40], "is damaged"),
        (b"a,b\n\xff\xfe,1\n", "not UTF-8"),
        (b"a,A\n1,2\n", "several columns of one name: a"),
    ],
)
def test_a_damaged_file_is_named_with_what_is_wrong(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "f").write_bytes(content)

    with pytest.raises(UnreadableFileError, match=f"f.*{why}"):
        rows(tmp_path / "f")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError, match="nothing cannot be read: there is no such file"):
        ImportSources([tmp_path / "nothing"])


@pytest.mark.parametrize(
    ("library", "sample"), [("pyarrow", "parquet/survey.parquet"), ("ijson", "manifold/contracts.json")]
)
def test_a_library_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, library: str, sample: str) -> None:
    monkeypatch.setitem(sys.modules, library, None)

    with pytest.raises(MissingExtraError, match=f"needs {library}: pip install 'stream-peer.import.'"):
        rows(SAMPLES / sample)


def test_progress_is_told_in_bytes_of_all_files(tmp_path: Path) -> None:
    file = tmp_path / "f.csv"
    file.write_text("a\n" + "1\n" * 5000)
    told: list[tuple[int, int]] = []

    sources = ImportSources([file], lambda done, total: told.append((done, total)))
    for source in sources.all:
        list(sources.rows(source))

    assert told == sorted(told)
    assert told[-1] == (file.stat().st_size, file.stat().st_size)
