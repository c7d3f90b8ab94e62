"""Faust's consumer, changed in its unit: one message per partition and fetch, whose value is the list of records.

Everything per message (flow control, generation check, acknowledgement, commit) then runs once per batch. Beyond that
it closes three holes through which a rebalance can lose or hold back records, and proves where records are missing.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import Any

import structlog
from faust.transport.drivers import aiokafka as driver
from faust.types import TP
from faust.types.tuples import ConsumerMessage

from stream_peer.errors import StateError
from stream_peer.kafka.client.log_ends import LogEnd
from stream_peer.kafka.worker.client_thread import ClientThread
from stream_peer.kafka.worker.recreated import InputLog
from stream_peer.kafka.worker.watchdog import now

log = structlog.get_logger(__name__)

BATCH_RECORDS = 20_000
"""Longest batch that is handed over as one message."""

_SMALL_FETCH = 2_000  # records, below which it is worth while to gather
_ASK_AGAIN_SECONDS = 0.5


class OrderProof:
    """Whether nothing lies between the offset that is wanted and the one that came.

    A fetch after a seek to ``want`` that begins at ``first`` proves it for this pair: aborted records, markers of
    transactions, retention and compaction leave such holes. The seek is asked for here and done by the fetch loop, in
    which no other fetch is in flight; one begun elsewhere could take records from the new position and prove a lie.
    """

    def __init__(self, clock: Callable[[], float] = now) -> None:
        self._clock = clock
        self._asked: dict[Any, int] = {}
        self._sought: dict[Any, int] = {}
        self._proofs: dict[Any, tuple[int, int]] = {}
        self._last: dict[Any, tuple[int, float]] = {}

    def admits(self, tp: Any, want: int, first: int) -> bool:
        """Whether it is proven; otherwise ask for a seek, at most every half second for the same offset."""
        if self._proofs.get(tp) == (want, first):
            return True
        last_want, at = self._last.get(tp, (-1, 0.0))
        if last_want != want or self._clock() - at > _ASK_AGAIN_SECONDS:
            self._last[tp] = (want, self._clock())
            self._asked[tp] = want
        return False

    def ask(self, tp: Any, want: int) -> None:
        """Ask for a seek."""
        self._asked[tp] = want

    def asked(self, assignment: Iterable[Any]) -> dict[Any, int]:
        """Seeks to do now, of assigned partitions."""
        mine = set(assignment)
        asked = {tp: want for tp, want in self._asked.items() if tp in mine}
        self._asked.clear()
        return asked

    def sought(self, places: Mapping[Any, int]) -> None:
        """Remember seeks that are done: whatever is fetched from now on begins there, or behind."""
        self._sought.update(places)

    def found_nothing(self, tp: Any, want: int) -> bool:
        """Whether no record has come since a seek to ``want``."""
        return self._sought.get(tp) == want

    def fetched(self, tp: Any, first: int) -> None:
        """Remember where the first fetch after a seek began."""
        want = self._sought.pop(tp, None)
        if want is not None:
            self._proofs[tp] = (want, first)

    def clear(self) -> None:
        """Forget everything: positions were set anew."""
        for known in (self._asked, self._sought, self._proofs, self._last):
            known.clear()


class BatchConsumer(driver.Consumer):
    """The consumer of an app all of whose topics are read in batches."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._accepted: dict[Any, deque[Any]] = {}
        self._proof = OrderProof()
        self._reading: dict[Any, int] = {}  # next offset of changelogs, which have no other check of order
        self._catch_up: dict[Any, int] = {}  # group offsets to commit although nothing was acknowledged
        self._polled = now()
        super().__init__(*args, **kwargs)

    def _new_consumer_thread(self) -> ClientThread:
        return ClientThread(self, loop=self.loop, beacon=self.beacon)

    def verify_event_path(self, now: float, tp: Any) -> None:
        """Nothing. Faust would take any partition that rests, or is folded anew, for a stream of its own that hangs.

        Whether work stands still is told by the watchdog and by ``/healthz/live``.
        """

    # Fetching.

    async def _getmany(self, active_partitions: Any, timeout: float) -> Any:  # noqa: ASYNC109 - Faust's signature
        """Fetch from a copy of the active partitions: the live set is shared with a thread, and empty means all."""
        if active_partitions is None:
            return await super()._getmany(None, timeout)
        copied = frozenset(active_partitions)
        return await super()._getmany(copied, timeout) if copied else {}

    async def _wait_next_records(self, timeout: float) -> Any:  # noqa: ASYNC109 - Faust's signature
        began = time.perf_counter()
        if self.flow_active:
            asked = self._proof.asked(self.assignment())
            await self._seek_all(asked)
            self._proof.sought(asked)
        records, active = await super()._wait_next_records(timeout)
        for tp, batch in (records or {}).items():
            self._proof.fetched(tp, batch[0].offset)
        gather = self.app.gather - (time.perf_counter() - began)
        if records and gather > 0 and sum(map(len, records.values())) < _SMALL_FETCH:
            await asyncio.sleep(gather)
        return records, active

    async def getmany(self, timeout: float) -> AsyncIterator[tuple[Any, Any]]:  # noqa: ASYNC109 - Faust's signature
        """Fetch, and yield one message per partition. What cannot be delivered is sought back."""
        if not self.flow_active:
            await self.wait(self.can_resume_flow)
        if self.should_stop:
            return
        generation = self.app.consumer_generation_id  # not before the flow resumed: the fetch belongs to this one
        records, active = await self._wait_next_records(timeout)
        self._report_poll()
        if self.should_stop:
            return
        back: dict[Any, int] = {}
        for tp, batch in _cut(records or {}):
            if tp in back:
                continue
            if self._deliverable(tp, active, generation) and self._in_order(tp, batch):
                self._check_length(tp)
                yield tp, self._message(tp, batch, generation)
            else:
                back[tp] = batch[0].offset
        await self._seek_back(back)

    async def _seek_back(self, undelivered: Mapping[Any, int]) -> None:
        if not undelivered:
            return
        if self.flow_active:
            mine = self.assignment()
            await self._seek_all({tp: offset for tp, offset in undelivered.items() if tp in mine})
        else:
            await self._seek_while_stopped()

    def _report_poll(self) -> None:
        at = now()
        self.app.observer.polled(at - self._polled)
        self._polled = at

    async def _seek_while_stopped(self) -> None:
        try:
            await self.perform_seek()
        except Exception as error:  # noqa: BLE001 - as Faust does: the recovery that follows seeks again
            log.warning("seek_failed", reason=repr(error))

    def _deliverable(self, tp: Any, active: Any, generation: int) -> bool:
        if not self.flow_active or self.app.consumer_generation_id != generation:
            return False
        return active is None or tp in active or tp in self._buffered_partitions

    def _in_order(self, tp: Any, batch: Any) -> bool:
        """Check changelogs here; inputs are checked where they are folded."""
        want = self._reading.get(tp)
        if want is not None:
            if batch[0].offset > want and not self._proof.admits(tp, want, batch[0].offset):
                return False
            self._reading[tp] = max(want, batch[-1].offset + 1)
        return True

    def _check_length(self, tp: Any) -> None:
        """End the process if an input became shorter: the client would read it from its start, as if read before."""
        owned, end = self.app.ownership.owned(tp), self.highwater(tp)
        if owned is not None and end is not None and owned.want > end:
            self.app.ownership.fail(_shorter(tp, owned.want, end))

    def _message(self, tp: Any, batch: Any, generation: int) -> Any:
        self.app.monitor.track_tp_end_offset(tp, self.highwater(tp))
        last = batch[-1]
        at = (last.timestamp or 0) / 1000
        return ConsumerMessage(
            tp.topic, tp.partition, last.offset, at, last.timestamp_type, None, None, batch, None, 0, 0, tp,
            generation_id=generation,
        )  # fmt: skip

    # Acknowledging: whole batches, in the order in which their partition accepted them.

    async def _add_gap(self, tp: Any, offset_from: int, offset_to: int) -> None:
        """Offsets inside a batch are no gap."""

    def _new_offset(self, tp: Any) -> int | None:
        """What may be committed: up to the first batch that is not acknowledged."""
        accepted = self._accepted.get(tp) or deque()
        offset: int | None = self._catch_up.pop(tp, None)
        while accepted and accepted[0].acked:
            offset = max(offset or 0, accepted.popleft().offset + 1)
        self._acked[tp].clear()
        self._acked_index[tp].clear()
        return offset

    def accept(self, message: Any) -> None:
        """Queue a message for commit. Not earlier: one that Faust drops on the way would hold up all that follow."""
        self._accepted.setdefault(message.tp, deque()).append(message)

    def forget(self, message: Any) -> None:
        """Let go of a message that will not be processed, so that nobody waits for it."""
        self._unacked_messages.discard(message)

    # Ownership.

    @property
    def is_member(self) -> bool:
        """Whether it is in its group, as far as the client knows: it may have been expelled, or have given up."""
        consumer = self._thread._consumer  # noqa: SLF001 - nobody else can say
        if consumer is None:
            return False
        coordinator = consumer._coordinator  # noqa: SLF001
        return coordinator.generation > 0 and not coordinator._coordination_task.done()  # noqa: SLF001

    def admits(self, tp: Any, want: int, first: int) -> bool:
        """Whether nothing lies between ``want`` and ``first``; else a seek is asked for."""
        admitted = self._proof.admits(tp, want, first)
        log.debug("input_order", topic=tp.topic, partition=tp.partition, want=want, first=first, admitted=admitted)
        return admitted

    def read_again(self, tp: Any, want: int) -> None:
        """Go back to ``want``: what lies behind it may have got lost on the way."""
        log.debug("input_read_again", topic=tp.topic, partition=tp.partition, want=want)
        self._proof.ask(tp, want)

    def found_nothing(self, tp: Any, want: int) -> bool:
        """Whether it was read again from ``want``, and no record has come since."""
        return self._proof.found_nothing(tp, want)

    def pass_over(self, tp: Any, end: int) -> None:
        """Commit an end before which there is no record any more, as a client does that commits its position."""
        self._align_group(tp, end)

    def log_end(self, tp: Any) -> LogEnd | None:
        """Where a log ended at the last fetch; None: not known."""
        end: LogEnd | None = self._thread.log_end(tp)
        return end

    async def log_ends(self, *partitions: Any) -> Mapping[Any, LogEnd]:
        """Where logs end now."""
        ends: Mapping[Any, LogEnd] = await self._thread.log_ends(partitions)
        return ends

    async def highwaters(self, *partitions: Any) -> Mapping[Any, int]:
        """Where Faust shall end the recovery of changelogs: behind our claims, since nothing counts that comes later.

        At the end of a changelog there may be no record, and recovery would wait for one; and the last stable offset
        may lie before the claim, which recovery has to meet.
        """
        ends = {tp: self.app.ownership.claimed_up_to(tp.topic, tp.partition) for tp in partitions}
        unknown = [tp for tp, end in ends.items() if end is None]
        return {**ends, **(await super().highwaters(*unknown) if unknown else {})}

    async def log_start(self, tp: Any) -> int:
        """The first offset that the broker still has."""
        return int((await self.earliest_offsets(tp))[tp])

    async def on_partitions_assigned(self, assigned: Any, generation_id: int = 0) -> None:
        """Claim before Faust recovers: before it asks where the changelogs end."""
        self._accepted.clear()
        self._reading.clear()
        self._catch_up.clear()
        try:
            await self.app.ownership.claim(assigned)
        except Exception as error:  # noqa: BLE001 - without a claim nothing may be owned
            self.app.ownership.fail(error)
        self.app.observer.rebalanced()
        await super().on_partitions_assigned(assigned, generation_id)

    async def on_partitions_revoked(self, revoked: Any) -> None:
        """Let Faust wait for the last snapshots, then let go."""
        await super().on_partitions_revoked(revoked)
        self.app.ownership.drop()
        for tp in revoked:
            self._accepted.pop(tp, None)
            self._catch_up.pop(tp, None)

    async def wait_empty(self) -> None:
        """Take the last snapshots: Faust waits here, on stop and revoke, before tables and producers stop."""
        async with self.app.ownership.drained():
            for partition in self.app.ownership.partitions():
                if partition.has_state:
                    self._align_group(partition.tp, partition.covered)
            await super().wait_empty()

    async def seek_wait(self, partitions: Mapping[Any, int]) -> None:
        """Seek; of changelogs remember where reading begins."""
        for tp, offset in partitions.items():
            if self._is_changelog_tp(tp):
                self._reading[TP(tp.topic, tp.partition)] = offset
        await super().seek_wait(partitions)

    async def perform_seek(self) -> None:
        """Own what was recovered, and start each partition behind its head, not at the group's offset."""
        await super().perform_seek()
        ownership = self.app.ownership
        try:
            ids = await ownership.topic_ids()
            logs = await self._logs(ids)
            owned = ownership.take_over(self.assignment(), logs, self)
            places = {tp: partition.want for tp, partition in owned.items()}
            _check_ends(places, logs)
            ownership.examine_controls(ids)
        except Exception as error:  # noqa: BLE001 - the caller only logs
            ownership.fail(error)
            return
        for tp, partition in owned.items():
            if partition.has_state:
                self._align_group(tp, partition.covered)
        self._proof.clear()
        await self._seek_all(places)

    def _align_group(self, tp: Any, reached: int) -> None:
        """The group's offset is for onlookers; it may lie on either side of where the state is."""
        committed = self._committed_offset.get(tp)
        if committed is not None and committed > reached:
            self._committed_offset[tp] = reached  # else acknowledgements below it would be refused
        elif reached > (committed or 0):
            self._catch_up[tp] = reached
            self._acked[tp] = []  # the next commit looks at partitions that are listed here

    async def _logs(self, ids: Mapping[str, str]) -> dict[Any, InputLog]:
        """What the broker says of the inputs.

        Where partitions without a head begin is never left open: batches that came too early were dropped.
        """
        inputs = [tp for tp in self.assignment() if tp.topic in self.app.ownership.keepers]
        if not inputs:
            return {}
        ends, firsts = await self.log_ends(*inputs), await self.earliest_offsets(*inputs)
        logs = {}
        for key, end in ends.items():
            tp, first = TP(key.topic, key.partition), firsts[key]
            committed = self._committed_offset.get(tp)
            begin = self._begin(tp, committed, first, end)
            logs[tp] = InputLog(ids.get(tp.topic, ""), first, end.high, committed, begin, end.stable)
        return logs

    def _begin(self, tp: Any, committed: int | None, first: int, end: LogEnd) -> int:
        """Where a partition without a head begins. What is committed later is new, wherever it stands."""
        if self.app.ownership.keepers[tp.topic].input.changelog is None:
            return first if committed is None or committed > end.high else committed
        return end.stable if self.app.start_at_end else 0

    async def _seek_all(self, places: Mapping[Any, int]) -> None:
        if places:
            await self.seek_wait(places)
            self._read_offset.update({tp: offset or None for tp, offset in places.items()})


def _check_ends(places: Mapping[Any, int], logs: Mapping[Any, InputLog]) -> None:
    for tp, want in places.items():
        if tp in logs and want > logs[tp].end:
            raise _shorter(tp, want, logs[tp].end)


def _shorter(tp: Any, want: int, end: int) -> StateError:
    """A log that became shorter while it was read: the next start finds out what became of it."""
    return StateError(f"{tp.topic}-{tp.partition} ends at {end}, but {want - 1} was read: it was recreated")


def _cut(records: Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
    """Batches of bounded length, partition by partition, each in order."""
    for key, fetched in records.items():
        tp = TP(key.topic, key.partition)
        if len(fetched) <= BATCH_RECORDS:
            yield tp, fetched
        else:
            yield from ((tp, fetched[start : start + BATCH_RECORDS]) for start in range(0, len(fetched), BATCH_RECORDS))


class BatchTransport(driver.Transport):
    """The transport that brings the consumer into an app."""

    Consumer = BatchConsumer
