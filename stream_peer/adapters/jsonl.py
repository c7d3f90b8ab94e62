"""Files of JSON lines, compressed or not: events in, outputs out."""

import gzip
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, NamedTuple

import msgspec

from stream_peer.engine.dead_letters import refusal_of
from stream_peer.engine.stage import Output
from stream_peer.errors import UnreadableFileError, UnwritableFileError
from stream_peer.events import topics

_GZIP = b"\x1f\x8b"


class Line(NamedTuple):
    """A line of a file, and where it stands: ``forecasts.jsonl:17``."""

    place: str
    payload: bytes


def read_lines(path: Path) -> Iterator[Line]:
    """The lines of a file that are not blank; gzip is told by its first bytes, whatever the file's name.

    Raises
    ------
    UnreadableFileError
        If there is no such file, it may not be read, or it is damaged.
    """
    try:
        with path.open("rb") as file:
            compressed = file.peek(len(_GZIP)).startswith(_GZIP)  # a pipe cannot be read from its start again
            lines = gzip.GzipFile(fileobj=file) if compressed else file
            for number, line in enumerate(lines, 1):
                payload = line.strip()
                if payload:
                    yield Line(f"{path.name}:{number}", payload)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        msg = f"{path} is a damaged gzip file: {error}"
        raise UnreadableFileError(msg) from error
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror or error}"
        raise UnreadableFileError(msg) from error


class OutputFiles:
    """Writes outputs into one file of JSON lines a topic; a context manager that closes them."""

    def __init__(self, directory: Path, only: Sequence[str] = (*topics.OUTPUTS, topics.FEED_LOG)) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._files: dict[str, BinaryIO] = {name: (directory / f"{name}.jsonl").open("wb") for name in only}

    def __enter__(self) -> "OutputFiles":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        failed = None
        for file in self._files.values():
            try:
                file.close()
            except OSError as problem:  # what was buffered does not fit; the descriptor is closed all the same
                failed = problem
        if failed is not None and error is None:
            raise self._unwritable(failed)

    def write(self, output: Output) -> None:
        """Append an output's value; of a dead letter what was wrong and how it began, since it may be no JSON.

        Raises
        ------
        UnwritableFileError
            If there is no room for it. Leaving the context raises it for what was still buffered.
        """
        file = self._files.get(output.topic)
        if file is None or (output.value is None and output.topic != topics.DEAD_LETTERS):
            return
        value = _letter(output) if output.topic == topics.DEAD_LETTERS else output.value or b""
        try:
            file.write(value + b"\n")
        except OSError as problem:
            raise self._unwritable(problem) from problem

    def _unwritable(self, problem: OSError) -> UnwritableFileError:
        return UnwritableFileError(f"the topics cannot be written to {self._directory}: {problem.strerror or problem}")


def _letter(output: Output) -> bytes:
    payload = (output.value or b"").decode("utf-8", "replace")
    return msgspec.json.encode({**refusal_of(output.headers)._asdict(), "payload": payload})
