"""How far a long command is, for a person who waits for it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

Progress = Callable[[int, int], None]
"""Told how much of how much is done."""


@contextmanager
def progress_bar(what: str) -> Iterator[Progress | None]:
    """A bar for a person at a terminal, on stderr; nothing for anybody else."""
    if not click.get_text_stream("stderr").isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
