"""Files of an import and their rows: CSV, Parquet and JSON, told by their first bytes; also packed by gzip or zip."""

import csv
import io
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import msgspec

from stream_peer.errors import MissingExtraError, UnreadableFileError
from stream_peer.tools.replay.files import Progress, bounded_line, lines_of, plain_text

LONGEST_ROW = 1_000_000
"""Bytes of a line of CSV beyond which a file is none."""
LARGEST_DOCUMENT = 64_000_000
"""Bytes of a JSON document that is read whole: one that is neither an array nor lines."""

_ZIP, _PARQUET = b"PK\x03\x04", b"PAR1"
_TABLES = frozenset((".csv", ".tsv", ".parquet", ".json", ".jsonl", ".ndjson", ".gz", ".zip"))
_DELIMITERS = ",;\t|"
_AT_ONCE = 1024
_LOOKED_AT = 100
_JSON_ENDS = (b"{", b"[")


class SourceRow(NamedTuple):
    """A row of a file, and where it stands: ``forecasts.csv:17``. The names of its fields are normalised.

    ``fault`` says why it cannot be read; then it has no fields.
    """

    place: str
    fields: Mapping[str, Any]
    fault: str = ""

    def get(self, name: str) -> Any:
        """The field of this name, however it is spelt; None if there is none or it is empty."""
        value = self.fields.get(normalised(name))
        return None if value == "" or (isinstance(value, str) and value in _EMPTY) else value


_EMPTY = frozenset(("NA", "null", "None", "NaN", "nan"))


@lru_cache(4096)
def normalised(name: str) -> str:
    """The name of a column in small letters, digits and underscores.

    Examples
    --------
    >>> normalised("Question ID"), normalised("discover.question_id")
    ('question_id', 'discover_question_id')
    """
    return re.sub(r"[^0-9a-z]+", "_", name.lower()).strip("_")


class ImportSource(NamedTuple):
    """A file, or a member of a zip archive."""

    path: Path
    member: str = ""

    @property
    def name(self) -> str:
        """How it is named in messages."""
        return f"{self.path.name}/{self.member}" if self.member else self.path.name


class ImportSources:
    """The files of an import. Each may be read several times.

    Parameters
    ----------
    paths : sequence of Path
        Files; a zip archive stands for its members, a directory for the tables in it.
    progress : callable, optional
        Told how many bytes of how many are read.

    Raises
    ------
    UnreadableFileError
        If one cannot be read.
    """

    def __init__(self, paths: Sequence[Path], progress: Progress | None = None) -> None:
        paths = [file for path in paths for file in _files(path)]
        self.all = [source for path in paths for source in _sources(path)]
        self._progress = progress
        self._total = sum(path.stat().st_size for path in paths)
        self._read: dict[Path, int] = {}
        self._columns: dict[ImportSource, frozenset[str]] = {}

    def columns(self, source: ImportSource) -> frozenset[str]:
        """The normalised names of the fields of its first rows: objects of JSON need not all have the same."""
        if source not in self._columns:
            rows = islice(self._rows(source), _LOOKED_AT)
            self._columns[source] = frozenset().union(*(row.fields for row in rows))
        return self._columns[source]

    def having(self, *names: str) -> list[ImportSource]:
        """The sources whose rows have all of these fields."""
        wanted = set(map(normalised, names))
        return [source for source in self.all if wanted <= self.columns(source)]

    def rows(self, source: ImportSource) -> Iterator[SourceRow]:
        """The rows of a source, one by one.

        Raises
        ------
        UnreadableFileError
            If it is damaged, or in no form that can be read.
        MissingExtraError
            If it needs a library that is not installed.
        """
        for number, row in enumerate(self._rows(source)):
            if number % _AT_ONCE == 0:
                self._tell(self._outer.tell(), source)
            yield row
        if not source.member:
            self._tell(source.path.stat().st_size, source)

    def _rows(self, source: ImportSource) -> Iterator[SourceRow]:
        with self._opened(source) as file:
            yield from _rows_of(file, source.name)

    @contextmanager
    def _opened(self, source: ImportSource) -> Iterator[io.BufferedReader]:
        try:
            with source.path.open("rb") as outer:
                self._outer = outer
                if not source.member:
                    yield plain_text(outer)
                    return
                with zipfile.ZipFile(outer) as archive, archive.open(source.member) as inner:
                    yield plain_text(io.BufferedReader(cast("io.RawIOBase", inner)))
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            msg = f"{source.name} is damaged: {error}"
            raise UnreadableFileError(msg) from error
        except OSError as error:
            msg = f"{source.name} cannot be read: {error.strerror or error}"
            raise UnreadableFileError(msg) from error

    def _tell(self, read: int, source: ImportSource) -> None:
        if self._progress is not None:
            self._read[source.path] = max(self._read.get(source.path, 0), read)
            self._progress(sum(self._read.values()), self._total)


def _files(path: Path) -> list[Path]:
    return sorted(file for file in path.rglob("*") if file.suffix in _TABLES) if path.is_dir() else [path]


def _sources(path: Path) -> list[ImportSource]:
    try:
        if not path.is_file():
            msg = f"{path} cannot be read: " + ("it is no file" if path.exists() else "there is no such file")
            raise UnreadableFileError(msg)
        with path.open("rb") as file:
            if file.read(len(_ZIP)) != _ZIP:
                return [ImportSource(path)]
        with zipfile.ZipFile(path) as archive:
            return [
                ImportSource(path, one.filename) for one in archive.infolist() if not one.is_dir() and one.file_size
            ]
    except (OSError, zipfile.BadZipFile) as error:
        msg = f"{path} cannot be read: {error}"
        raise UnreadableFileError(msg) from error


def _rows_of(file: io.BufferedReader, name: str) -> Iterator[SourceRow]:
    begin = file.peek(_AT_ONCE)
    if begin.startswith(_PARQUET):
        return _parquet_rows(file, name)
    text = begin.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(_JSON_ENDS):
        return _array_rows(file, name) if text.startswith(b"[") else _object_rows(file, name)
    return _csv_rows(file, name)


def _csv_rows(file: BinaryIO, name: str) -> Iterator[SourceRow]:
    csv.field_size_limit(LONGEST_ROW)
    lines = _csv_lines(file, name)
    first = next(lines, "")
    reader = csv.reader(chain([first], lines), delimiter=max(_DELIMITERS, key=first.count))
    names = [normalised(column) for column in next(reader, [])]
    twice = {column for column in names if column and names.count(column) > 1}
    if twice:
        msg = f"{name} has several columns of one name: {', '.join(sorted(twice))}"
        raise UnreadableFileError(msg)
    while True:
        try:
            values = next(reader, None)
        except csv.Error as error:
            yield SourceRow(f"{name}:{reader.line_num}", {}, f"it is no row of CSV: {error}")
            continue
        if values is None:
            return
        place = f"{name}:{reader.line_num}"
        if len(values) == len(names):
            yield SourceRow(place, dict(zip(names, values, strict=True)))
        elif values:
            yield SourceRow(place, {}, f"it has {len(values)} fields, the header has {len(names)}")


def _csv_lines(file: BinaryIO, name: str) -> Iterator[str]:
    number = 0
    while line := bounded_line(cast("io.BufferedIOBase", file), LONGEST_ROW):
        number += 1
        if len(line) > LONGEST_ROW + 1:
            msg = f"{name}:{number} is longer than {LONGEST_ROW:,} bytes: it is no CSV"
            raise UnreadableFileError(msg)
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            msg = f"{name}:{number} is not UTF-8: {error.reason}; iconv -f latin1 -t utf-8 may convert it"
            raise UnreadableFileError(msg) from None


def _parquet_rows(file: BinaryIO, name: str) -> Iterator[SourceRow]:
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError as error:
        msg = f"{name} is Parquet, which needs pyarrow: pip install 'stream-peer[import]'"
        raise MissingExtraError(msg) from error
    try:
        table = parquet.ParquetFile(file)
        number = 0
        for batch in table.iter_batches(batch_size=_AT_ONCE):
            for fields in batch.to_pylist():
                number += 1
                yield SourceRow(f"{name}:{number}", _named(fields))
    except arrow.ArrowException as error:
        msg = f"{name} is damaged Parquet: {error}"
        raise UnreadableFileError(msg) from error


def _array_rows(file: BinaryIO, name: str) -> Iterator[SourceRow]:
    try:
        import ijson
    except ImportError as error:
        msg = f"{name} is a JSON array, which needs ijson: pip install 'stream-peer[import]'"
        raise MissingExtraError(msg) from error
    try:
        for number, item in enumerate(ijson.items(file, "item", use_float=True), 1):
            yield _object_row(f"{name}:{number}", item)
    except (ijson.JSONError, ValueError) as error:  # ValueError: a number of thousands of digits
        msg = f"{name} is damaged JSON: {str(error).partition(chr(10))[0]}"
        raise UnreadableFileError(msg) from error


def _object_rows(file: io.BufferedReader, name: str) -> Iterator[SourceRow]:
    """The objects of a file that begins with one: one a line, or one in many lines."""
    lines = lines_of(file, name)
    first = next(lines)
    try:
        msgspec.json.decode(first.payload)
    except msgspec.DecodeError:
        yield _document(b"\n".join([first.payload, *_bounded(lines, name)]), name)
        return
    for line in chain([first], lines):
        try:
            yield _object_row(line.place, msgspec.json.decode(line.payload))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            yield SourceRow(line.place, {}, f"it is no JSON: {error}")


def _bounded(lines: Iterator[Any], name: str) -> Iterator[bytes]:
    size = 0
    for line in lines:
        size += len(line.payload)
        if size > LARGEST_DOCUMENT:
            msg = f"{name} is one JSON document of more than {LARGEST_DOCUMENT:,} bytes: give an array or lines"
            raise UnreadableFileError(msg)
        yield line.payload


def _document(text: bytes, name: str) -> SourceRow:
    try:
        return _object_row(name, msgspec.json.decode(text))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        msg = f"{name} is damaged JSON: {error}"
        raise UnreadableFileError(msg) from error


def _object_row(place: str, item: object) -> SourceRow:
    return SourceRow(place, _named(item)) if isinstance(item, dict) else SourceRow(place, {}, "it is no JSON object")


def _named(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {normalised(name): value for name, value in fields.items()}
