"""What a stage is: the fold of one log partition, driven by the worker, replay and tests alike."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

from stream_peer.events.times import Milliseconds

Headers = Sequence[tuple[str, bytes]]


_HEADER_BYTES = 6


def headers_size(headers: Headers) -> int:
    """The largest size of headers in bytes: names, values, and the lengths of both."""
    return sum(_HEADER_BYTES + len(name.encode()) + len(value or b"") for name, value in headers)


class Record(Protocol):
    """One record of the input log, as every Kafka client hands it out. ``timestamp`` is milliseconds since 1970."""

    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> Milliseconds: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Headers: ...


class LogRecord(NamedTuple):
    """A record that replay or a test makes."""

    offset: int
    timestamp: Milliseconds
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class Output(NamedTuple):
    """A record to write. ``topic`` is the logical name; without ``partition`` murmur2 of the key decides."""

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: Milliseconds
    partition: int | None = None
    headers: Headers = ()


class Warned(NamedTuple):
    """A warning for the log: a code, feed, question, and a sentence."""

    code: str
    feed: str
    question_id: str
    message: str


UNUSED = ("late", "repeated", "overtaken", "too-late", "history-trimmed")
"""Kinds of forecasts that are accepted, but not used, or used from a later time than stated."""


class Effects:
    """What a run of records caused, in order: records to write, counts for the metrics, warnings for the log.

    ``counts`` is keyed by (kind, detail): ("event", "forecast"), ("dead-letter", "not-json"), ("late", ""), …;
    ``of_feeds`` by (feed, kind): rounds that are ``scored`` or ``low-evidence``, outcomes that are ``revealed``,
    ``revised`` or ``annulled``; the ``scored_kind`` of a resolved question; forecasts as in
    ``UNUSED``, and those that are ``dated-anew``.
    ``unknown_fields`` by (feed, field): fields of events that their type does not have, named ``forecast.preliminary``.
    ``new_experts``: (feed, expert, when) of experts that the feed had not met before; ``busy_experts`` by (feed,
    expert): forecasts of an expert that had too many of one question already, so that older ones were dropped.
    ``look_alikes``: (feed, expert, earlier) of new experts whose ids look like the one of an earlier expert.
    """

    __slots__ = (
        "busy_experts",
        "counts",
        "look_alikes",
        "new_experts",
        "of_feeds",
        "outputs",
        "unknown_fields",
        "warnings",
    )

    def __init__(self) -> None:
        self.outputs: list[Output] = []
        self.counts: Counter[tuple[str, str]] = Counter()
        self.of_feeds: Counter[tuple[str, str]] = Counter()
        self.warnings: list[Warned] = []
        self.unknown_fields: Counter[tuple[str, str]] = Counter()
        self.new_experts: list[tuple[str, str, Milliseconds]] = []
        self.busy_experts: Counter[tuple[str, str]] = Counter()
        self.look_alikes: list[tuple[str, str, str]] = []

    def note_unknown(self, feed: str, event: str, names: Iterable[str]) -> None:
        """Count fields of an event of a feed that its type does not have."""
        self.unknown_fields.update((feed, f"{event}.{name}") for name in names)

    def note(self, feed: str, kind: str, number: int) -> None:
        """Count what became of forecasts of a feed."""
        if number:
            self.counts[kind, ""] += number
            self.of_feeds[feed, kind] += number


class Snapshot(NamedTuple):
    """What changed since the last snapshot. Keys carry no partition prefix; value None: the record is gone."""

    entries: Mapping[bytes, bytes | None]
    head: bytes


class Stage(Protocol):
    """One partition's fold. A function of its log: the same records give the same outputs and the same state."""

    def step(self, record: Record, effects: Effects) -> object:
        """Fold one record. An exception ends the process: the state may be half changed."""

    def begin_topic(self, generation: int, base: int, *, keep: bool) -> None:
        """The log is a topic that was recreated, or the first one: offsets begin at 0. Called before any step.

        Parameters
        ----------
        generation : int
            Tells the topic from former ones, in sources.
        base : int
            What revisions are ahead of the new offsets; above every revision so far.
        keep : bool
            Whether the state goes on. Otherwise it is dropped, but for what does not come from this log alone: the
            settings in force, and which experts were erased.
        """


@runtime_checkable
class FoldsRuns(Protocol):
    """A stage that folds many records faster than one by one, to the same outputs and the same state."""

    def steps(self, records: Sequence[Record], effects: Effects) -> int:
        """Fold the first of some records, at least one; return how many. It ends after one that takes long."""


@runtime_checkable
class Stateful(Stage, Protocol):
    """A stage with a state that outlives its owner."""

    def snapshot(self) -> Snapshot:
        """State changed since the last call. The caller makes it durable: entries first, then the head."""

    def load(self, head: bytes | None, entries: Mapping[bytes, bytes]) -> None:
        """Load the state of an earlier owner, before the first step."""


@runtime_checkable
class Timed(Protocol):
    """A stage with deadlines."""

    @property
    def clock(self) -> Milliseconds:
        """The partition's time: the largest credible time stated in its records; 0 before the first."""

    def deadline(self) -> Milliseconds | None:
        """The next deadline; None: there is none."""


@runtime_checkable
class Marked(Protocol):
    """A stage whose state can be from before signatures."""

    @property
    def needs_marker(self) -> bool:
        """Whether, after ``load``, nothing may be stepped unless a marker follows in the log."""

    def is_marker(self, record: Record) -> bool:
        """Whether a record is one from which on the state can be trusted."""


F = TypeVar("F", bound="Rebuildable[Any]")


class Blank(NamedTuple, Generic[F]):
    """An empty fold for a rebuild, and the keys of the records that it folds (None: all). Others move its clock."""

    fold: F
    keys: Set[bytes] | None


@runtime_checkable
class Rebuildable(Protocol[F]):
    """A fold that cannot always be corrected in place: then its log is folded from the start, and replaces it."""

    def step(self, record: Record, effects: Effects) -> object:
        """Fold one record. Nothing may be stepped while it needs a rebuild, unless it says so."""

    def pass_time(self, record: Record) -> None:
        """Move the clock by a record, and fold nothing of it."""

    @property
    def needs_rebuild(self) -> bool:
        """Whether, after a step, an audit or ``load``, the log must be folded from its start."""

    def blank(self) -> Blank[F]:
        """An empty fold, which knows what is fixed during the rebuild."""

    def adopt(self, rebuilt: F) -> Iterator[Output]:
        """Replace the state; return corrections to be written before the next step: many, made one by one."""


@runtime_checkable
class PublishingStage(Rebuildable[F], Protocol[F]):
    """A rebuildable stage with outputs per feed, which are published at the driver's moments."""

    @property
    def may_step(self) -> bool:
        """Whether a record may be stepped: not where one called for a rebuild, before `blank` was called.

        From then on records of other feeds are folded, those of the feeds under rebuild wait, and with a record that
        concerns all of them it is false again. After the rebuild it is true once nothing waits.
        """

    def begin(self, record: Record, effects: Effects) -> None:
        """Fold one record as ``step`` does; if that takes long, a first piece of it: then ``may_step`` is false."""

    def go_on(self) -> bool:
        """Do one more piece of the record that was begun; False: it is folded. Until then nothing else may be asked."""

    def step_postponed(self, effects: Effects) -> bool:
        """Begin with the first record that waited for the end of a rebuild; False: none may be. Not during one."""

    def publish(self, effects: Effects, feeds: Iterable[str] | None = None) -> None:
        """Add the newest per-feed outputs of ``feeds`` if worth a message, or of every changed feed (None)."""

    def changed_feeds(self) -> Mapping[str, Milliseconds]:
        """Feeds changed since they were last published that need no rebuild, each with its ``publish_every``."""

    def hand_overs_due(self) -> list[Output]:
        """Records for its own log that may be written once the durable state covers what was folded so far."""

    def handed_over(self) -> None:
        """They are in the log."""

    def recount(self) -> Iterator[None]:
        """Compute the sums of what was loaded, a bounded piece an item. Nothing may be stepped before its end."""

    def audit(self) -> Iterator[None]:
        """Compare the state with what it is computed from, a bounded piece an item; steps may come in between.

        If something does not agree, ``needs_rebuild`` is true afterwards.
        """

    def lost(self, records: int) -> None:
        """``records`` of the log were deleted before they were read: later outputs say so."""

    def generations(self) -> Mapping[int, int]:
        """The topic generation of each partition of ``control-events`` whose records were folded."""

    @property
    def revision(self) -> int:
        """The highest published revision; -1: none."""

    def rebase(self, base: int) -> None:
        """Add ``base`` to offsets to get revisions, where no import says otherwise."""

    def rebuild_all(self) -> None:
        """The state was lost, and the log is complete: require a rebuild."""
