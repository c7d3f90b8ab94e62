"""An import of files in one of the formats: files in, events out, and what was used of them."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from stream_peer.errors import NothingUsableError, UnwritableFileError
from stream_peer.tools.formats.adapter import Adapter, FormatOptions
from stream_peer.tools.formats.gathered import Gathered, RefusedRow, question_names
from stream_peer.tools.formats.gjopen import GJOPEN
from stream_peer.tools.formats.hubverse import HUBVERSE
from stream_peer.tools.formats.kalshi import KALSHI
from stream_peer.tools.formats.llm_panel import LLM_PANEL
from stream_peer.tools.formats.manifold import MANIFOLD
from stream_peer.tools.formats.metaculus import METACULUS
from stream_peer.tools.formats.polymarket import POLYMARKET
from stream_peer.tools.formats.sources import ImportSources
from stream_peer.tools.formats.table import TABLE
from stream_peer.tools.replay.files import FileLine, Progress, written_whole
from stream_peer.tools.replay.history import many

FORMATS: Mapping[str, Adapter] = {
    "csv": TABLE,
    "parquet": TABLE,
    "metaculus": METACULUS,
    "manifold": MANIFOLD,
    "gjopen": GJOPEN,
    "hubverse": HUBVERSE,
    "polymarket": POLYMARKET,
    "kalshi": KALSHI,
    "llm-panel": LLM_PANEL,
}


_encode = msgspec.json.Encoder().encode


class ImportPlan(NamedTuple):
    """What to import.

    Attributes
    ----------
    format : str
        A name of ``FORMATS``.
    files : sequence of Path
        To be read.
    feed : str
        The feed of all events.
    options : FormatOptions
        Of the format.
    names : Path or None
        A file with ``from`` and ``to``: other ids for questions.
    refused : Path or None
        Gets the rows that are not used, as JSON lines.
    """

    format: str
    files: Sequence[Path]
    feed: str
    options: FormatOptions = FormatOptions()
    names: Path | None = None
    refused: Path | None = None


@contextmanager
def gathered(plan: ImportPlan, progress: Progress | None = None) -> Iterator[Gathered]:
    """Read the files of a plan.

    Raises
    ------
    UnreadableFileError, UnwritableFileError, MissingExtraError
        If files cannot be read, or the refused rows not be written.
    NothingUsableError
        If there is no forecast in them.
    """
    with ExitStack() as stack, _room():
        names = None
        if plan.names is not None:
            found = ImportSources([plan.names])
            names = question_names([row for source in found.all for row in found.rows(source)])
        refused = None if plan.refused is None else _refused(stack.enter_context(written(plan.refused)))
        sources = ImportSources(plan.files, progress)
        made = stack.enter_context(Gathered(plan.feed, names, refused))
        FORMATS[plan.format].read(sources, made, plan.options)
        if not made.counts["forecasts"]:
            named = " and ".join(str(file) for file in plan.files)
            first = next(iter(made.first_refused.values()), None)
            why = f"the first row refused is {first.place}: {first.message}" if first else "no row is a forecast"
            msg = f"nothing in {named} can be used as {plan.format}: {why}"
            raise NothingUsableError(msg)
        yield made


@contextmanager
def _room() -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        msg = f"no room for the temporary file of forecasts: {error}"
        raise UnwritableFileError(msg) from error


def event_lines(made: Gathered) -> Iterator[FileLine]:
    """The events as lines of a file, for a replay."""
    for number, event in enumerate(made.timed(), 1):
        yield FileLine(f"event {number}", event.payload)


@contextmanager
def written(file: Path) -> Iterator[Callable[[bytes], object]]:
    """Write lines to a file, which is there when it is whole; packed if its name ends in ``.gz``.

    Raises
    ------
    UnwritableFileError
        If it cannot be written.
    """
    try:
        with written_whole(file, packed=file.suffix == ".gz") as write:
            yield lambda line: write(line + b"\n")
    except OSError as error:
        msg = f"{file} cannot be written: {error.strerror or error}"
        raise UnwritableFileError(msg) from error


def _refused(write: Callable[[bytes], object]) -> Callable[[RefusedRow], object]:
    return lambda row: write(_encode(row))


def import_summary(made: Gathered) -> str:
    """What was used of the files and what was not, and why."""
    counts = made.counts
    lines = [
        f"{many(made.rows, 'row')} read: {many(counts['forecasts'], 'forecast')} of {many(counts['experts'], 'expert')}"
        f" for {many(counts['questions'], 'question')}, {counts['outcomes']:,} with an outcome"
    ]
    if made.reasons:
        lines.append(f"{made.reasons.total():,} not used:")
        for reason, number in made.reasons.most_common():
            first = made.first_refused[reason]
            lines.append(f"  {number:,} {reason}, the first {first.place}: {first.message}")
    if counts["experts"] == 1:
        lines.append("One expert alone cannot be compared: add forecasts of others on the same questions (--names)")
    if made.repeated:
        lines.append(f"{many(made.repeated, 'forecast')} gave way to another one of the same expert and moment")
    if made.unasked:
        lines.append(f"{many(made.unasked, 'question')} had no forecast")
    return "\n".join(lines)
