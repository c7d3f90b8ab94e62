"""Ways to break the mechanism: each is a promise less, switched on while a deployment runs, and must be found."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from unittest import mock

from stream_peer.errors import LeaseEndedError
from stream_peer.feeds.deletions import Deletions, Life
from stream_peer.feeds.fold import FeedFold
from stream_peer.feeds.hand_overs import HandOvers
from stream_peer.feeds.postponed import Postponed
from stream_peer.feeds.stage import FeedStage
from stream_peer.kafka.worker.inbox import Inbox
from stream_peer.kafka.worker.lease import NO_TERM, Lease, Right
from stream_peer.kafka.worker.ownership import Ownership
from stream_peer.kafka.worker.partition import OwnedPartition
from stream_peer.kafka.worker.port import Delivery, StartPlace, Unread
from stream_peer.kafka.worker.producer import BatchProducer
from stream_peer.kafka.worker.state_writer import SnapshotSize, StateWriter
from stream_peer.log import driver
from stream_peer.log.changelog import ChangelogReader, Writer
from stream_peer.log.driver import Driver
from stream_peer.log.sources import DedupWatermarks
from stream_peer.log.stage import Effects, Record
from tests.simulation.plan import CHANGELOGS
from tests.simulation.watch import Watch
from tests.simulation.worker import Consumer, Sender

_add_tombstone = ChangelogReader._add_tombstone
_write, _entry_rows, _recovered = StateWriter.write, Writer.entry_rows, Ownership.recovered
_whole_blank, _whole_write, _requests = FeedFold.blank, Sender._write, Sender._requests
_right, _answered = Lease.right, Lease.answered
_checkpoint, _due, _handle = OwnedPartition._checkpoint, Driver.checkpoint_due, OwnedPartition._handle
_rebuild_begins, _step_postponed, _take = Postponed.begin, FeedStage.step_postponed, Driver.take


def _add_head(self, record):  # type: ignore[no-untyped-def]
    self.accept_head(max(record.applied, self.applied), record.value, record.origin)


def _not_believed(self, kind, *, is_ours):  # type: ignore[no-untyped-def]
    _add_tombstone(self, kind, is_ours=False)


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
    if tp.topic in CHANGELOGS.values():
        return await _whole_write(self, tp, rows, tenure)
    asyncio.ensure_future(_whole_write(self, tp, rows, tenure))  # noqa: RUF006 - nobody waits: that is the mutation
    return []


class _LeasedOnce(Lease):
    """One that was looked at when records were handed over, and is not looked at again."""

    def right(self, term: int) -> Right:
        return Right.HOLDS


async def _leased_when_handed_over(self: Sender, tp, records, tenure):  # type: ignore[no-untyped-def]
    await self._allowed(tp, tenure)
    if tenure is not None:
        lease = _LeasedOnce(1.0, 1.0, lambda: 0.0)
        self.groups[lease] = self.groups[tenure.lease]
        tenure = tenure._replace(lease=lease)
    return await _requests(self, tp, records, tenure)


def _not_noticed(self: Writer, keys: object, end: int) -> None:
    self._expected = end


def _right_of_the_present(self: Lease, term: int) -> Right:
    return _right(self, self.term if term != NO_TERM else term)


def _renewed_by_the_answer(self: Lease, sent: float, term: int, *, rebalances: bool = False) -> None:
    _answered(self, self._clock(), term, rebalances=rebalances)


async def _acknowledged_first(self: OwnedPartition) -> None:
    for delivery in self._open:
        delivery.ack()
    self._open.clear()
    await _checkpoint(self)


def _published_early(self: Driver, effects: Effects) -> None:
    if isinstance(self.stage, FeedStage) and (changed := self.stage.feeds.publisher.unpublished()):
        self.stage.publish(effects, changed)


def _published_between_pieces(self: Driver, records: Sequence[Record], effects: Effects, until: float) -> int:
    done = _take(self, records, effects, until)
    _published_early(self, effects)
    return done


def _due_when_rebuilt(self: Driver, *, now: bool, rewrite: bool) -> bool:
    return bool(self._is_rebuilt) or _due(self, now=now, rewrite=rewrite)


def _none_waits(self: Postponed, feeds: Iterable[str]) -> None:
    _rebuild_begins(self, feeds)
    self.feeds = frozenset(("",))  # a rebuild is under way, and no record is of this feed


def _dropped(self: FeedStage, effects: Effects) -> bool:
    while self.postponed and self.postponed.waiting[0].event is not None:
        self.postponed.waiting.popleft()
    return _step_postponed(self, effects)


def _last_first(self: FeedStage, effects: Effects) -> bool:
    self.postponed.waiting.rotate()
    return _step_postponed(self, effects)


async def _written_meanwhile(self: OwnedPartition) -> None:
    await _handle(self)
    if self._driver.needs_rebuild and self._driver.records:
        await _checkpoint(self)


def _in_one_fold(blank, keys, done, applied):  # type: ignore[no-untyped-def]
    while records := (yield driver.NeedsLog(applied)):
        for record in records:
            driver.step(blank, record, Effects(), keys)
    return applied


def _blank(self):  # type: ignore[no-untyped-def]
    return _whole_blank(self)._replace(keys=frozenset())


MUTANTS: Mapping[str, Callable[[], object]] = {
    "tokens are ignored": lambda: mock.patch.multiple(ChangelogReader, _add_head=_add_head, _add_state=_add_state),
    "tombstones are not believed": lambda: mock.patch.object(ChangelogReader, "_add_tombstone", _not_believed),
    "the head is written before the entries": lambda: mock.patch.object(StateWriter, "write", _head_first),
    "rows hold one version": lambda: mock.patch.object(Writer, "entry_rows", _one_version),
    "the order of batches is not checked": lambda: mock.patch.object(Inbox, "_in_order", _whatever_comes),
    "offsets that are missing count as proven": lambda: mock.patch.object(Consumer, "admits", return_value=True),
    "repeated records are folded again": lambda: mock.patch.object(DedupWatermarks, "add", return_value=True),
    "recovery reads beyond its token": lambda: mock.patch.object(Ownership, "unread", return_value=Unread(0, None)),
    "outputs are not awaited": lambda: mock.patch.object(Sender, "_write", _not_acknowledged),
    "a rebuild leaves its log out": lambda: mock.patch.object(FeedFold, "blank", _blank),
    "input is acknowledged before its state is durable": lambda: mock.patch.object(
        OwnedPartition, "_checkpoint", _acknowledged_first
    ),
    "feeds are published before their rebuild": lambda: mock.patch.object(Driver, "publish_due", _published_early),
    "feeds are published in the middle of a look": lambda: mock.patch.object(Driver, "take", _published_between_pieces),
    "a rebuilt state is written where the former one ended": lambda: mock.patch.object(
        Driver, "checkpoint_due", _due_when_rebuilt
    ),
    "all is folded again before anything is rebuilt": lambda: mock.patch.object(driver, "_fold_on", _in_one_fold),
    "records of a feed are folded while it is rebuilt": lambda: mock.patch.object(Postponed, "begin", _none_waits),
    "records that waited for a rebuild are dropped": lambda: mock.patch.object(FeedStage, "step_postponed", _dropped),
    "of records that waited for a rebuild the last is folded first": lambda: mock.patch.object(
        FeedStage, "step_postponed", _last_first
    ),
    "state is written during a rebuild": lambda: mock.patch.object(OwnedPartition, "_handle", _written_meanwhile),
    "a group is published before all its parts have come": lambda: mock.patch.object(
        HandOvers, "publishes_all", return_value=True
    ),
    "a group that waited for a part is not published": lambda: mock.patch.object(
        HandOvers, "awaited_group", return_value=None
    ),
    "topics are judged without a lease": lambda: mock.patch.object(BatchProducer, "hold"),
    "what comes late to the changelog is not noticed": lambda: mock.patch.object(Writer, "passed", _not_noticed),
    "deletions count where they stand in the log": lambda: mock.patch.object(
        Deletions, "life_of", return_value=Life.PRESENT
    ),
    "revoked partitions live on": lambda: mock.patch.object(Ownership, "lost"),
    "the lease is ignored": lambda: mock.patch.object(Lease, "right", return_value=Right.HOLDS),
    "the lease is looked at when records are handed over only": lambda: mock.patch.object(
        Sender, "_requests", _leased_when_handed_over
    ),
    "records of a former term are sent": lambda: mock.patch.object(Lease, "right", _right_of_the_present),
    "the lease begins with the answer": lambda: mock.patch.object(Lease, "answered", _renewed_by_the_answer),
}


FOUND_BY = {
    "input is acknowledged before its state is durable": 0,
    "offsets that are missing count as proven": 0,
    "records of a former term are sent": 0,
    "repeated records are folded again": 0,
    "revoked partitions live on": 0,
    "the lease is ignored": 0,
    "the order of batches is not checked": 0,
    "what comes late to the changelog is not noticed": 0,
    "a rebuild leaves its log out": 1,
    "state is written during a rebuild": 1,
    "feeds are published in the middle of a look": 7,
    "feeds are published before their rebuild": 3,
    "records of a feed are folded while it is rebuilt": 3,
    "records that waited for a rebuild are dropped": 3,
    "the lease begins with the answer": 4,
    "outputs are not awaited": 5,
    "a group is published before all its parts have come": 6,
    "a group that waited for a part is not published": 6,
    "of records that waited for a rebuild the last is folded first": 6,
    "rows hold one version": 6,
    "the head is written before the entries": 6,
    "all is folded again before anything is rebuilt": 11,
    "topics are judged without a lease": 14,
    "deletions count where they stand in the log": 27,
    "the lease is looked at when records are handed over only": 33,
    "recovery reads beyond its token": 34,
    "tokens are ignored": 35,
    "a rebuilt state is written where the former one ended": 69,
    "tombstones are not believed": 7099,
}
"""The first seeds that find each of them."""


SECOND = {
    "recovery reads beyond its token",
    "tokens are ignored",
    "what comes late to the changelog is not noticed",
    "rows hold one version",
}
"""These are a second line of defence: while the lease holds, next to nothing gets to them. It is ignored as well."""

HARMLESS: Mapping[str, Callable[[], object]] = {
    # No offset is committed before durable state covers it (`Watch.committed`, in each seed): so no partition begins
    # behind the place where its state ends.
    "partitions begin at the group's offset": lambda: mock.patch.object(Ownership, "recovered", _from_the_commit),
}
"""Changes that another promise makes harmless."""

UNLEASED = "the lease is ignored, and nobody watches who writes"
"""What is broken besides, of those in ``SECOND``."""


@contextmanager
def mutated(name: str | None) -> Iterator[None]:
    """Break the mechanism in the way of this name; None: leave it whole."""
    with ExitStack() as stack:
        if name is not None and name != UNLEASED:
            stack.enter_context({**MUTANTS, **HARMLESS}[name]())  # type: ignore[arg-type]  # every patch is a context manager
        if name in SECOND or name == UNLEASED:
            stack.enter_context(mock.patch.object(Lease, "right", return_value=Right.HOLDS))
            stack.enter_context(mock.patch.object(Watch, "sent"))
            stack.enter_context(mock.patch.object(StateWriter, "_fence_again", side_effect=LeaseEndedError("a zombie")))
        yield
