"""Which partitions this worker owns: claims on assignment, folds in recovery, snapshots while Faust waits."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any

from stream_peer.kafka.worker.keeper import Keeper
from stream_peer.kafka.worker.partition import OwnedPartition
from stream_peer.kafka.worker.recreated import Choice, InputLog, decide, examine_sources
from stream_peer.kafka.worker.surroundings import Source
from stream_peer.log.changelog import Fold

_DRAIN_SECONDS = 1.0  # of folding what waits, when the group or the process lets go of a partition
_SNAPSHOT_SECONDS = 3.0  # of writing a large state


class Ownership:
    """All partitions of one app.

    Parameters
    ----------
    keepers : iterable of Keeper
        One for each stage of the app.
    fail : callable
        Ends the process: an error in recovery would otherwise be logged by Faust and forgotten.
    topic_ids : callable
        Asks the broker for the ids of topics.
    on_recreated : str
        What to do if a topic was made anew.
    """

    def __init__(
        self,
        keepers: Iterable[Keeper],
        fail: Callable[[BaseException], None],
        topic_ids: Callable[[Iterable[str]], Awaitable[Mapping[str, str]]],
        on_recreated: Choice = "stop",
    ) -> None:
        self.keepers = {keeper.input.topic: keeper for keeper in keepers}
        self.fail = fail
        self._topic_ids = topic_ids
        self._on_recreated = on_recreated
        self._by_changelog = {keeper.input.changelog: keeper for keeper in self.keepers.values()}
        self._draining = 0

    def has_stage(self, stage_name: str) -> bool:
        """Whether it is the app of this stage."""
        return any(keeper.input.stage_name == stage_name for keeper in self.keepers.values())

    def partitions(self) -> Iterator[OwnedPartition]:
        """All owned partitions."""
        for keeper in self.keepers.values():
            yield from list(keeper.partitions.values())

    def owned(self, tp: Any) -> OwnedPartition | None:
        """An input partition, if it is one and owned."""
        keeper = self.keepers.get(tp.topic)
        return None if keeper is None else keeper.partitions.get(tp.partition)

    def is_draining(self) -> bool:
        """Whether Faust waits for work to end."""
        return self._draining > 0

    async def put(self, event: Any, source: Source) -> None:
        """Hand a batch to its partition. Without one it came between the end of recovery and the seek: drop it."""
        message = event.message
        owned = self.owned(message)
        if owned is None:
            source.forget(message)
        else:
            await owned.put(event)

    async def claim(self, assigned: Iterable[Any]) -> None:
        """Drop what was owned and claim what was assigned; before Faust recovers."""
        self.drop()
        assigned = list(assigned)
        for keeper in self.keepers.values():
            await keeper.claim(keeper.assigned(assigned))

    def drop(self) -> None:
        """Stop all partitions."""
        for keeper in self.keepers.values():
            keeper.drop()

    def recover(self, changelog: str, partition: int, records: Iterable[Any]) -> None:
        """Read changelog records that Faust fetched."""
        fold = self._by_changelog[changelog].folds.setdefault(partition, Fold())
        for record in records:
            fold.add(record.offset, record.key, record.value)

    def recovered_up_to(self, changelog: str, partition: int) -> int:
        """The last changelog offset that is known, so that recovery reads on from there; -1: none."""
        fold = self._by_changelog[changelog].folds.get(partition)
        return fold.next - 1 if fold else -1

    def claimed_up_to(self, changelog: str, partition: int) -> int | None:
        """The changelog offset behind our claim; None: there is no claim, or the broker did not say where it is."""
        keeper = self._by_changelog.get(changelog)
        claim = None if keeper is None else keeper.claims.get(partition)
        return None if claim is None or claim.offset < 0 else claim.offset + 1

    def stage_name_of(self, changelog: str) -> str:
        """Which stage keeps its state in a changelog."""
        return self._by_changelog[changelog].input.stage_name

    def take_over(
        self, assignment: Iterable[Any], logs: Mapping[Any, InputLog], source: Source
    ) -> dict[Any, OwnedPartition]:
        """Own every assigned partition whose recovery has met our claim.

        No await may come between reading the claims and making the partitions: a rebalance would begin there, and
        a partition would live on under a claim that is no longer ours.

        Parameters
        ----------
        assignment : iterable of TP
            What the group gave us.
        logs : mapping
            What the broker says of each input partition. One that it was not asked about came in between: its own
            assignment asks.

        Raises
        ------
        RecreatedTopicError
            If a topic was made anew, and the choice is to stop then.
        """
        assigned = set(assignment)
        for topic, keeper in self.keepers.items():
            mine = {tp: found for tp, found in logs.items() if tp in assigned and tp.topic == topic}
            keeper.own(mine, source, self.is_draining)
        owned = {partition.tp: partition for partition in self.partitions()}
        return {tp: partition for tp, partition in owned.items() if tp in assigned}

    async def topic_ids(self) -> Mapping[str, str]:
        """The broker's ids of the inputs, as far as there are any."""
        return await self._topic_ids(self.keepers)

    def examine_controls(self, ids: Mapping[str, str]) -> None:
        """Look whether control-events were made anew: they leave no state but their traces in the feed-log.

        Raises
        ------
        RecreatedTopicError
            If so, and the choice is to stop then.
        """
        keeper = next((keeper for keeper in self.keepers.values() if keeper.input.changelog is None), None)
        if keeper is None or keeper.input.topic not in ids:
            return
        topic = keeper.input.topic
        met = [partition.stage.incarnations() for partition in self.partitions()]
        decide(examine_sources(topic, ids[topic], met), self._on_recreated)

    @contextlib.asynccontextmanager
    async def drained(self) -> Any:
        """Flush all snapshots; inside, every further batch is followed by a snapshot of its own."""
        self._draining += 1
        try:
            await self._flush()
            yield
        finally:
            self._draining -= 1

    async def _flush(self) -> None:
        for _ in range(3):  # events that agents hold already get to their partitions
            await asyncio.sleep(0)
        partitions = list(self.partitions())
        for partition in partitions:
            partition.give_up_refold()
        resting = asyncio.gather(*(partition.rest() for partition in partitions))
        if not await _ends_within(_DRAIN_SECONDS, resting):  # a rebalance does not wait for whoever catches up
            for partition in partitions:
                partition.leave_rest()
        if not await _ends_within(_SNAPSHOT_SECONDS, resting):
            for partition in partitions:
                partition.give_up_snapshot()
        await resting


async def _ends_within(seconds: float, work: "asyncio.Future[Any]") -> bool:
    """Whether the work ends soon enough; it goes on if not."""
    try:
        await asyncio.wait_for(asyncio.shield(work), seconds)
    except TimeoutError:
        return False
    return True
