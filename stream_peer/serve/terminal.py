"""Where the command line meets a person: text of others is never acted upon; and progress bars.

All that is written to stdout and stderr is spelt out (`stream_peer.events.spelling`). Colours and moving text are made
by `console` alone, which spells out the text between its own control codes.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, TextIO, cast

import click

from stream_peer.events.spelling import spelt_lines

if TYPE_CHECKING:
    from rich.console import Console


class _Bytes:
    """The bytes behind a stream: JSON, which stays the same JSON."""

    def __init__(self, below: BinaryIO) -> None:
        self._below = below

    def write(self, data: bytes) -> int:
        self._below.write(spelt_lines(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape"))
        return len(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._below, name)


class _Stream:
    """A stream that spells out what is written to it."""

    def __init__(self, below: TextIO) -> None:
        self.below = below

    @property
    def buffer(self) -> Any:
        return _Bytes(self.below.buffer)

    def write(self, text: str) -> int:
        self.below.write(spelt_lines(text))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        self.below.writelines(map(spelt_lines, lines))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.below, name)


@contextmanager
def escaping_output() -> Iterator[None]:
    """Within it stdout and stderr escape control characters of all that is written to them."""
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast("TextIO", _Stream(stream)) for stream in streams)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams


def below(stream: TextIO) -> TextIO:
    """The stream itself, for what spells out others' text before it adds colours."""
    return stream.below if isinstance(stream, _Stream) else stream


def console(*, stderr: bool = False) -> "Console":
    """A terminal for coloured and moving text: the only one that the command line makes."""
    from collections.abc import Iterable

    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class SpellingConsole(Console):
        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else segment._replace(text=spelt_lines(segment.text))

    return SpellingConsole(file=below(sys.stderr if stderr else sys.stdout))


class ProgressBar(Protocol):
    """Told how much of how much is done; and of what, if it is not what the bar was made for."""

    def __call__(self, done: int, total: int, what: str = "", /) -> None:
        """Show it."""


def bar_of(what: str, progress: "ProgressBar | None") -> Callable[[int, int], None] | None:
    """The same bar, of something else than it was made for."""
    return None if progress is None else lambda done, total: progress(done, total, what)


@contextmanager
def progress_bar(what: str) -> Iterator[ProgressBar | None]:
    """A bar for a person at a terminal, on stderr; nothing for anybody else."""
    if not click.get_text_stream("stderr").isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bars(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total, now=what: bar.update(task, description=now, completed=done, total=total)
