"""The same engine over files, without Kafka: what the service would have said."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

import yaml

from stream_peer.errors import SettingFault, SettingsError
from stream_peer.events.times import Milliseconds
from stream_peer.feeds.methods.method import MethodOf
from stream_peer.feeds.methods.served import served_method
from stream_peer.log.stage import Warned
from stream_peer.settings.feed.document import FeedSettingsBook, load_document
from stream_peer.settings.process.yaml_file import read_yaml
from stream_peer.tools.replay.file_events import (
    FileEvent,
    FileOrder,
    RevealedShare,
    in_feed,
    last_event_time,
    merged_by_time,
    reveal,
    shuffle,
    timed,
)
from stream_peer.tools.replay.files import FileLine, Progress
from stream_peer.tools.replay.history import ReplayHistory
from stream_peer.tools.replay.run import CONTROLS, RefusedLine, ReplayPlan, ReplayProbe, Run, Write

_ALWAYS = {"history": True, "backdate_limit": None, "idle_after": None}
_UNLESS_SAID = {"history_for": "10000y"}
"""A file may be shuffled: its clock runs ahead of most of its questions, whose histories must not go for that."""


class ReplayOptions(NamedTuple):
    """How to replay.

    ``document`` holds feed settings (``defaults`` and ``feeds``); ``feed_as`` puts every event into one feed;
    ``reveal``: the share of questions whose outcomes are revealed, at their close (None: as the file has them);
    ``shuffle`` seeds another interleaving of the questions; ``method_of`` says which methods settings can choose;
    ``publishes``: error rates and weights along the way, not at the end only.
    """

    document: Mapping[str, Any] = {}
    feed_as: str | None = None
    reveal: RevealedShare | None = None
    shuffle: int | None = None
    partitions: int = 1
    feed_log_partitions: int = 1
    secret: bytes = b""
    method_of: MethodOf = served_method
    publishes: bool = True


class ReplayResult(NamedTuple):
    """What came of a replay.

    ``history`` is what the output topics would hold, ``counts`` what the stages counted, ``refused`` the first
    refused lines, ``ended`` the moment up to which deadlines were met, ``settings`` those of the feeds; ``warned``
    counts warnings by code, of which ``warnings`` are the first; ``orders`` says how the lines of each file stood.
    """

    history: ReplayHistory
    counts: Counter[tuple[str, str]]
    refused: list[RefusedLine]
    events: int
    ended: Milliseconds
    settings: FeedSettingsBook
    warned: Counter[str]
    warnings: list[Warned]
    orders: list[FileOrder]

    def variant(self, feed: str) -> str:
        """Settings of meaning that differ from the default; empty if none does."""
        return ", ".join(self.settings.of(feed).changed_meaning())


def replay(
    files: Sequence[Iterable[FileLine]],
    options: ReplayOptions | None = None,
    *,
    write: Write | None = None,
    progress: Progress | None = None,
    probes: Sequence[ReplayProbe] = (),
    finished: Sequence[Callable[[Run], None]] = (),
) -> ReplayResult:
    """Fold the events of files as the service would have, with every feed historical.

    The record time of a line is the largest moment stated up to it; at the end time passes to the last moment that
    the files know of, so that everything closes.

    Parameters
    ----------
    files : sequence of lines
        Each is put in order of time, unless its own order is that in which they came; several are merged.
    options : ReplayOptions, optional
        How.
    write : callable, optional
        Gets every output and every feed-log record, in order.
    progress : callable, optional
        Told how many events of how many are folded.
    probes : sequence of ReplayProbe
        Are shown every record as it is folded.
    finished : sequence of callables
        Are shown the run at its end, which has kept its log.

    Raises
    ------
    SettingsError
        Names every fault of the settings.
    """
    chosen = options or ReplayOptions()
    book = load_document(historical(chosen.document), origin="--set", in_replay=True)
    horizon = max(settings.horizon for settings in (book.default, *book.feeds.values()))
    events, orders = merged_by_time(files, horizon)
    ended = last_event_time(events, horizon)
    events = _prepared(events, chosen)
    with Run(_plan(chosen, book, events, write, probes, keeps_log=bool(finished))) as run:
        for number, (time, event) in enumerate(timed(events, horizon)):
            run.fold(event, time)
            if progress is not None and number % 50 == 0:
                progress(number, len(events))
        if ended:
            run.end(ended + max(settings.grace for settings in (book.default, *book.feeds.values())))
        for shown in finished:
            shown(run)
    if progress is not None:
        progress(len(events), len(events))
    return ReplayResult(
        run.history, run.counts, run.refused, len(events), ended, book, run.warned, run.warnings, orders
    )


def _plan(
    options: ReplayOptions,
    book: FeedSettingsBook,
    events: Sequence[FileEvent],
    write: Write | None,
    probes: Sequence[ReplayProbe],
    *,
    keeps_log: bool,
) -> ReplayPlan:
    return ReplayPlan(
        book,
        options.partitions,
        options.feed_log_partitions,
        options.secret,
        keeps_log=keeps_log
        or any(event.kind in CONTROLS for event in events)
        or any(options.method_of(settings).finds_blocks for settings in (book.default, *book.feeds.values())),
        write=write,
        probes=probes,
        method_of=options.method_of,
        publishes=options.publishes,
    )


def historical(document: Mapping[str, Any]) -> dict[str, Any]:
    """A settings document with every feed historical: its stated times count, and no clock but theirs runs."""
    feeds = {} if document.get("feeds") is None else document["feeds"]
    if isinstance(feeds, Mapping):
        feeds = {name: _over(own, {}) for name, own in feeds.items()}
    return {**document, "defaults": _over(document.get("defaults"), _UNLESS_SAID), "feeds": feeds}


def _over(section: object, below: Mapping[str, Any]) -> object:
    """A section of a document that is historical; what is no section is left as it is, to be named as a fault."""
    own = {} if section is None else section
    return {**below, **own, **_ALWAYS} if isinstance(own, Mapping) else own


def with_settings(document: Mapping[str, Any], assignments: Sequence[str], origin: str = "--set") -> dict[str, Any]:
    """A settings document with single settings changed: ``round_every=1d``, ``feeds.econ.min_experts=2``.

    Raises
    ------
    SettingsError
        If one is no assignment.
    """
    changed: dict[str, Any] = deepcopy(dict(document))
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        if not equals or not path:
            raise SettingsError([SettingFault(assignment, origin, "write it as name=value")])
        names = path.split(".")
        place = changed
        for name in names[:-1] if names[0] in ("defaults", "feeds") else ["defaults", *names[:-1]]:
            place = place.setdefault(name, {})
            if not isinstance(place, dict):
                raise SettingsError([SettingFault(assignment, origin, f"{name} was set to {place!r}: it has no parts")])
        place[names[-1]] = _value(assignment, text, origin)
    return changed


def _value(assignment: str, text: str, origin: str) -> Any:
    try:
        return read_yaml(text)
    except yaml.YAMLError as error:
        raise SettingsError([SettingFault(assignment, origin, f"{text!r} is no YAML")]) from error


def _prepared(events: list[FileEvent], options: ReplayOptions) -> list[FileEvent]:
    if options.feed_as is not None:
        events = in_feed(events, options.feed_as)
    if options.reveal is not None:
        events = reveal(events, options.reveal)
    if options.shuffle is not None:
        events = shuffle(events, options.shuffle)
    return events
