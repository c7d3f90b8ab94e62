"""The same engine over files, without Kafka: what the service would have said."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from itertools import count
from typing import Any, NamedTuple

import msgspec
import yaml

from stream_peer.adapters.file_events import FileEvent, in_feed, last_moment, merged, reveal, shuffle, timed
from stream_peer.adapters.history import History
from stream_peer.adapters.jsonl import Line
from stream_peer.engine.dead_letters import refusal_of, refuse
from stream_peer.engine.feed import FeedStage
from stream_peer.engine.question import QuestionStage
from stream_peer.engine.stage import Effects, LogRecord, Output
from stream_peer.errors import RejectedEvent, SettingFault, SettingsError
from stream_peer.events import topics
from stream_peer.events.feed_settings import FeedSettingsBook, load_document
from stream_peer.events.partitioning import partition_of
from stream_peer.events.rejections import Reason
from stream_peer.events.times import Milliseconds, to_iso
from stream_peer.settings.yaml_file import read_yaml

LETTERS_KEPT = 1_000
_ALWAYS = {"history": True, "backdate_limit": None, "idle_after": None}
_UNLESS_SAID = {"history_for": "10000y"}
"""A file may be shuffled: its clock runs ahead of most of its questions, whose histories must not go for that."""

Write = Callable[[Output], None]
Progress = Callable[[int, int], None]


class ReplayOptions(NamedTuple):
    """How to replay.

    ``document`` holds feed settings (``defaults`` and ``feeds``); ``feed_as`` puts every event into one feed;
    ``reveal`` is the share of questions whose outcomes are told, each when its question closes (None: as the file
    has them); ``shuffle`` seeds another interleaving of the questions.
    """

    document: Mapping[str, Any] = {}
    feed_as: str | None = None
    reveal: float | None = None
    shuffle: int | None = None
    partitions: int = 1
    feed_log_partitions: int = 1
    secret: bytes = b""


class RefusedLine(NamedTuple):
    """A line that could not be used."""

    place: str
    reason: str
    message: str


class ReplayResult(NamedTuple):
    """What came of a replay.

    ``history`` is what the output topics would hold, ``counts`` what the stages counted, ``refused`` the first
    refused lines, ``ended`` the moment up to which deadlines were met, ``settings`` those of the feeds.
    """

    history: History
    counts: Counter[tuple[str, str]]
    refused: list[RefusedLine]
    events: int
    ended: Milliseconds
    settings: FeedSettingsBook

    def variant(self, feed: str) -> str:
        """What of a feed's meaning was not as built in; empty if all was."""
        return ", ".join(self.settings.of(feed).changed_meaning())


def replay(
    files: Sequence[Iterable[Line]],
    options: ReplayOptions | None = None,
    *,
    write: Write | None = None,
    progress: Progress | None = None,
) -> ReplayResult:
    """Fold the events of files as the service would have, with every feed historical.

    The record time of a line is the largest moment stated up to it; at the end time passes to the last moment that
    the files know of, so that everything closes.

    Parameters
    ----------
    files : sequence of lines
        Each in its own order; several are merged by time.
    options : ReplayOptions, optional
        How.
    write : callable, optional
        Gets every output and every feed-log record, in order.
    progress : callable, optional
        Told how many events of how many are folded.

    Raises
    ------
    SettingsError
        Names every fault of the settings.
    """
    chosen = options or ReplayOptions()
    book = load_document(historical(chosen.document), origin="--set", in_replay=True)
    horizon = max(settings.horizon for settings in (book.default, *book.feeds.values()))
    events = merged(files, horizon)
    ended = last_moment(events, horizon)
    events = _prepared(events, chosen)
    run = _Run(chosen, book, write)
    for number, (time, event) in enumerate(timed(events, horizon)):
        run.fold(event, time)
        if progress is not None and number % 500 == 0:
            progress(number, len(events))
    if ended:
        run.close(ended + max(settings.grace for settings in (book.default, *book.feeds.values())))
    if progress is not None:
        progress(len(events), len(events))
    return ReplayResult(run.history, run.counts, run.refused, len(events), ended, book)


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


def with_settings(document: Mapping[str, Any], assignments: Sequence[str]) -> dict[str, Any]:
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
            raise SettingsError([SettingFault(assignment, "--set", "write it as name=value")])
        names = path.split(".")
        place = changed
        for name in names[:-1] if names[0] in ("defaults", "feeds") else ["defaults", *names[:-1]]:
            place = place.setdefault(name, {})
            if not isinstance(place, dict):
                raise SettingsError(
                    [SettingFault(assignment, "--set", f"{name} was set to {place!r}: it has no parts")]
                )
        place[names[-1]] = _value(assignment, text)
    return changed


def _value(assignment: str, text: str) -> Any:
    try:
        return read_yaml(text)
    except yaml.YAMLError as error:
        raise SettingsError([SettingFault(assignment, "--set", f"{text!r} is no YAML")]) from error


def _prepared(events: list[FileEvent], options: ReplayOptions) -> list[FileEvent]:
    if options.feed_as is not None:
        events = in_feed(events, options.feed_as)
    if options.reveal is not None:
        events = reveal(events, options.reveal)
    if options.shuffle is not None:
        events = shuffle(events, options.shuffle)
    return events


class _Run:
    """The stages of all partitions, and the logs between them."""

    def __init__(self, options: ReplayOptions, book: FeedSettingsBook, write: Write | None) -> None:
        self.history = History()
        self.counts: Counter[tuple[str, str]] = Counter()
        self.refused: list[RefusedLine] = []
        self._place = ""
        self._write = write
        self._questions = [
            QuestionStage(
                topic=topics.FORECAST_EVENTS,
                partition=partition,
                partitions=options.partitions,
                feed_log_partitions=options.feed_log_partitions,
                settings=book,
            )
            for partition in range(options.partitions)
        ]
        self._feeds = [
            FeedStage(topic=topics.FEED_LOG, partition=partition, secret=options.secret, settings=book)
            for partition in range(options.feed_log_partitions)
        ]
        self._offsets = [count() for _ in self._questions]
        self._log_offsets = [count() for _ in self._feeds]
        self._log_times = [0 for _ in self._feeds]

    def fold(self, event: FileEvent, time: Milliseconds) -> None:
        """Fold one event of a file, and whatever it causes."""
        self._place = event.place
        key = None if event.question_id is None else event.question_id.encode()
        partition = partition_of(key, len(self._questions)) if key else 0
        if event.kind == "settings":
            self._refuse_settings(event, partition, time)
        else:
            self._step(partition, LogRecord(0, time, key, event.payload))

    def close(self, now: Milliseconds) -> None:
        """Let time pass in every partition, and publish what is unpublished."""
        self._place = "the end"
        tick = msgspec.json.encode({"type": "tick", "now": to_iso(now)})
        for partition in range(len(self._questions)):
            self._step(partition, LogRecord(0, now, b"tick", tick))
        for stage in self._feeds:
            effects = Effects()
            stage.publish(effects)
            self._take(effects)

    def _step(self, partition: int, record: LogRecord) -> None:
        """Fold a record at the end of a partition of the forecast events."""
        effects = Effects()
        self._questions[partition].step(record._replace(offset=next(self._offsets[partition])), effects)
        self._take(effects)

    def _take(self, effects: Effects) -> None:
        if effects.counts:
            self.counts.update(effects.counts)
        for output in effects.outputs:
            if self._write is not None:
                self._write(output)
            if output.topic == topics.FEED_LOG:
                self._append(output)
            elif output.topic == topics.FORECAST_EVENTS:
                forwarded = LogRecord(0, output.timestamp, output.key, output.value, output.headers)
                self._step(output.partition or 0, forwarded)
            elif output.topic == topics.DEAD_LETTERS:
                self._refuse(output)
            else:
                self.history.add(output.topic, output.value, output.headers)

    def _append(self, output: Output) -> None:
        """A record of the feed-log, folded at once. Weights are published when the log's time moves on."""
        partition = output.partition or 0
        stage = self._feeds[partition]
        effects = Effects()
        if output.timestamp > self._log_times[partition]:
            self._log_times[partition] = output.timestamp
            stage.publish(effects, list(stage.changed_feeds()))
        offset = next(self._log_offsets[partition])
        stage.step(LogRecord(offset, output.timestamp, output.key, output.value), effects)
        self._take(effects)

    def _refuse_settings(self, event: FileEvent, partition: int, time: Milliseconds) -> None:
        effects = Effects()
        msg = "settings of a file are not followed: give them to the replay"
        rejection = RejectedEvent(Reason.NOT_SUPPORTED, field="type", message=msg)
        record = LogRecord(next(self._offsets[partition]), time, None, event.payload)
        refuse(record, topics.FORECAST_EVENTS, partition, rejection, effects)
        self._take(effects)

    def _refuse(self, output: Output) -> None:
        self.history.add(output.topic, output.value, output.headers)
        if len(self.refused) < LETTERS_KEPT:
            refusal = refusal_of(output.headers)
            self.refused.append(RefusedLine(self._place, refusal.reason, refusal.message))
