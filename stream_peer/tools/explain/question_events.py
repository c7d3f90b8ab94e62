"""What a line of a file says about a question, in words, and why it made the service publish."""

from collections.abc import Iterator

from stream_peer.events.feed_log import Round, Verdict
from stream_peer.events.incoming import Event, ExpertControl, FeedControl, Question, Resolution, moment
from stream_peer.events.times import Milliseconds
from stream_peer.questions.schedule import RoundPlan
from stream_peer.tools.explain.question_timeline import LifeStep, PlanAt
from stream_peer.tools.explain.words import chance, date_of, joined, shortened
from stream_peer.tools.replay.run import THE_END

OUTCOMES: dict[Verdict, str] = {1: "yes", 0: "no"}
_SHOWN = 8
_ENTERED = {"open": "The question opens", "closed": "The question closes"}


def step_heading(step: LifeStep) -> str:
    """What happened, in one sentence, with the line that says it."""
    event = step.event
    is_control = isinstance(event, ExpertControl | FeedControl)
    if not (step.own or is_control):
        return _of_time(step)
    if step.refused:
        what = f"Refused: {'; '.join(refusal.message for refusal in step.refused)}"
    else:
        what = _of_control(event) if isinstance(event, ExpertControl | FeedControl) else _of_own(event, step)
    return f"{what} ({line(step)})"


def _of_own(event: Event | None, step: LifeStep) -> str:
    if isinstance(event, Question):
        return _of_question(step)
    if isinstance(event, Resolution):
        return _of_resolution(event, step)
    return _of_forecasts(step)


def moves(step: LifeStep) -> Iterator[str]:
    """How the line moved the question's moments, and through which states it went."""
    before, after = step.before, step.after
    if before.plan is not None and after.plan is not None:
        for name, one, other in (
            ("opening", before.plan.opens, after.plan.opens),
            ("close", before.plan.close, after.plan.close),
        ):
            if one != other and one is not None and other is not None and step.own:
                yield f"The {name} moves from {date_of(one, step.time)} to {date_of(other, step.time)}"
    states = state_of(before), state_of(after)
    if states[0] != states[1] and after.plan is None:
        yield f"The question was {states[0]}; its history is deleted"
    elif states[0] != states[1] and before.plan is not None:
        yield f"The question was {states[0]}; it is {states[1]} now{_again(*states)}"


def reason(step: LifeStep) -> str:
    """Why rounds were revised in this step, as the end of a sentence that begins with "because"."""
    event, at = step.event, step.time
    if step.forecasts:
        stated = _stated(event) or at
        names = shortened(list(step.forecasts), 3)
        late = f"dated {date_of(stated, at)} arrived on {date_of(at, at)}"
        return f"a forecast of {names} {late if stated < at else 'counts from an earlier moment'}"
    if step.own and _close(step.before) != _close(step.after):
        return "the close moved" if _close(step.before) else "the question has a close now"
    if step.own:
        return f"{line(step)} says so"
    if isinstance(event, ExpertControl):
        if event.rename is not None:
            return f"{event.expert_id} was renamed {event.rename}"
        return f"{event.expert_id} {'was erased' if event.forget else 'was changed'}"
    return "its moment has passed"


def line(step: LifeStep) -> str:
    """Where the line stands: ``line 17 of forecasts.jsonl``; of the only file (``:17``) without its name."""
    name, colon, number = step.arrival.event.place.rpartition(":")
    of_file = f" of {name}" if name else ""
    return f"line {number}{of_file}" if colon else number


def state_of(look: PlanAt) -> str:
    """The state in which the question stage has a question: unknown, scheduled, open or closed."""
    plan, clock = look.plan, look.clock
    if plan is None:
        return "unknown"
    if plan.opens is None or clock < plan.opens:
        return "scheduled"
    return "open" if plan.close is None or clock < plan.close else "closed"


def stated_moment(step: LifeStep) -> Milliseconds:
    """The moment that the line states, else that of its arrival."""
    return _stated(step.event) or step.time


def _again(before: str, after: str) -> str:
    return ": it reopens" if (before, after) == ("closed", "open") else ""


def _close(look: PlanAt) -> Milliseconds | None:
    return look.plan.close if look.plan else None


def _of_question(step: LifeStep) -> str:
    plan = step.after.plan
    if step.before.plan is not None or plan is None:
        return "The question is edited"
    return f"The question is announced{_schedule(plan, step.time)}"


def _schedule(plan: RoundPlan, beside: Milliseconds) -> str:
    moments = (("opens", plan.opens), ("closes", plan.close))
    known = [f"{verb} {date_of(at, beside)}" for verb, at in moments if at is not None]
    return f": it {joined(known)}" if known else ""


def _of_forecasts(step: LifeStep) -> str:
    forecasts = shortened((says(expert, p) for expert, p in step.forecasts.items()), _SHOWN)
    stated, plan = stated_moment(step), step.after.plan
    if stated < step.time:
        return f"{forecasts}: dated {date_of(stated, step.time)}, it arrives only now"
    if plan is not None and plan.opens is not None and stated < plan.opens:
        return f"{forecasts}: it waits for the opening"
    if plan is not None and plan.close is not None and stated > plan.close:
        return f"{forecasts}: after the close: it counts in no round unless the close moves"
    return forecasts


def says(expert: str, probability: float | None) -> str:
    """An expert and its forecast, in words."""
    return f"{expert} withdraws" if probability is None else f"{expert} says {chance(probability)}"


def _of_resolution(event: Resolution, step: LifeStep) -> str:
    verdict = event.verdict
    if verdict == "open":
        return "The resolution is retracted"
    what = "The question is annulled" if verdict == "annulled" else f"The question is resolved: {OUTCOMES[verdict]}"
    if event.closed_at is None:
        return what
    return f"{what}, closed at {date_of(moment(event.closed_at), step.time)}"


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


def _of_time(step: LifeStep) -> str:
    if step.arrival.event.place == THE_END:
        return "The files end; time passes to the last moment that they name"
    states = state_of(step.before), state_of(step.after)
    if states[0] != states[1] and states[1] in _ENTERED:
        return f"{_ENTERED[states[1]]}, as time passes ({line(step)})"
    due = any(isinstance(one.event, Round) for one in step.feed_steps)
    return f"{'A round is due' if due else 'Time passes'} ({line(step)})"


def _stated(event: Event | None) -> Milliseconds | None:
    at = getattr(event, "at", None)
    return None if at is None else moment(at)
