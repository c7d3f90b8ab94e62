"""``stream-peer expert | reset | delete``: controls of a feed and its experts, written to control-events."""

from datetime import UTC, datetime

import click
import msgspec
from msgspec import UNSET, UnsetType

from stream_peer.cli.options import Invocation, must_be_feed_name, settings_options
from stream_peer.errors import NotAuthorisedError, RejectedEvent, TopicsError
from stream_peer.events.incoming import ExpertControl, FeedControl, decode
from stream_peer.events.outputs import Weights
from stream_peer.settings.process import Settings

_FORGETTING = """\
Erasing {expert} from feed {feed}, for good:
  - the feed is rebuilt without {expert}; the id is removed from state, metrics and logs, and later outputs do not
    name it
  - later events that name {expert} are refused (reason forgotten), in this feed
  Until you purge them, control-events and feed-log keep the id for ever; forecast-events and the output topics keep
  older records until their retention is over."""
_RESETTING = """\
Resetting feed {feed}: its sums and its ledger are deleted, and learning starts again with the next questions.
  Revisions go on; rounds and outcomes of questions scored so far do not count. Teams, exclusions and settings stay."""
_DELETING = """\
Deleting feed {feed}, for good:
  - its questions, experts, sums and corrections are deleted from state, and its keys from the output topics
  - a later event of its name begins a new, empty feed
  Until you purge them, control-events and feed-log keep its records for ever; forecast-events and the output topics
  keep older records until their retention is over."""

_yes = click.option("--yes", "-y", "sure", is_flag=True, help="Do not ask; needed without a terminal.")


@click.command(name="expert")
@click.argument("feed")
@click.argument("expert")
@click.option("--team", metavar="TEAM", help="Put the expert into this team.")
@click.option("--no-team", is_flag=True, help="Take the expert out of its team.")
@click.option("--exclude", is_flag=True, help="Exclude the expert from later rounds.")
@click.option("--include", is_flag=True, help="Re-include an excluded expert.")
@click.option("--rename", metavar="NEW", help="Give the expert another id, which no expert of the feed has.")
@click.option("--forget", is_flag=True, help="Erase the expert for good.")
@_yes
@settings_options()
def expert_command(
    invocation: Invocation,
    *,
    feed: str,
    expert: str,
    team: str | None,
    no_team: bool,
    rename: str | None,
    forget: bool,
    sure: bool,
    **presence: bool,
) -> None:
    """Exclude, re-include, group, rename or erase EXPERT in FEED. Options change only what they name.

    An excluded expert is absent in every later round: it has no vote, no weight and no losses; its sums are kept until
    it is re-included. Members of a team vote and are weighted one by one, but are scored against the answer of experts
    outside the team: use it for experts that share their sources.

    A renamed expert keeps its weight and its sums. Later outputs show the new id; events with an earlier id still count
    for it. Rename an expert before its producer uses the new id: two experts cannot be merged.

    \b
    stream-peer expert econ bot-17 --exclude
    stream-peer expert econ bot-17 --include
    stream-peer expert econ gpt-a --team gpt
    stream-peer expert econ gpt-a --rename gpt-a-2026
    stream-peer expert econ ann --forget               asks before; --yes does not
    """  # noqa: D301
    event = ExpertControl(
        feed=feed,
        expert_id=expert,
        at=datetime.now(tz=UTC),
        team=_team(team, none=no_team),
        excluded=_excluded(**presence),
        rename=rename,
        forget=forget,
    )
    _check(event)
    if forget:
        _must_be_able_to_ask(sure=sure)
    if rename is None:
        _note_unknown(invocation.settings, feed, expert)
    else:
        _must_be_able_to_rename(invocation.settings, feed, expert, rename)
    if forget:
        _ask(_FORGETTING.format(feed=feed, expert=expert), sure=sure)
    _write(invocation.settings, event, f"{expert} in feed {feed}: {_change(event)}")


@click.command(name="reset")
@click.argument("feed")
@_yes
@settings_options()
def reset_command(invocation: Invocation, *, feed: str, sure: bool) -> None:
    """Reset the sums of FEED, after its questions or experts have changed.

    Sums and ledger are deleted; all experts are new again. Revisions go on, so that readers accept the new weights as
    newer. Teams, exclusions and settings stay.

    \b
    stream-peer reset econ
    """  # noqa: D301
    _control_feed(invocation.settings, FeedControl(feed=feed, reset=True), "reset", _RESETTING, sure=sure)


@click.command(name="delete")
@click.argument("feed")
@_yes
@settings_options()
def delete_command(invocation: Invocation, *, feed: str, sure: bool) -> None:
    """Delete FEED: its questions, experts and sums, and its keys in all output topics.

    Logs keep their records until you purge them: control-events and feed-log are kept for ever. A later event of
    the same name begins a new feed.

    \b
    stream-peer delete trial-feed
    """  # noqa: D301
    _control_feed(invocation.settings, FeedControl(feed=feed, delete=True), "delete", _DELETING, sure=sure)


def _control_feed(settings: Settings, event: FeedControl, what: str, consequences: str, *, sure: bool) -> None:
    _check(event)
    _must_be_able_to_ask(sure=sure)
    _note_unknown(settings, event.feed)
    _ask(consequences.format(feed=event.feed), sure=sure)
    _write(settings, event, f"Feed {event.feed}: {what}")


def _team(team: str | None, *, none: bool) -> str | UnsetType | None:
    if none and team is not None:
        msg = "--team and --no-team exclude each other"
        raise click.UsageError(msg)
    if none:
        return None
    return UNSET if team is None else team


def _excluded(*, exclude: bool, include: bool) -> bool | UnsetType:
    if exclude and include:
        msg = "--exclude and --include exclude each other"
        raise click.UsageError(msg)
    return exclude if exclude or include else UNSET


def _change(event: ExpertControl) -> str:
    """What an event asks for, in words."""
    changes = []
    if event.team is not UNSET:
        changes.append("in no team" if event.team is None else f"in team {event.team}")
    if event.excluded is not UNSET:
        changes.append("excluded" if event.excluded else "included")
    if event.rename is not None:
        changes.append(f"renamed {event.rename}")
    if event.forget:
        changes.append("forget")
    return ", ".join(changes)


def _check(event: ExpertControl | FeedControl) -> None:
    """Refuse, as wrong usage, what the control stage would refuse."""
    from stream_peer.questions.control_stage import check_control

    must_be_feed_name(event.feed, "FEED")
    try:
        decode(msgspec.json.encode(event))
        check_control(event)
    except RejectedEvent as rejection:
        raise click.UsageError(_USAGE.get(rejection.field, rejection.message)) from None


_USAGE = {
    "": "name what is to change: --team TEAM, --no-team, --exclude, --include, --rename NEW or --forget",
    "rename": "--rename stands alone, and NEW is another id than EXPERT, of 1 to 256 bytes",
    "forget": "--forget stands alone: an expert that is forgotten is in no team and neither excluded nor included",
}


def _must_be_able_to_ask(*, sure: bool) -> None:
    """Refuse, before a broker is awaited, to ask where nobody can answer."""
    if not sure and not click.get_text_stream("stdin").isatty():
        msg = "nothing was written: there is no terminal to ask at; say --yes if this is what you want"
        raise click.UsageError(msg)


def _ask(what: str, *, sure: bool) -> None:
    """Say what will happen and ask whether it shall."""
    click.echo(what, err=True)
    if not sure and not click.confirm("Go on?", err=True):
        click.echo("Nothing was written.", err=True)
        raise click.Abort


def _note_unknown(settings: Settings, feed: str, expert: str | None = None) -> None:
    """Say so if the weights know nothing of the feed or the expert: it may be a slip, or too early to be known."""
    from stream_peer.serve.feed_records import read_newest

    try:
        note = _unknown(read_newest(settings), feed, expert)
    except (NotAuthorisedError, TopicsError) as error:  # the control may be written all the same
        note = f"whether there are weights of feed {feed} could not be looked up: {error}"
    if note:
        click.echo(f"Note: {note}", err=True)


def _must_be_able_to_rename(settings: Settings, feed: str, expert: str, new: str) -> None:
    """Refuse, before anything is written, to rename an expert that is unknown, or to an id that another one has.

    Weights do not list experts who are excluded: of these, control-events knows.
    """
    from stream_peer.kafka.client.control_events import all_controls
    from stream_peer.serve.feed_records import read_newest

    newest = read_newest(settings).get(feed)
    controlled = all_controls(settings).experts.get(feed, {})
    listed = {found.id for found in newest.experts} if newest else set()
    if expert not in listed and expert not in controlled:
        msg = f"nothing was written: {expert} is no expert of feed {feed} that has weights, or of which a control tells"
        raise click.UsageError(msg)
    if new in listed or controlled.get(new) not in (None, controlled.get(expert, expert)):
        msg = f"nothing was written: {new} was known in feed {feed} before, and two experts cannot be made one"
        raise click.UsageError(msg)


def _unknown(known: dict[str, Weights], feed: str, expert: str | None) -> str:
    if not known:
        return ""
    if feed not in known:
        return f"there are no weights of feed {feed} so far; feeds that have some: {', '.join(sorted(known))}."
    if expert is None or any(found.id == expert for found in known[feed].experts):
        return ""
    return f"the newest weights of feed {feed} list no {expert}: misspelt, excluded, or nothing of it counts so far."


def _write(settings: Settings, event: ExpertControl | FeedControl, done: str) -> None:
    from stream_peer.kafka.client.control_events import write_control

    written = write_control(settings, event)
    click.echo(f"{done} (control-events {written.partition}, offset {written.offset}).")
