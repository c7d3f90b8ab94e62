"""The life of a question in words that a forecaster understands, from what an ``Explainer`` took down."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from stream_peer.events.incoming import ExpertControl
from stream_peer.events.times import Milliseconds
from stream_peer.tools.explain.phrases import chance, joined, many, said, shortened
from stream_peer.tools.explain.question_life.effects import Teller
from stream_peer.tools.explain.question_life.events import OUTCOMES, heading, line, moves, state_of, stated_moment
from stream_peer.tools.explain.question_life.explainer import Chapter

_QUIET_SHOWN = 12


class Passage(NamedTuple):
    """One moment of the story: when it was, what happened, and what came of it, a sentence an item."""

    at: Milliseconds
    heading: str
    items: tuple[str, ...] = ()


class Story(NamedTuple):
    """A title, how to read it, what happened in order of time, and how it ended."""

    title: str
    opening: tuple[str, ...]
    passages: tuple[Passage, ...]
    ending: tuple[str, ...]


def story(question_id: str, chapters: Sequence[Chapter]) -> Story:
    """The story of a question.

    Parameters
    ----------
    question_id : str
    chapters : sequence of Chapter
        Of an ``Explainer`` that looked at that question.
    """
    files = _files(chapters)
    told = _concerning(chapters if len(files) > 1 else [_of_only_file(chapter) for chapter in chapters])
    teller = Teller()
    passages: list[Passage] = []
    for kind, group in groupby(told, key=_kind_of_quiet):
        run = list(group)
        passages += [_quiet(run)] if kind and len(run) > 1 else [_passage(one, teller) for one in run]
    return Story(
        f"The life of {question_id}",
        tuple(_opening(teller, files)),
        tuple(passages),
        tuple(_ending(told, teller)),
    )


def _concerning(chapters: Sequence[Chapter]) -> list[Chapter]:
    """Chapters without controls of experts who never spoke of the question."""
    heard = {expert for chapter in chapters for expert in chapter.forecasts}
    return [one for one in chapters if not isinstance(one.event, ExpertControl) or one.event.expert_id in heard]


def _files(chapters: Sequence[Chapter]) -> list[str]:
    return list(dict.fromkeys(name for chapter in chapters if (name := chapter.arrival.event.place.rpartition(":")[0])))


def _of_only_file(chapter: Chapter) -> Chapter:
    """The chapter with its place in the file, without the file's name."""
    event = chapter.arrival.event
    _, colon, number = event.place.rpartition(":")
    return chapter._replace(arrival=chapter.arrival._replace(event=event._replace(place=colon + number)))


def _kind_of_quiet(chapter: Chapter) -> str:
    """The state in which forecasts came of which nothing came at once; empty for all that is to be told singly."""
    in_order = stated_moment(chapter) >= chapter.time
    quiet = chapter.forecasts and in_order and not (chapter.logged or chapter.refused or chapter.warnings)
    after = state_of(chapter.after)
    return after if quiet and after == state_of(chapter.before) else ""


def _quiet(chapters: Sequence[Chapter]) -> Passage:
    """Forecasts that wait for the next round."""
    first, last = chapters[0], chapters[-1]
    said_by = [
        f"{expert} {'withdraws' if p is None else chance(p)}{_day(chapter, first)}"
        for chapter in chapters
        for expert, p in chapter.forecasts.items()
    ]
    what = "Forecasts wait for the opening" if state_of(last.after) == "scheduled" else "Forecasts come in"
    until = f" ({line(first)} to {line(last)})"
    return Passage(first.time, f"{what}: {shortened(said_by, _QUIET_SHOWN)}{until}")


def _day(chapter: Chapter, first: Chapter) -> str:
    """The day on which it came, where that is another one than of the first."""
    day, first_day = (said(one.time, first.time).rsplit(" ", 1)[0] for one in (chapter, first))
    return "" if day == first_day else f" on {day}"


def _passage(chapter: Chapter, teller: Teller) -> Passage:
    items = [*moves(chapter), *teller.items(chapter), *(warning.message for warning in chapter.warnings)]
    return Passage(chapter.time, heading(chapter), tuple(items))


def _opening(teller: Teller, files: Sequence[str]) -> Iterator[str]:
    whose = f" of feed {teller.answer.feed}" if teller.answer else ""
    yield (f"A question{whose}, published {many(len(teller.revisions), 'time')}, from {joined(files)}. Times are UTC.")
    yield (
        "A revision is the offset in the feed-log of the record that caused an output; readers keep the highest. "
        "Deadlines pass here with the next line of the files, in the service a moment after they are due."
    )


def _ending(chapters: Sequence[Chapter], teller: Teller) -> Iterator[str]:
    answer, mixed = teller.answer, teller.mixed
    if answer is None or mixed is None:
        yield "Nothing of it was published."
    elif teller.deleted:
        yield "Its feed was deleted: nothing of it is published now."
    else:
        state = f"{answer.state} {OUTCOMES[answer.outcome]}" if answer.outcome in OUTCOMES else answer.state
        yield f"Published last: revision {answer.revision}, {state}, mixed forecast {chance(mixed.mix)}."
        if mixed.scored is not None:
            yield (
                f"Its scored forecast is {chance(mixed.scored.mix)}, as published first under revision"
                f" {mixed.scored.revision}; later records correct it and are never scored."
            )
    late = [one for one in chapters if one.forecasts and stated_moment(one) < one.time and not one.refused]
    if late:
        yield f"Late (dated earlier than they arrived): forecasts of {shortened(map(_of_line, late), _QUIET_SHOWN)}."
    refused = [
        f"{line(one)} ({joined([refusal.reason for refusal in one.refused])})" for one in chapters if one.refused
    ]
    if refused:
        yield f"Refused: {shortened(refused, _QUIET_SHOWN)}."
    yield from _facts(teller)


def _facts(teller: Teller) -> Iterator[str]:
    """Mixed forecasts that were published under one outcome and under another, and never changed."""
    kept = []
    for records in teller.mixes.values():
        moment = (records[0].boundary or "").removesuffix("Z").replace("T", " ")[:16]
        if len({one.outcome for one in records}) > 1 and len({one.mix for one in records}) == 1:
            revisions = shortened((str(one.revision) for one in records), _QUIET_SHOWN)
            kept.append(f"{chance(records[0].mix)} for the round of {moment} (revisions {revisions})")
    if kept:
        yield f"Unchanged by outcomes: the mixed forecast {shortened(kept, _QUIET_SHOWN)}."


def _of_line(chapter: Chapter) -> str:
    return f"{joined(list(chapter.forecasts))} ({line(chapter)})"
