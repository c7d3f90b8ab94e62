"""A question's story on a terminal, or as plain text for anything else. Colours only repeat what the words say."""

import re
import textwrap
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from stream_peer.events.spelling import spelt
from stream_peer.tools.explain.phrases import said, year
from stream_peer.tools.explain.question_life.story import Passage, Story

WIDTH = 100
_WHEN = 14

_TIED = re.compile(r" (?=[0-9→(])|(?<=→) |(?<=[0-9]) (?=[A-Z][a-z]{2} )")
"""Blanks at which no line should end: before numbers, around arrows, in dates."""
_TIE = "\u00a0"


def tell(told: Story, console: Console) -> None:
    """Print a story.

    Parameters
    ----------
    told : Story
    console : Console
        Where to; at most ``WIDTH`` columns of a terminal are used, and as many of anything else.
    """
    width = min(console.width, WIDTH) if console.is_terminal else WIDTH
    for style, line in _lines(told, width):
        console.print(Text(line, style=style), soft_wrap=True)


def _lines(told: Story, width: int) -> Iterator[tuple[str, str]]:
    """Lines with their styles."""
    yield "bold", spelt(told.title)
    for paragraph in told.opening:
        yield from (("dim", line) for line in wrapped(paragraph, width))
    shown = 0
    for passage in told.passages:
        if year(passage.at) != shown:
            shown = year(passage.at)
            yield "bold", f"\n{shown}"
        yield from _passage(passage, width)
    yield "bold", "\nIn the end"
    for paragraph in told.ending:
        yield from (("", line) for line in wrapped(paragraph, width, "- ", "  "))


def _passage(passage: Passage, width: int) -> Iterator[tuple[str, str]]:
    when, indent = f"{said(passage.at, passage.at):<{_WHEN}}", " " * _WHEN
    yield from (("bold", line) for line in wrapped(passage.heading, width, when, indent))
    for item in passage.items:
        yield from (("", line) for line in wrapped(item, width, f"{indent}- ", f"{indent}  "))


def wrapped(text: str, width: int, first: str = "", others: str = "") -> list[str]:
    """Text in lines of at most ``width`` characters, the first and the others with what is to stand before them.

    Examples
    --------
    >>> wrapped("Weights: ann 0.30 and bob 0.7", 15, "- ", "  ")
    ['- Weights:', '  ann 0.30 and', '  bob 0.7']
    """
    lines = textwrap.wrap(
        _TIED.sub(_TIE, spelt(text)), width, initial_indent=first, subsequent_indent=others, break_on_hyphens=False
    )
    return [line.replace(_TIE, " ") for line in lines]
