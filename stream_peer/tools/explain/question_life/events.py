"""What a line of a file says about a question, in words, and why something was published because of it."""

from collections.abc import Iterator

from stream_peer.events.feed_log import Round, Verdict
from stream_peer.events.incoming import (
    Event,
    ExpertControl,
    FeedControl,
    Question,
    Resolution,
    moment,
)
from stream_peer.events.times import Milliseconds
from stream_peer.questions.schedule import RoundPlan
from stream_peer.tools.explain.phrases import chance, joined, said, shortened
from stream_peer.tools.explain.question_life.explainer import Chapter, Look
from stream_peer.tools.replay.run import THE_END

OUTCOMES: dict[Verdict, str] = {1: "yes", 0: "no"}
_SHOWN = 8
_ENTERED = {"open": "The question opens", "closed": "The question closes"}


def heading(chapter: Chapter) -> str:
    """What happened, in one sentence, with the line that says it."""
    event = chapter.event
    is_control = isinstance(event, ExpertControl | FeedControl)
    if not (chapter.own or is_control):
        return _of_time(chapter)
    if chapter.refused:
        what = f"Refused: {'; '.join(refusal.message for refusal in chapter.refused)}"
    else:
        what = _of_control(event) if isinstance(event, ExpertControl | FeedControl) else _of_own(event, chapter)
    return f"{what} ({line(chapter)})"


def _of_own(event: Event | None, chapter: Chapter) -> str:
    if isinstance(event, Question):
        return _of_question(chapter)
    if isinstance(event, Resolution):
        return _of_resolution(event, chapter)
    return _of_forecasts(chapter)


def moves(chapter: Chapter) -> Iterator[str]:
    """How the line moved the question's moments, and through which states it went."""
    before, after = chapter.before, chapter.after
    if before.plan is not None and after.plan is not None:
        for name, one, other in (
            ("opening", before.plan.opens, after.plan.opens),
            ("close", before.plan.close, after.plan.close),
        ):
            if one != other and one is not None and other is not None and chapter.own:
                yield f"The {name} moves from {said(one, chapter.time)} to {said(other, chapter.time)}"
    states = state_of(before), state_of(after)
    if states[0] != states[1] and after.plan is None:
        yield f"The question was {states[0]}; its history is deleted"
    elif states[0] != states[1] and before.plan is not None:
        yield f"The question was {states[0]}; it is {states[1]} now{_again(*states)}"


def reason(chapter: Chapter) -> str:
    """Why rounds were revised in this chapter, as the end of a sentence that begins with "because"."""
    event, at = chapter.event, chapter.time
    if chapter.forecasts:
        stated = _stated(event) or at
        names = shortened(list(chapter.forecasts), 3)
        late = f"dated {said(stated, at)} arrived on {said(at, at)}" if stated < at else "counts from an earlier moment"
        return f"a forecast of {names} {late}"
    if chapter.own and _close(chapter.before) != _close(chapter.after):
        return "the close moved" if _close(chapter.before) else "the question has a close now"
    if chapter.own:
        return f"{line(chapter)} says so"
    if isinstance(event, ExpertControl):
        if event.rename is not None:
            return f"{event.expert_id} was renamed {event.rename}"
        return f"{event.expert_id} {'was erased' if event.forget else 'was changed'}"
    return "its moment has passed"


def line(chapter: Chapter) -> str:
    """Where the line stands: ``line 17 of forecasts.jsonl``; of the only file (``:17``) without its name."""
    name, colon, number = chapter.arrival.event.place.rpartition(":")
    of_file = f" of {name}" if name else ""
    return f"line {number}{of_file}" if colon else number


def state_of(look: Look) -> str:
    """The state in which the question stage has a question: unknown, scheduled, open or closed."""
    plan, clock = look.plan, look.clock
    if plan is None:
        return "unknown"
    if plan.opens is None or clock < plan.opens:
        return "scheduled"
    return "open" if plan.close is None or clock < plan.close else "closed"


def stated_moment(chapter: Chapter) -> Milliseconds:
    """The moment that the line states, else that of its arrival."""
    return _stated(chapter.event) or chapter.time


def _again(before: str, after: str) -> str:
    return ": it reopens" if (before, after) == ("closed", "open") else ""


def _close(look: Look) -> Milliseconds | None:
    return look.plan.close if look.plan else None


def _of_question(chapter: Chapter) -> str:
    plan = chapter.after.plan
    if chapter.before.plan is not None or plan is None:
        return "The question is edited"
    return f"The question is announced{_schedule(plan, chapter.time)}"


def _schedule(plan: RoundPlan, beside: Milliseconds) -> str:
    moments = (("opens", plan.opens), ("closes", plan.close))
    known = [f"{verb} {said(at, beside)}" for verb, at in moments if at is not None]
    return f": it {joined(known)}" if known else ""


def _of_forecasts(chapter: Chapter) -> str:
    said_by = shortened((says(expert, p) for expert, p in chapter.forecasts.items()), _SHOWN)
    stated, plan = stated_moment(chapter), chapter.after.plan
    if stated < chapter.time:
        return f"{said_by}: dated {said(stated, chapter.time)}, it arrives only now"
    if plan is not None and plan.opens is not None and stated < plan.opens:
        return f"{said_by}: it waits for the opening"
    if plan is not None and plan.close is not None and stated > plan.close:
        return f"{said_by}: after the close: it counts in no round unless the close moves"
    return said_by


def says(expert: str, probability: float | None) -> str:
    """An expert and its forecast, in words."""
    return f"{expert} withdraws" if probability is None else f"{expert} says {chance(probability)}"


def _of_resolution(event: Resolution, chapter: Chapter) -> str:
    verdict = event.verdict
    if verdict == "open":
        return "The resolution is retracted"
    what = "The question is annulled" if verdict == "annulled" else f"The question is resolved: {OUTCOMES[verdict]}"
    if event.closed_at is None:
        return what
    return f"{what}, closed at {said(moment(event.closed_at), chapter.time)}"


def _of_control(event: ExpertControl | FeedControl) -> str:
    if isinstance(event, FeedControl):
        return f"The feed is {'deleted' if event.delete else 'reset'}"
    if event.forget:
        return f"{event.expert_id} is erased"
    if event.rename is not None:
        return f"{event.expert_id} is renamed {event.rename}"
    changes = []
    if event.excluded is True:
        changes.append("is excluded")
    if event.excluded is False:
        changes.append("is included again")
    if isinstance(event.team, str):
        changes.append(f"belongs to team {event.team}")
    if event.team is None:
        changes.append("belongs to no team")
    return f"{event.expert_id} {joined(changes)}, from now on"


def _of_time(chapter: Chapter) -> str:
    if chapter.arrival.event.place == THE_END:
        return "The files end; time passes to the last moment that they name"
    states = state_of(chapter.before), state_of(chapter.after)
    if states[0] != states[1] and states[1] in _ENTERED:
        return f"{_ENTERED[states[1]]}, as time passes ({line(chapter)})"
    due = any(isinstance(one.record, Round) for one in chapter.logged)
    return f"{'A round is due' if due else 'Time passes'} ({line(chapter)})"


def _stated(event: Event | None) -> Milliseconds | None:
    at = getattr(event, "at", None)
    return None if at is None else moment(at)
