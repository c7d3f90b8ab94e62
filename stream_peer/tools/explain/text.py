"""Explanations on a terminal, or as plain text for anything else. Colours only repeat what the words say."""

import re
import textwrap
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from stream_peer.events.spelling import spelt
from stream_peer.serve.explanation import QuestionOfMove, WeightExplanation
from stream_peer.tools.explain.question_life import NarratedStep, QuestionLife
from stream_peer.tools.explain.words import (
    BEYOND,
    KINDS,
    OWN,
    date_of,
    decimals_of,
    forecast_of,
    goes_beyond,
    points,
    year,
)
from stream_peer.tools.replay.history import many

WIDTH = 100
_WHEN = 14
_NUMBER = 9
_INDENT = " " * (_NUMBER + 4)

_TIED = re.compile(r" (?=[0-9→(])|(?<=→) |(?<=[0-9]) (?=[A-Z][a-z]{2} )")
"""Blanks at which no line should end: before numbers, around arrows, in dates."""
_TIE = "\u00a0"


def print_explanation(explanation: WeightExplanation | QuestionLife, console: Console) -> None:
    """Print an explanation: at most ``WIDTH`` columns of a terminal are used, and as many of anything else."""
    width = min(console.width, WIDTH) if console.is_terminal else WIDTH
    lines = (
        _life_lines(explanation, width) if isinstance(explanation, QuestionLife) else _weight_lines(explanation, width)
    )
    for style, line in lines:
        console.print(Text(line, style=style), soft_wrap=True)


# --- the life of a question ---


def _life_lines(life: QuestionLife, width: int) -> Iterator[tuple[str, str]]:
    """Lines with their styles."""
    yield "bold", spelt(life.title)
    for paragraph in life.opening:
        yield from (("dim", line) for line in wrapped(paragraph, width))
    shown = 0
    for step in life.steps:
        if year(step.at) != shown:
            shown = year(step.at)
            yield "bold", f"\n{shown}"
        yield from _step(step, width)
    yield "bold", "\nIn the end"
    for paragraph in life.ending:
        yield from (("", line) for line in wrapped(paragraph, width, "- ", "  "))


def _step(step: NarratedStep, width: int) -> Iterator[tuple[str, str]]:
    when, indent = f"{date_of(step.at, step.at):<{_WHEN}}", " " * _WHEN
    yield from (("bold", line) for line in wrapped(step.heading, width, when, indent))
    for item in step.items:
        yield from (("", line) for line in wrapped(item, width, f"{indent}- ", f"{indent}  "))


# --- why a weight moved ---


def _weight_lines(explanation: WeightExplanation, width: int) -> Iterator[tuple[str, str]]:
    """Lines with their styles."""
    decimals = decimals_of(explanation)
    for number, sentence in enumerate(explanation.sentences):
        yield from (("bold" if number == 0 else "", line) for line in wrapped(sentence, width))
        yield "", ""
    yield "bold", f"What moved its {KINDS[explanation.weight]}, in points (hundredths of all weight)"
    for one in explanation.causes:
        yield "", f"  {points(one.change, decimals):>{_NUMBER}}  {one.name}{_on(one.questions, one.raised, one.cause)}"
        yield from (("dim", line) for line in wrapped(one.meaning, width, _INDENT, _INDENT))
    since, until = (f"{100 * stand.weight:.{decimals}f}%" for stand in (explanation.since, explanation.until))
    yield "bold", f"  {points(explanation.difference, decimals):>{_NUMBER}}  in all: from {since} to {until}"
    if goes_beyond(explanation):
        yield from (("dim", line) for line in wrapped(BEYOND, width))
    yield from _listed_questions(explanation, width, decimals)
    yield from _inputs(explanation, width)
    yield from _summing_up(explanation, width, decimals)


def _inputs(explanation: WeightExplanation, width: int) -> Iterator[tuple[str, str]]:
    """The numbers that the weight at the end was read from, if they were asked for."""
    if not explanation.inputs:
        return
    yield "bold", f"\nWhat its weight was read from at revision {explanation.until.revision}"
    for one in explanation.inputs:
        first = f"{one.value:>14.6f}  "
        yield from (("", line) for line in wrapped(f"{one.name}: {one.meaning}", width, first, " " * len(first)))


def _on(questions: int, raised: int, cause: str) -> str:
    if cause not in OWN or not questions:
        return ""
    return f" ({many(questions, 'question')}: {raised:,} up, {questions - raised:,} down)"


def _listed_questions(explanation: WeightExplanation, width: int, decimals: int) -> Iterator[tuple[str, str]]:
    """Those on which its own forecasts moved it most, and the rest of them."""
    listed = [one for one in explanation.questions if one.own]
    if not listed:
        return
    yield "bold", "\nThe questions on which its own forecasts moved it most"
    for one in listed:
        yield from (("", line) for line in _listed_question(one, width, decimals))
    if explanation.rest.own_questions:
        more = f"{many(explanation.rest.own_questions, 'question')} more"
        yield "", f"  {points(explanation.rest.own, decimals):>{_NUMBER}}  {more}"
    yield "bold", f"  {points(explanation.own.change, decimals):>{_NUMBER}}  its own forecasts in all"


def _listed_question(one: QuestionOfMove, width: int, decimals: int) -> Iterator[str]:
    forecast = forecast_of(one)
    text = f"{one.question}: {forecast}" if forecast else one.question
    marks = [sum(term.change for term in one.terms if term.cause == cause) for cause in ("peer-loss", "truth")]
    if all(round(100 * abs(mark), decimals) for mark in marks):
        text += f" (provisional mark {points(marks[0], decimals)}, the truth {points(marks[1], decimals)})"
    yield from wrapped(text, width, f"  {points(one.own, decimals):>{_NUMBER}}  ", _INDENT)


def _summing_up(explanation: WeightExplanation, width: int, decimals: int) -> Iterator[tuple[str, str]]:
    yield "", ""
    text = (
        f"The causes add up to the {points(explanation.difference, decimals)} points by which the weight moved between "
        f"revisions {explanation.since.revision} and {explanation.until.revision} of feed {explanation.feed}."
    )
    yield from (("dim", line) for line in wrapped(text, width))


# --- lines ---


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
