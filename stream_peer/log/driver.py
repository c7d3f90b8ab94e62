"""The one loop around a fold: step a stage, rebuild it when it needs that, publish.

Pure: it reads no log, writes nothing and knows no clock. `fold` and `rebuild` yield `NeedsLog`, and their pump answers
with records of the log, as many at a time as it likes, then with none: that was all up to ``up_to``. A pump that stops
earlier leaves the stage as it was before the rebuild. Pumps: ``kafka/worker/rebuilds.py``, ``tools/replay/run.py``,
``tools/replay/feed_log_reader.py``, and of explanations ``tools/explain/weight_story``.

When feeds are published differs, and so does which revisions exist; their bytes do not:

- the worker publishes a feed at most once in its ``publish_every``, before each snapshot, and after rebuilds;
- a replay of files publishes when the time of the log moves on, after each rebuild, and at the end;
- a replay of the log publishes after every record, since any revision may be one that a worker has published;
- an explanation publishes nothing.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence, Set
from itertools import islice
from typing import Any, NamedTuple, TypeAlias, TypeVar

from stream_peer.errors import StateError
from stream_peer.log.stage import Effects, Output, Published, Rebuildable, Record, Stage

_AT_ONCE = 500

F = TypeVar("F", bound=Rebuildable[Any])
T = TypeVar("T")


class NeedsLog(NamedTuple):
    """A rebuild needs the records of the log from its start to ``up_to``."""

    up_to: int


Steps: TypeAlias = Generator[NeedsLog, Sequence[Record] | None, None]
Rebuild: TypeAlias = Generator[NeedsLog, Sequence[Record] | None, Iterator[Output]]


def fold(stage: Rebuildable[F], record: Record, keys: Set[bytes] | None = None) -> Steps:
    """Fold one record, and carry out the rebuilds that it calls for; what comes of it is dropped.

    ``keys``: of the records that are folded; others move the clock. None: all are.
    """
    step(stage, record, Effects(), keys)
    while stage.needs_rebuild:
        yield from rebuild(stage, record.offset)


def fold_and_publish(
    stage: Published[F], record: Record, effects: Effects, keys: Set[bytes] | None = None, *, always: bool = False
) -> Steps:
    """Fold one record, and after each rebuild that it calls for, or ``always``, publish changed feeds."""
    step(stage, record, effects, keys)
    while stage.needs_rebuild:
        effects.outputs += yield from rebuild(stage, record.offset)
        stage.publish(effects)
    if always:
        stage.publish(effects)


def fold_portion(stage: Stage, records: Sequence[Record], effects: Effects) -> int:
    """Fold records, and none after one that calls for a rebuild; return how many were folded."""
    if not isinstance(stage, Rebuildable):
        for record in records:
            stage.step(record, effects)
        return len(records)
    for number, record in enumerate(records, 1):
        stage.step(record, effects)
        if stage.needs_rebuild:
            return number
    return len(records)


def needs_rebuild(stage: Stage) -> bool:
    """Whether a stage is one that can be rebuilt, and nothing may be stepped before it is."""
    return isinstance(stage, Rebuildable) and stage.needs_rebuild


def step(stage: Rebuildable[F], record: Record, effects: Effects, keys: Set[bytes] | None) -> None:
    """Fold a record whose key is one of ``keys``; others move the clock."""
    if keys is None or record.key in keys:
        stage.step(record, effects)
    else:
        stage.pass_time(record)


def rebuild(stage: Rebuildable[F], applied: int) -> Rebuild:
    """Fold the log up to ``applied`` into an empty fold, let ``stage`` adopt it; return the corrections to write."""
    blank, keys = stage.blank()
    while records := (yield NeedsLog(applied)):
        effects = Effects()  # of records that were folded before: what they caused is written already
        for record in records:
            if record.offset <= applied:
                step(blank, record, effects, keys)
    return stage.adopt(blank)


def answer(steps: Steps, records: Sequence[Record] | None = None) -> NeedsLog | None:
    """Answer with records, none to end a rebuild; return what is needed next, None at the end."""
    try:
        return steps.send(records)
    except StopIteration:
        return None


def end(steps: Generator[NeedsLog, Sequence[Record] | None, T]) -> T:
    """End the last rebuild: the log up to ``up_to`` was folded. Return what it gives."""
    try:
        steps.send(())
    except StopIteration as stop:
        result: T = stop.value
        return result
    msg = "another rebuild is due"
    raise StateError(msg)


def pump(steps: Generator[NeedsLog, Sequence[Record] | None, T], log: Callable[[int], Iterable[Record]]) -> T:
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
