"""The life of a question in words that a forecaster understands, from what an ``QuestionProbe`` took down."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import msgspec

from stream_peer.events.incoming import ExpertControl
from stream_peer.events.times import Milliseconds
from stream_peer.tools.explain.phrases import chance, date_of, joined, many, shortened
from stream_peer.tools.explain.question_events import OUTCOMES, line, moves, state_of, stated_moment, step_heading
from stream_peer.tools.explain.question_narrator import Narrator
from stream_peer.tools.explain.question_timeline import LifeStep

_QUIET_SHOWN = 12


class NarratedStep(NamedTuple):
    """When it was, what happened, and what came of it, a sentence an item."""

    at: Milliseconds
    heading: str
    items: tuple[str, ...] = ()


class QuestionLife(NamedTuple):
    """A title, how to read it, what happened in order of time, and how it ended."""

    title: str
    opening: tuple[str, ...]
    steps: tuple[NarratedStep, ...]
    ending: tuple[str, ...]


def narrate(question_id: str, steps: Sequence[LifeStep]) -> QuestionLife:
    """The life of a question in words.

    Parameters
    ----------
    question_id : str
    steps : sequence of LifeStep
        Of the question's `QuestionProbe`.
    """
    files = _files(steps)
    shown_steps = _concerning(steps if len(files) > 1 else [_of_only_file(step) for step in steps])
    narrator = Narrator()
    narrated: list[NarratedStep] = []
    for kind, group in groupby(shown_steps, key=_kind_of_quiet):
        run = list(group)
        narrated += [_quiet(run)] if kind and len(run) > 1 else [_narrated(one, narrator) for one in run]
    return QuestionLife(
        f"The life of {question_id}",
        tuple(_opening(narrator, files)),
        tuple(narrated),
        tuple(_ending(shown_steps, narrator)),
    )


def _concerning(steps: Sequence[LifeStep]) -> list[LifeStep]:
    """Steps without controls of experts who never spoke of the question."""
    heard = {expert for step in steps for expert in step.forecasts}
    return [one for one in steps if not isinstance(one.event, ExpertControl) or one.event.expert_id in heard]


def _files(steps: Sequence[LifeStep]) -> list[str]:
    return list(dict.fromkeys(name for step in steps if (name := step.arrival.event.place.rpartition(":")[0])))


def _of_only_file(step: LifeStep) -> LifeStep:
    """The step with its place in the file, without the file's name."""
    event = step.arrival.event
    _, colon, number = event.place.rpartition(":")
    arrival = step.arrival._replace(event=event._replace(place=colon + number))
    return msgspec.structs.replace(step, arrival=arrival)


def _kind_of_quiet(step: LifeStep) -> str:
    """The state in which forecasts came of which nothing came at once; empty for all that is narrated singly."""
    in_order = stated_moment(step) >= step.time
    quiet = step.forecasts and in_order and not (step.feed_steps or step.refused or step.warnings)
    after = state_of(step.after)
    return after if quiet and after == state_of(step.before) else ""


def _quiet(steps: Sequence[LifeStep]) -> NarratedStep:
    """Forecasts that wait for the next round."""
    first, last = steps[0], steps[-1]
    forecasts = [
        f"{expert} {'withdraws' if p is None else chance(p)}{_day(step, first)}"
        for step in steps
        for expert, p in step.forecasts.items()
    ]
    what = "Forecasts wait for the opening" if state_of(last.after) == "scheduled" else "Forecasts come in"
    until = f" ({line(first)} to {line(last)})"
    return NarratedStep(first.time, f"{what}: {shortened(forecasts, _QUIET_SHOWN)}{until}")


def _day(step: LifeStep, first: LifeStep) -> str:
    """The day on which it came, where that is another one than of the first."""
    day, first_day = (date_of(one.time, first.time).rsplit(" ", 1)[0] for one in (step, first))
    return "" if day == first_day else f" on {day}"


def _narrated(step: LifeStep, narrator: Narrator) -> NarratedStep:
    items = [*moves(step), *narrator.items(step), *(warning.message for warning in step.warnings)]
    return NarratedStep(step.time, step_heading(step), tuple(items))


def _opening(narrator: Narrator, files: Sequence[str]) -> Iterator[str]:
    whose = f" of feed {narrator.answer.feed}" if narrator.answer else ""
    times = many(len(narrator.revisions), "time")
    yield f"A question{whose}, published {times}, from {joined(files)}. Times are UTC."
    yield (
        "A revision is the offset in the feed-log of the record that caused an output; readers keep the highest. "
        "Deadlines pass here with the next line of the files, in the service a moment after they are due."
    )


def _ending(steps: Sequence[LifeStep], narrator: Narrator) -> Iterator[str]:
    answer, mixed = narrator.answer, narrator.mixed
    if answer is None or mixed is None:
        yield "Nothing of it was published."
    elif narrator.deleted:
        yield "Its feed was deleted: nothing of it is published now."
    else:
        state = f"{answer.state} {OUTCOMES[answer.outcome]}" if answer.outcome in OUTCOMES else answer.state
        yield f"Published last: revision {answer.revision}, {state}, mixed forecast {chance(mixed.mix)}."
        if mixed.scored is not None:
            yield (
                f"Its scored forecast is {chance(mixed.scored.mix)}, as published first under revision"
                f" {mixed.scored.revision}; later records correct it and are never scored."
            )
    late = [one for one in steps if one.forecasts and stated_moment(one) < one.time and not one.refused]
    if late:
        yield f"Late (dated earlier than they arrived): forecasts of {shortened(map(_of_line, late), _QUIET_SHOWN)}."
    refused = [f"{line(one)} ({joined([refusal.reason for refusal in one.refused])})" for one in steps if one.refused]
    if refused:
        yield f"Refused: {shortened(refused, _QUIET_SHOWN)}."
    yield from _facts(narrator)


def _facts(narrator: Narrator) -> Iterator[str]:
    """Mixed forecasts that were published under one outcome and under another, and never changed."""
    kept = []
    for records in narrator.mixes.values():
        moment = (records[0].boundary or "").removesuffix("Z").replace("T", " ")[:16]
        if len({one.outcome for one in records}) > 1 and len({one.mix for one in records}) == 1:
            revisions = shortened((str(one.revision) for one in records), _QUIET_SHOWN)
            kept.append(f"{chance(records[0].mix)} for the round of {moment} (revisions {revisions})")
    if kept:
        yield f"Unchanged by outcomes: the mixed forecast {shortened(kept, _QUIET_SHOWN)}."


def _of_line(step: LifeStep) -> str:
    return f"{joined(list(step.forecasts))} ({line(step)})"
