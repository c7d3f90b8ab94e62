"""Ways to break the mechanism: each is a promise less, switched on while a deployment runs, and must be found."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from unittest import mock

from stream_peer.feeds.fold import FeedFold
from stream_peer.kafka.worker.inbox import Inbox
from stream_peer.kafka.worker.lease import NO_TERM, Lease, Right
from stream_peer.kafka.worker.ownership import Ownership
from stream_peer.kafka.worker.port import Delivery, StartPlace, Unread
from stream_peer.kafka.worker.state_writer import SnapshotSize, StateWriter
from stream_peer.log.changelog import ChangelogReader, Writer
from stream_peer.log.sources import DedupWatermarks
from tests.simulation import deployment
from tests.simulation.worker import Consumer, Sender

_write, _entry_rows, _recovered = StateWriter.write, Writer.entry_rows, Ownership.recovered
_whole_blank, _whole_write, _requests = FeedFold.blank, Sender._write, Sender._requests
_right, _answered = Lease.right, Lease.answered


def _add_head(self, record):  # type: ignore[no-untyped-def]
    self.accept_head(max(record.applied, self.applied), record.value, record.origin)


def _add_state(self, kind, record):  # type: ignore[no-untyped-def]
    self.accept_state(kind, (record.as_of, record.value), record.prev)


async def _head_first(self, partition, snapshot, applied, context, tell):  # type: ignore[no-untyped-def]
    rows = list(self.rows.entry_rows(snapshot, applied))
    await self._append(partition, [self.rows.head_row(snapshot, applied)], context)
    await asyncio.sleep(0.01)
    await self._append(partition, rows, context)
    self.rows.committed(snapshot, applied)
    return SnapshotSize(len(rows) + 1, 0)


def _one_version(self, snapshot, applied):  # type: ignore[no-untyped-def]
    with mock.patch.object(ChangelogReader, "version", return_value=None):
        yield from list(_entry_rows(self, snapshot, applied))


def _whatever_comes(self: Inbox, delivery: Delivery):  # type: ignore[no-untyped-def]
    return [record for record in delivery.records if record.offset >= self.want] or None


async def _from_the_commit(self: Ownership, source):  # type: ignore[no-untyped-def]
    places = await _recovered(self, source)
    bounds = await source.bounds(list(places))
    return {tp: StartPlace(max(place.want, bounds[tp].committed or 0), None) for tp, place in places.items()}


async def _not_acknowledged(self: Sender, tp, rows, tenure):  # type: ignore[no-untyped-def]
    if tp.topic in deployment.CHANGELOGS.values():
        return await _whole_write(self, tp, rows, tenure)
    asyncio.ensure_future(_whole_write(self, tp, rows, tenure))  # noqa: RUF006 - nobody waits: that is the mutation
    return []


async def _leased_when_handed_over(self: Sender, tp, records, tenure):  # type: ignore[no-untyped-def]
    await self._allowed(tp, tenure)
    return await _requests(self, tp, records, None)


def _right_of_the_present(self: Lease, term: int) -> Right:
    return _right(self, self.term if term != NO_TERM else term)


def _renewed_by_the_answer(self: Lease, sent: float, term: int, *, rebalances: bool = False) -> None:
    _answered(self, self._clock(), term, rebalances=rebalances)


def _blank(self):  # type: ignore[no-untyped-def]
    return _whole_blank(self)._replace(keys=frozenset())


MUTANTS: Mapping[str, Callable[[], object]] = {
    "tokens are ignored": lambda: mock.patch.multiple(ChangelogReader, _add_head=_add_head, _add_state=_add_state),
    "the head is written before the entries": lambda: mock.patch.object(StateWriter, "write", _head_first),
    "rows hold one version": lambda: mock.patch.object(Writer, "entry_rows", _one_version),
    "the order of batches is not checked": lambda: mock.patch.object(Inbox, "_in_order", _whatever_comes),
    "offsets that are missing count as proven": lambda: mock.patch.object(Consumer, "admits", return_value=True),
    "repeated records are folded again": lambda: mock.patch.object(DedupWatermarks, "add", return_value=True),
    "recovery reads beyond its token": lambda: mock.patch.object(Ownership, "unread", return_value=Unread(0, None)),
    "partitions begin at the group's offset": lambda: mock.patch.object(Ownership, "recovered", _from_the_commit),
    "outputs are not awaited": lambda: mock.patch.object(Sender, "_write", _not_acknowledged),
    "a rebuild leaves its log out": lambda: mock.patch.object(FeedFold, "blank", _blank),
    "gaps in the changelog are not noticed": lambda: mock.patch.object(Writer, "appended"),
    "revoked partitions live on": lambda: mock.patch.object(Ownership, "lost"),
    "the lease is ignored": lambda: mock.patch.object(Lease, "right", return_value=Right.HOLDS),
    "the lease is looked at when records are handed over only": lambda: mock.patch.object(
        Sender, "_requests", _leased_when_handed_over
    ),
    "records of a former term are sent": lambda: mock.patch.object(Lease, "right", _right_of_the_present),
    "the lease begins with the answer": lambda: mock.patch.object(Lease, "answered", _renewed_by_the_answer),
}


@contextmanager
def mutated(name: str | None) -> Iterator[None]:
    """Break the mechanism in the way of this name; None: leave it whole."""
    if name is None:
        yield
    else:
        with MUTANTS[name]():  # type: ignore[attr-defined]  # every patch is a context manager
            yield
