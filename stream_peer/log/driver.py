"""The one loop around a fold: step a stage, rebuild it when it needs that, publish, make its state durable.

Pure: it reads no log and writes nothing; a pump does what it yields. `NeedsLog` is answered with records of the log, as
many at a time as the pump likes, then with none: that was all up to ``up_to``. A pump that stops earlier leaves the
stage as it was before the rebuild. `Write` and `Checkpoint` are carried out and acknowledged before the pump goes on.

`Driver` is for an owner of a partition, whose state outlives it: ``kafka/worker/partition.py``. Without durable state
`fold`, `fold_and_publish` and `publish_before` are enough: ``tools/replay/run.py``,
``tools/replay/feed_log_reader.py``, and of explanations ``tools/explain/weight.py``.

When feeds are published differs, and so does which revisions exist; their bytes do not:

- the worker publishes a feed at most once in its ``publish_every``, before each snapshot, and after rebuilds;
- a replay of files publishes before each record of a later time (`publish_before`), after rebuilds, and at the end;
- a replay of the log publishes after every record, since any revision may be one that a worker has published;
- an explanation publishes nothing.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence, Set
from itertools import islice
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from stream_peer.events.times import Milliseconds
from stream_peer.log.stage import (
    Effects,
    FoldsRuns,
    Output,
    PublishingStage,
    Rebuildable,
    Record,
    Snapshot,
    Stage,
    Stateful,
)

_AT_ONCE = 500
_STRIDE = 64  # records between looks at the clock
_LONG_STRIDE = 512  # the same of a stage that ends a run itself after what takes long
_MOST_OUTPUTS = 20_000  # of records that are folded before outputs are written
_NOTHING = -2  # less than any offset that can count as covered

F = TypeVar("F", bound=Rebuildable[Any])
T = TypeVar("T")


class NeedsLog(NamedTuple):
    """A rebuild needs the records of the log from its start to ``up_to``."""

    up_to: int


class Write(NamedTuple):
    """Outputs to write. They may be many, so they are made one by one."""

    outputs: Iterator[Output]


class Checkpoint(NamedTuple):
    """State to make durable; it covers the log up to ``applied``. ``is_whole``: all of it is new."""

    take: Callable[[], Snapshot]
    applied: int
    is_whole: bool


Pumped: TypeAlias = Generator[NeedsLog, Sequence[Record] | None, T]
Steps: TypeAlias = Pumped[None]
Rebuild: TypeAlias = Pumped[Iterator[Output]]


def fold(stage: Rebuildable[F], record: Record, keys: Set[bytes] | None = None) -> Steps:
    """Fold one record, and carry out the rebuilds that it calls for; what comes of it is dropped.

    ``keys``: of the records that are folded; others move the clock. None: all are.
    """
    step(stage, record, Effects(), keys)
    while stage.needs_rebuild:
        yield from rebuild(stage, record.offset)


def fold_and_publish(
    stage: PublishingStage[F], record: Record, effects: Effects, keys: Set[bytes] | None = None, *, always: bool = False
) -> Steps:
    """Fold one record, and after each rebuild that it calls for, or ``always``, publish changed feeds.

    Hand-overs come last: no state has to be durable before them.
    """
    step(stage, record, effects, keys)
    while stage.needs_rebuild:
        effects.outputs += yield from rebuild(stage, record.offset)
        stage.publish(effects)
    if always:
        stage.publish(effects)
    effects.outputs += stage.hand_overs_due()
    stage.handed_over()


def publish_before(stage: PublishingStage[F], record: Record, latest: Milliseconds, effects: Effects) -> Milliseconds:
    """Publish feeds that have news if ``record``, which is folded next, is later than ``latest``: the later of both."""
    if record.timestamp > latest:
        stage.publish(effects, list(stage.changed_feeds()))
    return max(latest, record.timestamp)


def step(stage: Rebuildable[F], record: Record, effects: Effects, keys: Set[bytes] | None) -> None:
    """Fold a record whose key is one of ``keys``; others move the clock."""
    if keys is None or record.key in keys:
        stage.step(record, effects)
    else:
        stage.pass_time(record)


def rebuild(stage: Rebuildable[F], applied: int) -> Rebuild:
    """Fold the log up to ``applied`` into an empty fold, let ``stage`` adopt it; return the corrections to write."""
    blank, keys = stage.blank()
    done = _NOTHING
    while done < applied:
        done = yield from _fold_on(blank, keys, done, applied)
    return stage.adopt(blank)


def _fold_on(blank: Rebuildable[F], keys: Set[bytes] | None, done: int, applied: int) -> Generator[NeedsLog, Any, int]:
    """Fold what comes after ``done``; return up to where.

    If all feeds are folded, a record that calls for a rebuild ends the pass, and the rebuild follows: the first fold of
    the log was rebuilt there as well, and later records depend on it.
    """
    reached = applied
    while records := (yield NeedsLog(applied)):
        effects = Effects()  # of records that were folded before: what they caused is written already
        for record in records:
            if done < record.offset <= reached:
                step(blank, record, effects, keys)
                if keys is None and blank.needs_rebuild:
                    reached = record.offset
    while keys is None and blank.needs_rebuild:
        yield from rebuild(blank, reached)
    return reached


def answer(
    steps: Generator[NeedsLog, Sequence[Record] | None, Any], records: Sequence[Record] | None = None
) -> NeedsLog | None:
    """Send records, or none to end a rebuild; return what is needed next, None at the end."""
    try:
        return steps.send(records)
    except StopIteration:
        return None


def pump(steps: Pumped[T], log: Callable[[int], Iterable[Record]]) -> T:
    """Answer from a log that can be read at once, its records up to an offset; return what the steps give."""
    try:
        need = next(steps)
        while True:
            records = iter(log(need.up_to))
            while some := list(islice(records, _AT_ONCE)):
                steps.send(some)
            need = steps.send(())
    except StopIteration as stop:
        result: T = stop.value
        return result


class Every(Protocol):
    """How much is folded at most before the state is made durable."""

    @property
    def records(self) -> int:
        """How many."""

    @property
    def bytes(self) -> int:
        """Of their values."""

    @property
    def seconds(self) -> float:
        """Since the first of them."""


class Driver:
    """The loop around a stage whose state outlives its owner.

    Parameters
    ----------
    stage : Stage
        Loaded already.
    applied : int
        The last offset that its state covers.
    every : Every
    clock : callable
        Seconds; for publishing at most once in ``publish_every``, and for ``every``.
    must_checkpoint : bool
        Ask for a checkpoint before anything is folded.

    Attributes
    ----------
    applied : int
        The last offset that was folded, or is gone.
    covered : int
        The last offset that the durable state covers.
    records : int
        Folded since the last checkpoint.
    publishing : PublishingStage or None
        The stage, if it has feeds.
    """

    def __init__(
        self, stage: Stage, applied: int, every: Every, clock: Callable[[], float], *, must_checkpoint: bool = False
    ) -> None:
        self.stage = stage
        self.publishing: PublishingStage[Any] | None = stage if isinstance(stage, PublishingStage) else None
        self._runs = stage if isinstance(stage, FoldsRuns) else None
        self.applied = applied
        self.covered = _NOTHING if must_checkpoint else applied
        self.records = self._bytes = 0
        self._every = every
        self._clock = clock
        self._since = clock()
        self._published_at: dict[str, float] = {}
        self._is_fresh = True
        self._is_rebuilt = must_checkpoint

    @property
    def needs_rebuild(self) -> bool:
        """Whether nothing may be made durable before a rebuild."""
        return self.publishing is not None and self.publishing.needs_rebuild

    @property
    def may_step(self) -> bool:
        """Whether a record may be folded; while a feed is rebuilt, those of others may."""
        return self.publishing is None or self.publishing.may_step

    def take(self, records: Sequence[Record], effects: Effects, until: float) -> int:
        """Fold records until a moment, and none after one that calls for a rebuild or takes long; return how many.

        The last is folded once `go_on` says so, with the same ``effects``.
        """
        start = 0
        while start < len(records):
            if self._clock() > until or len(effects.outputs) > _MOST_OUTPUTS:
                return start
            stride = records[start : start + (_STRIDE if self._runs is None else _LONG_STRIDE)]
            done = self._fold(stride, effects)
            self._bytes += sum([len(record.value or b"") for record in stride[:done]])
            self.applied = stride[done - 1].offset
            start += done
            if not self.may_step:
                return start
        return start

    def catch_up(self, effects: Effects, until: float) -> None:
        """After a rebuild: fold what waited for its end, until a moment; as to the last of it, see `go_on`.

        `may_step` says whether that was all.
        """
        if (stage := self.publishing) is not None and not stage.needs_rebuild:
            while self._clock() <= until and len(effects.outputs) <= _MOST_OUTPUTS and stage.step_postponed(effects):
                pass

    def go_on(self) -> bool:
        """Do one more piece of the record that was folded last; False: all of it is done.

        Until then nothing may be published, written or rebuilt: half of its feed has changed.
        """
        return self.publishing is not None and self.publishing.go_on()

    def _fold(self, records: Sequence[Record], effects: Effects) -> int:
        if self._runs is not None:
            return self._runs.steps(records, effects)
        for number, record in enumerate(records, 1):
            if self.publishing is None:
                self.stage.step(record, effects)
                continue
            self.publishing.begin(record, effects)
            if not self.publishing.may_step:
                return number
        return len(records)

    def publish_due(self, effects: Effects) -> None:
        """Publish changed feeds that were not published within their ``publish_every``."""
        if self.publishing is None or not (changed := self.publishing.changed_feeds()):
            return
        at = self._clock()
        due = [feed for feed, every in changed.items() if at - self._published_at.get(feed, 0.0) >= every / 1000]
        if due:
            self.publishing.publish(effects, due)
            self._published_at.update(dict.fromkeys(due, at))

    def written(self, records: int) -> None:
        """Note that the broker acknowledged the outputs of so many records."""
        if not self.records:
            self._since = self._clock()
        self.records += records

    def pass_over(self, end: int) -> None:
        """No record is left before ``end``: the next checkpoint covers it."""
        if end > self.applied + 1:
            self.applied = end - 1
            self.written(1)

    def rebuild(self) -> Generator[NeedsLog | Write, Sequence[Record] | None, None]:
        """Rebuild until the state agrees with its log; write the corrections, and publish every changed feed.

        Until a `NeedsLog` was answered with no records, `take` goes on with other feeds. What waited is caught up then.
        """
        stage, up_to = self.publishing, self.applied
        while stage is not None and stage.needs_rebuild:
            corrections = yield from rebuild(stage, up_to)
            yield Write(corrections)
        self._is_rebuilt = True
        yield from self._publish()

    def checkpoint_due(self, *, now: bool, rewrite: bool) -> bool:
        """Whether state is to be made durable; in the middle of a batch too, else a restart would begin that again.

        Never under the offset that the durable state covers already, if the state was rebuilt: part of it would be
        taken for the whole. It waits for the next record.

        Parameters
        ----------
        now : bool
            Whatever was folded is to be made durable at once.
        rewrite : bool
            The durable state needs to be written again, though nothing was folded.
        """
        if self._is_rebuilt:
            return self.applied > self.covered
        if self.publishing is not None and self.publishing.hand_overs_due():
            return True
        if not self.records:
            return rewrite
        enough = self.records >= self._every.records or self._bytes >= self._every.bytes
        return enough or self._is_fresh or now or self.seconds_left <= 0

    @property
    def seconds_left(self) -> float:
        """Seconds until the next checkpoint is due, if anything was folded."""
        return self._since + self._every.seconds - self._clock()

    def checkpoint(self) -> Generator[Write | Checkpoint, None, None]:
        """Write outputs, then state, then hand-overs. The caller acknowledges the input only after that (D8)."""
        yield from self._publish()
        if isinstance(self.stage, Stateful):
            applied = self.applied
            yield Checkpoint(self.stage.snapshot, applied, self._is_rebuilt)
            self.covered = applied
        if self.publishing is not None and (hand_overs := self.publishing.hand_overs_due()):
            yield Write(iter(hand_overs))
            self.publishing.handed_over()
        self._since, self.records, self._bytes = self._clock(), 0, 0
        self._is_fresh = self._is_rebuilt = False

    def _publish(self) -> Iterator[Write]:
        if self.publishing is not None:
            effects = Effects()
            self.publishing.publish(effects)
            yield Write(iter(effects.outputs))
