"""The one loop around a fold: step a stage, rebuild it when it asks for that, publish.

Pure: it reads no log, writes nothing and knows no clock. `fold` and `rebuild` yield `NeedsLog`, and their pump answers
with records of the log, as many at a time as it likes, then with none: that was all up to ``up_to``. A pump that stops
earlier leaves the stage as it was before the rebuild. Pumps: ``kafka/worker/refolds.py``, ``tools/replay/run.py``,
``tools/replay/feed_log_reader.py``, and of explanations ``tools/explain/weight_story``.

When feeds are published differs, and so does which revisions exist; their bytes do not:

- the worker publishes a feed at most once in its ``publish_every``, before each snapshot, and after rebuilds;
- a replay of files publishes when the time of the log moves on, after each rebuild, and at the end;
- a replay of the log publishes after every record, since any revision may be one that a worker has published;
- an explanation publishes nothing.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from enum import Enum
from itertools import islice
from typing import NamedTuple, TypeAlias

from stream_peer.log.stage import Effects, Record, Stage

_AT_ONCE = 500


class NeedsLog(NamedTuple):
    """A rebuild needs the records of the log from its start to ``up_to``."""

    up_to: int


Steps: TypeAlias = Generator[NeedsLog, Sequence[Record] | None, None]


class Publish(Enum):
    """After what `fold` publishes changed feeds."""

    NOTHING = 0
    REBUILDS = 1
    RECORDS = 2


def fold(stage: Stage, record: Record, effects: Effects, publish: Publish = Publish.NOTHING) -> Steps:
    """Fold one record, and carry out the rebuilds that it calls for."""
    fold_portion(stage, (record,), effects)
    while stage.must_refold:
        yield from rebuild(stage, record.offset)
        if publish is not Publish.NOTHING:
            stage.publish(effects)
    if publish is Publish.RECORDS:
        stage.publish(effects)


def fold_portion(stage: Stage, records: Sequence[Record], effects: Effects) -> int:
    """Fold records, and none after one that calls for a rebuild; return how many were folded."""
    for number, record in enumerate(records, 1):
        stage.step(record, effects)
        if stage.must_refold:
            return number
    return len(records)


def rebuild(stage: Stage, applied: int) -> Steps:
    """Fold the log up to ``applied`` into an empty stage, and let ``stage`` adopt the result."""
    refolding = stage.refolding(applied)
    need = NeedsLog(refolding.up_to)
    while records := (yield need):
        for record in records:
            if record.offset <= need.up_to:
                refolding.step(record)
    refolding.finish()


def answer(steps: Steps, records: Sequence[Record] | None = None) -> NeedsLog | None:
    """Answer with records, none to end a rebuild; return what is needed next, None at the end."""
    try:
        return steps.send(records)
    except StopIteration:
        return None


def pump(steps: Steps, log: Callable[[int], Iterable[Record]]) -> None:
    """Answer from a log that can be read at once; ``log`` has its records up to an offset."""
    need = answer(steps)
    while need is not None:
        records = iter(log(need.up_to))
        while some := list(islice(records, _AT_ONCE)):
            steps.send(some)
        need = answer(steps, ())
