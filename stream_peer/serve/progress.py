"""How far a long command is, for a person who waits for it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import click


class ProgressBar(Protocol):
    """Told how much of how much is done; and of what, if it is not what the bar was made for."""

    def __call__(self, done: int, total: int, what: str = "", /) -> None:
        """Show it."""


def of_reading(progress: "ProgressBar | None") -> Callable[[int, int], None] | None:
    """The same bar for the bytes of the files while they are read."""
    return None if progress is None else lambda done, total: progress(done, total, "bytes read")


@contextmanager
def progress_bar(what: str) -> Iterator[ProgressBar | None]:
    """A bar for a person at a terminal, on stderr; nothing for anybody else."""
    if not click.get_text_stream("stderr").isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    from stream_peer.serve.terminal import console

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bars(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total, now=what: bar.update(task, description=now, completed=done, total=total)
