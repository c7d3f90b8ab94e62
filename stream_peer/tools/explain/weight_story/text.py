"""Why a weight moved, on a terminal or as plain text: sentences, what each cause did, and which questions."""

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from stream_peer.serve.explanation import QuestionOfMove, WeightExplanation
from stream_peer.tools.explain.question_life.text import WIDTH, wrapped
from stream_peer.tools.explain.weight_story.sentences import BEYOND, KINDS, goes_beyond, said_of, story_decimals
from stream_peer.tools.explain.weight_story.words import OWN, points

_NUMBER = 9
_INDENT = " " * (_NUMBER + 4)


def tell(story: WeightExplanation, console: Console) -> None:
    """Print the story of a weight, at most ``WIDTH`` columns wide."""
    width = min(console.width, WIDTH) if console.is_terminal else WIDTH
    for style, line in _lines(story, width):
        console.print(Text(line, style=style), soft_wrap=True)


def _lines(story: WeightExplanation, width: int) -> Iterator[tuple[str, str]]:
    """Lines with their styles."""
    decimals = story_decimals(story)
    for number, sentence in enumerate(story.sentences):
        yield from (("bold" if number == 0 else "", line) for line in wrapped(sentence, width))
        yield "", ""
    yield "bold", f"What moved its {KINDS[story.weight]}, in points (hundredths of all weight)"
    for one in story.causes:
        yield "", f"  {points(one.change, decimals):>{_NUMBER}}  {one.name}{_on(one.questions, one.raised, one.cause)}"
        yield from (("dim", line) for line in wrapped(one.meaning, width, _INDENT, _INDENT))
    since, until = (f"{100 * stand.weight:.{decimals}f}%" for stand in (story.since, story.until))
    yield "bold", f"  {points(story.difference, decimals):>{_NUMBER}}  in all: from {since} to {until}"
    if goes_beyond(story):
        yield from (("dim", line) for line in wrapped(BEYOND, width))
    yield from _questions(story, width, decimals)
    yield from _ending(story, width, decimals)


def _on(questions: int, raised: int, cause: str) -> str:
    if cause not in OWN or not questions:
        return ""
    return f" ({questions:,} question{'' if questions == 1 else 's'}: {raised:,} up, {questions - raised:,} down)"


def _questions(story: WeightExplanation, width: int, decimals: int) -> Iterator[tuple[str, str]]:
    """Those on which its own forecasts moved it most, and the rest of them."""
    told = [one for one in story.questions if one.own]
    if not told:
        return
    yield "bold", "\nThe questions on which its own forecasts moved it most"
    for one in told:
        yield from (("", line) for line in _question(one, width, decimals))
    if story.rest.own_questions:
        more = f"{story.rest.own_questions:,} question{'' if story.rest.own_questions == 1 else 's'} more"
        yield "", f"  {points(story.rest.own, decimals):>{_NUMBER}}  {more}"
    yield "bold", f"  {points(story.own.change, decimals):>{_NUMBER}}  its own forecasts in all"


def _question(one: QuestionOfMove, width: int, decimals: int) -> Iterator[str]:
    said = said_of(one)
    text = f"{one.question}: {said}" if said else one.question
    marks = [sum(term.change for term in one.terms if term.cause == cause) for cause in ("peer-loss", "truth")]
    if all(round(100 * abs(mark), decimals) for mark in marks):
        text += f" (provisional mark {points(marks[0], decimals)}, the truth {points(marks[1], decimals)})"
    yield from wrapped(text, width, f"  {points(one.own, decimals):>{_NUMBER}}  ", _INDENT)


def _ending(story: WeightExplanation, width: int, decimals: int) -> Iterator[tuple[str, str]]:
    yield "", ""
    text = (
        f"The causes add up to the {points(story.difference, decimals)} points by which the weight moved between "
        f"revisions {story.since.revision} and {story.until.revision} of feed {story.feed}."
    )
    yield from (("dim", line) for line in wrapped(text, width))
