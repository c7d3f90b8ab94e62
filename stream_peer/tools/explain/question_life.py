"""The life of a question in words that a forecaster understands: what each step of its timeline published."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import msgspec

from stream_peer.events.feed_log import (
    ExpertChanged,
    FeedChanged,
    OutcomeRevealed,
    ProvisionalOutcome,
    Round,
    RoundWithdrawn,
)
from stream_peer.events.groups import group_id_of, name_of
from stream_peer.events.incoming import ExpertControl
from stream_peer.events.outputs import MixedForecast, MixedGroup, ReferenceAnswer, StateOfQuestion, WeightedExpert
from stream_peer.events.times import Milliseconds, to_iso
from stream_peer.feeds.views import FeedView
from stream_peer.tools.explain.question_events import (
    OUTCOMES,
    line,
    moves,
    reason,
    state_of,
    stated_moment,
    step_heading,
)
from stream_peer.tools.explain.question_timeline import FeedStep, LifeStep
from stream_peer.tools.explain.words import chance, date_of, joined, shortened
from stream_peer.tools.replay.history import many

_SHOWN = 8
_STATES: Mapping[StateOfQuestion, str] = {
    "scored": "no outcome is known",
    "low-evidence": "too few votes to learn from",
    "resolved": "outcome {outcome}",
    "annulled": "it counts for nothing",
    "withdrawn": "it has no round left",
}


class RoundSnapshot(NamedTuple):
    """A round as it was scored last: its revision, and the forecasts in it."""

    revision: int
    final: bool
    weight: float
    forecasts: dict[str, float]


class Narrator:
    """Words what came of each step, and remembers what was published, to say what is new.

    ``mixes`` holds all that was published as the mixed forecast of a round, by its boundary and the revision under
    which it was scored.
    """

    def __init__(self) -> None:
        self.rounds: dict[Milliseconds, RoundSnapshot] = {}
        self.revisions: list[int] = []
        self.mixes: dict[tuple[str, int], list[MixedForecast]] = {}
        self.deleted = False
        self.answer: ReferenceAnswer | None = None
        self.mixed: MixedForecast | None = None
        self._scored: dict[str, int] = {}
        self._feed = ""
        self._parts: dict[str, float] = {}
        self._excluded: set[str] = set()
        self._gone: set[Milliseconds] = set()
        self._weights: list[tuple[int, list[WeightedExpert]]] = []
        self._rates = ""
        self._trust = ""

    def items(self, step: LifeStep) -> Iterator[str]:
        """What came of a step, an item a sentence."""
        yield from self._records(step)
        published = [one for one in step.feed_steps if one.answer is not None]
        if published:
            yield from self._published(published[-1], step)
        for one in step.feed_steps:
            self._remember(one)
        yield from self._of_group(step.group)
        if step.feed_steps:
            yield from self._of_feed(step.feed_steps)
        elif step.late:
            yield f"{many(step.late, 'forecast')} of it count from later than stated: they arrived too late"
        elif step.own and not (step.forecasts or step.refused) and self.revisions:
            yield "No output changes"

    # --- the feed-log ---

    def _records(self, step: LifeStep) -> Iterator[str]:
        withdrawn = [one for one in step.feed_steps if isinstance(one.event, RoundWithdrawn)]
        if withdrawn:
            yield self._withdrawn(withdrawn, step)
        for one in step.feed_steps:
            record = one.event
            if isinstance(record, Round):
                yield from self._round(one, record, step)
            elif isinstance(record, OutcomeRevealed):
                yield f"{_outcome(record)} (revision {one.revision})"
            elif isinstance(record, ProvisionalOutcome):
                yield f"{_provisional(record)} (revision {one.revision})"
            elif isinstance(record, ExpertChanged | FeedChanged):
                yield self._control(one.revision, record)

    def _control(self, revision: int, record: ExpertChanged | FeedChanged) -> str:
        if isinstance(record, FeedChanged):
            self.deleted = record.delete
            what = "The feed is deleted" if record.delete else "The feed's sums are cleared"
            return f"{what} (revision {revision})"
        expert = record.expert_id
        if record.forget:
            for snapshot in self.rounds.values():
                snapshot.forecasts.pop(expert, None)
            return f"The feed is rebuilt from its log without {expert} (revision {revision})"
        if record.rename is not None:
            return f"What {record.rename} says from now on counts for {expert} (revision {revision})"
        if record.excluded is True:
            self._excluded.add(expert)
            return f"In the rounds scored from now on {expert} is absent (revision {revision})"
        if record.excluded is False:
            self._excluded.discard(expert)
            return f"Its earlier record counts again (revision {revision})"
        return f"Members of a team are not scored against each other from now on (revision {revision})"

    def _withdrawn(self, records: Sequence[FeedStep], step: LifeStep) -> str:
        moments = []
        for one in records:
            boundary = getattr(one.event, "boundary", 0)
            self.rounds.pop(boundary, None)
            self._gone.add(boundary)
            moments.append(date_of(boundary, step.time))
        revisions = joined([str(one.revision) for one in records])
        which = f"The round of {moments[0]} is" if len(moments) == 1 else f"The rounds of {joined(moments)} are"
        return f"{which} withdrawn, because {reason(step)} ({_revisions(len(records))} {revisions})"

    def _round(self, one: FeedStep, record: Round, step: LifeStep) -> Iterator[str]:
        """What a round says; of a round in parts, when its last part is there."""
        self._parts.update(zip(record.experts, record.probabilities, strict=True))
        if record.part + 1 < record.parts:
            return
        if record.feed != self._feed and self._feed:
            yield f"The question belongs to feed {record.feed} now"
        now = RoundSnapshot(one.revision, record.final, record.weight, self._parts)
        before, earlier = self.rounds.get(record.boundary), self._earlier(record.boundary)
        self.rounds[record.boundary], self._parts, self._feed = now, {}, record.feed
        at = date_of(record.boundary, step.time)
        if before is not None:
            changed = shortened(_differences(before, now), _SHOWN)
            replaces = f"(revision {one.revision} replaces {before.revision})"
            yield f"The round of {at} is revised, because {reason(step)}: {changed} {replaces}"
            return
        last, again = ", the last one," if record.final else "", " again" if record.boundary in self._gone else ""
        start = f"The round of {at}{last} is published{again} (revision {one.revision})"
        yield start + self._with(now, earlier, step)

    def _with(self, now: RoundSnapshot, earlier: Milliseconds | None, step: LifeStep) -> str:
        """The forecasts in a round, or what is new in them since the round before."""
        if earlier is None:
            return f", with {shortened((self._stands(*one) for one in now.forecasts.items()), _SHOWN)}"
        before = self.rounds[earlier]
        changes = [*_differences(before, now._replace(final=before.final))]
        since = f"since the round of {date_of(earlier, step.time)}"
        return f"; {since}: {shortened(changes, _SHOWN) if changes else 'no forecast changed'}"

    def _stands(self, expert: str, probability: float) -> str:
        excluded = " (excluded)" if expert in self._excluded else ""
        return f"{expert} {chance(probability)}{excluded}"

    def _earlier(self, boundary: Milliseconds) -> Milliseconds | None:
        return max((moment for moment in self.rounds if moment < boundary), default=None)

    # --- the question's outputs ---

    def _published(self, one: FeedStep, step: LifeStep) -> Iterator[str]:
        answer, mixed = one.answer, one.mixed
        if answer is None or mixed is None:
            return
        before = self.answer
        if before is None or before.state != answer.state or before.outcome != answer.outcome:
            yield _state(answer) + (f"; it was {before.state}" if before and before.state != answer.state else "")
        if answer.reference_answer is None:
            return
        crowd = f"The crowd says {OUTCOMES[1 if answer.reference_answer else 0]}, {_votes(answer)}"
        forecast = f"mixed forecast {chance(mixed.mix)} (mean {chance(mixed.mean)}, median {chance(mixed.median)})"
        if before is not None and self.mixed is not None and _same(self.mixed, mixed) and _same_votes(before, answer):
            yield f"The latest round is unchanged: {forecast}"
        else:
            yield f"{crowd}; {forecast}"
        yield from _against_outcome(one, step)

    def _of_group(self, group: MixedGroup | None) -> Iterator[str]:
        """The forecast of the question as one of its group, beside its own."""
        parts = () if group is None else (*(group.options or ()), *(group.cdf or ()))
        for part in parts:
            if group is not None and self.mixed is not None and part.name == name_of(self.mixed.question):
                coherent = f"{chance(part.mix)}, stretched {chance(part.stretched)}"
                raw = f"{chance(self.mixed.mix)}, stretched {chance(self.mixed.stretched)}"
                yield f"Coherent with the other parts of {group.group}: mixed forecast {coherent}; by itself {raw}"

    def _remember(self, one: FeedStep) -> None:
        if isinstance(one.event, Round):
            self._scored[to_iso(one.event.boundary)] = one.revision
        if one.answer is None:
            return
        self.deleted = False
        self.revisions.append(one.revision)
        self.answer, self.mixed = one.answer, one.mixed
        if one.mixed is not None and one.mixed.boundary is not None and one.mixed.mix is not None:
            of_facts = one.mixed.boundary, self._scored.get(one.mixed.boundary, -1)
            self.mixes.setdefault(of_facts, []).append(one.mixed)

    # --- the feed's outputs ---

    def _of_feed(self, feed_steps: Sequence[FeedStep]) -> Iterator[str]:
        feed = feed_steps[-1].event.feed
        before, after = next(one.before for one in feed_steps if one.event.feed == feed), feed_steps[-1].after
        if after is None:
            return
        yield _weights(before, after) + self._as_before(feed_steps[-1].revision, before, after)
        rate = after.weights.error_rate
        shown = f"{(rate.zero + rate.one) / 2:.1%} ({rate.low:.1%} to {rate.high:.1%}, {rate.status})"
        measured = "" if rate.measured is None else f"; measured on outcomes: {rate.measured:.1%}"
        if shown + measured != self._rates:
            self._rates = shown + measured
            yield f"Estimated error rate of the crowd: {shown}{measured}"
        weights = after.weights
        reasons = f" ({'; '.join(weights.status_reasons)})" if weights.status_reasons else ""
        if weights.status != self._trust:
            self._trust = weights.status
            yield f"Trust in the feed: {weights.status}{reasons}"

    def _as_before(self, revision: int, before: FeedView | None, after: FeedView) -> str:
        """Whether all weights and losses of experts are once more what they were, to the last bit."""
        experts = after.weights.experts
        same = [number for number, known in self._weights if known == experts]
        moved = before is None or before.weights.experts != experts
        self._weights.append((revision, experts))
        return f". They equal those of revision {same[-1]}, to the last bit" if same and moved else ""


def _weights(before: FeedView | None, after: FeedView) -> str:
    old = {} if before is None else {expert.id: expert.mix for expert in before.weights.experts}
    new = {expert.id: expert.mix for expert in after.weights.experts}
    if before is not None and before.weights.experts == after.weights.experts:
        return "No weight changes"
    moved = {name: new.get(name, 0.0) - old.get(name, 0.0) for name in {**old, **new}}
    order = sorted(moved, key=lambda name: (-abs(moved[name]), name))
    pairs = [(name, f"{old.get(name, 0.0):.3f}", f"{new.get(name, 0.0):.3f}") for name in order]
    shown = [f"{name} {one} → {other}" for name, one, other in pairs if one != other]
    return f"Weights in the mix: {shortened(shown, _SHOWN)}" if shown else "Weights change by less than 0.001"


def _against_outcome(one: FeedStep, step: LifeStep) -> Iterator[str]:
    """Losses against an outcome that has just become known."""
    is_new = any(isinstance(each.event, OutcomeRevealed) for each in step.feed_steps)
    if not is_new or one.losses is None or one.mixed is None:
        return
    if one.mixed.mix is None or one.mixed.outcome not in {0, 1}:
        return
    losses = sorted(
        (expert.outcome_loss, expert.id) for expert in one.losses.experts if expert.outcome_loss is not None
    )
    if losses:
        of_mix = (one.mixed.mix - float(one.mixed.outcome == 1)) ** 2
        shown = shortened((f"{name} {chance(loss)}" for loss, name in losses), _SHOWN)
        yield f"Losses against the outcome, smaller is better: mix {chance(of_mix)}; {shown}"


def _differences(before: RoundSnapshot, now: RoundSnapshot) -> Iterator[str]:
    for expert in sorted({**before.forecasts, **now.forecasts}):
        old, new = before.forecasts.get(expert), now.forecasts.get(expert)
        if old is None:
            yield f"{expert} joins with {chance(new)}"
        elif new is None:
            yield f"{expert} leaves"
        elif old != new:
            yield f"{expert} {chance(old)} → {chance(new)}"
    if before.final != now.final:
        yield "it is the last one now" if now.final else "it is no longer the last one"
    if before.weight != now.weight:
        yield f"its weight is {now.weight:g}"


def _outcome(record: OutcomeRevealed) -> str:
    if record.outcome == "open":
        return "The outcome is retracted"
    if record.outcome == "annulled":
        return "The question no longer counts"
    return f"The outcome is known: {OUTCOMES[record.outcome]}"


def _provisional(record: ProvisionalOutcome) -> str:
    if record.outcome == "open":
        return "The provisional outcome is retracted"
    return f"A provisional outcome is shown, and teaches nothing: {OUTCOMES.get(record.outcome, record.outcome)}"


def _state(answer: ReferenceAnswer) -> str:
    outcome = "" if answer.outcome is None else OUTCOMES.get(answer.outcome, "")
    return f"Published as {answer.state}: {_STATES[answer.state].format(outcome=outcome)}"


def _votes(answer: ReferenceAnswer) -> str:
    tie = ", a tie" if answer.tie else ""
    agreeing = answer.yes if answer.reference_answer else answer.votes - answer.yes
    return f"{agreeing} of {many(answer.votes, 'vote')}{tie}"


def _same(one: MixedForecast, other: MixedForecast) -> bool:
    return (one.boundary, one.mix, one.mean, one.median) == (other.boundary, other.mix, other.mean, other.median)


def _same_votes(one: ReferenceAnswer, other: ReferenceAnswer) -> bool:
    return (one.reference_answer, one.votes, one.yes) == (other.reference_answer, other.votes, other.yes)


def _revisions(number: int) -> str:
    return "revision" if number == 1 else "revisions"


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
    group = None if narrator.answer is None else group_id_of(narrator.answer.question)
    what = "A question" if group is None else f"A part of group {group}"
    yield f"{what}{whose}, published {times}, from {joined(files)}. Times are UTC."
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
    yield from _unchanged_mixes(narrator)


def _unchanged_mixes(narrator: Narrator) -> Iterator[str]:
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
