"""Ownership: fencing tokens on assignment, partitions after recovery, and a rebalance at the worst moment."""

from collections import defaultdict
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from stream_peer.errors import RecreatedTopicError, StateError
from stream_peer.kafka.worker.faust_bridge import BatchConsumer, OrderProof
from stream_peer.kafka.worker.long_work import RebuildProgress
from stream_peer.kafka.worker.ownership import Ownership, StageInput, StagePartitions
from stream_peer.kafka.worker.port import LogEnd, TopicPartition
from stream_peer.kafka.worker.process import now
from stream_peer.kafka.worker.recreated import Choice, InputLog
from stream_peer.log.changelog import ChangelogReader, ChangelogRow, Writer
from stream_peer.log.stage import LogRecord, Snapshot
from tests.unit.kafka.worker.fakes import (
    FakeEvent,
    FakeProducer,
    FakeSource,
    RebuildingStage,
    eventually,
    records,
    surroundings,
)

FORECASTS, CHANGELOG = "forecast-events", "changelog"
HERE, STATE = TopicPartition(FORECASTS, 0), TopicPartition(CHANGELOG, 0)
LOG = InputLog("", 0, 100)


class MetStage(RebuildingStage):
    """Has met records of control-events, of some generation each."""

    def __init__(self) -> None:
        super().__init__()
        self.met: dict[int, int] = {}

    def generations(self) -> dict[int, int]:
        return self.met


class World:
    """One app with one stage with state, and one without."""

    def __init__(self, on_recreated: Choice = "stop") -> None:
        self.producer = FakeProducer()
        self.stages: list[MetStage] = []
        around, self.errors = surroundings(self.producer)
        inputs = [
            StageInput("question", FORECASTS, CHANGELOG, self.make_stage),
            StageInput("control", "control-events", None, self.make_stage),
        ]
        stages = (StagePartitions(each, around, on_recreated) for each in inputs)
        self.ownership = Ownership(stages, self.errors.append, self.producer, on_recreated)
        self.source = FakeSource()

    def make_stage(self, _partition: int) -> MetStage:
        self.stages.append(MetStage())
        return self.stages[-1]

    def recover(self) -> None:
        """Read the changelog as Faust would, from where the fold says."""
        begin = self.ownership.unread(STATE).begin
        rows = [LogRecord(offset, 0, *row) for offset, row in enumerate(self.producer.changelog)]
        self.ownership.recover(STATE, [row for row in rows if row.offset >= begin])

    def take_over(self, assignment: Iterable[Any] = (HERE,), found: InputLog = LOG) -> dict[Any, Any]:
        return self.ownership.take_over(assignment, dict.fromkeys(assignment, found), self.source)


@pytest.fixture
async def world(request: pytest.FixtureRequest) -> Any:
    made = World(getattr(request, "param", "stop"))
    yield made
    made.ownership.lost()


async def leave_state(world: World) -> None:
    await world.ownership.assigned([HERE])
    fold = ChangelogReader()
    for offset, row in enumerate(world.producer.changelog):
        fold.add(offset, *row)
    assert fold.token is not None
    writer = Writer(fold, 0, fold.token, fold.next)
    snapshot = Snapshot({b"k/a": b"7"}, b"old head")
    world.producer.changelog += [*writer.entry_rows(snapshot, 41), writer.head_row(snapshot, 41)]
    world.ownership.lost()


async def test_nothing_is_owned_before_recovery_has_met_the_fencing_token(world: World) -> None:
    await world.ownership.assigned([HERE])

    before = world.take_over()
    world.recover()
    after = world.take_over()

    assert before == {}
    assert set(after) == {HERE}


async def test_a_partition_goes_on_behind_the_head_that_an_earlier_owner_left(world: World) -> None:
    await leave_state(world)
    await world.ownership.assigned([HERE])
    world.recover()

    owned = world.take_over()

    assert owned[HERE].want == 42
    assert world.stages[-1].loaded == (b"old head", {b"k/a": b"7"})


@pytest.mark.parametrize(("committed", "lost"), [(None, 8), (42, 8), (45, 5), (50, 0), (60, 0)])
async def test_offsets_that_the_group_has_passed_over_are_no_loss_once_they_are_gone(
    world: World, committed: int | None, lost: int
) -> None:
    await leave_state(world)
    await world.ownership.assigned([HERE])
    world.recover()

    with capture_logs() as lines:
        world.take_over(found=LOG._replace(first=50, end=60, committed=committed))

    assert [line["records"] for line in lines if line["event"] == "input_lost"] == ([lost] if lost else [])


async def test_a_later_token_than_ours_is_an_error(world: World) -> None:
    await world.ownership.assigned([HERE])
    frozen = dict(world.ownership.stages[FORECASTS].tokens)
    await world.ownership.assigned([HERE])
    world.recover()
    world.ownership.stages[FORECASTS].tokens = frozen

    with pytest.raises(StateError, match="later than ours"):
        world.take_over()


async def test_a_partition_that_stays_reads_on_from_what_it_knows(world: World) -> None:
    await world.ownership.assigned([HERE])
    world.recover()
    known = world.take_over()[HERE]
    await known.put(FakeEvent(records(0, 4)))
    await known.rest()

    await world.ownership.assigned([HERE])
    from_here = world.ownership.unread(STATE).begin
    world.recover()

    assert from_here == len(world.producer.changelog) - 1
    assert world.take_over()[HERE].want == 5
    assert world.stages[-1].loaded == (b"head", {b"k/a": b"5"})


async def test_a_partition_that_went_is_read_from_the_start_when_it_comes_back(world: World) -> None:
    await world.ownership.assigned([HERE])
    world.recover()

    await world.ownership.assigned([])

    assert world.ownership.unread(STATE).begin == 0


async def test_a_batch_of_a_partition_that_is_not_owned_yet_is_forgotten(world: World) -> None:
    event = FakeEvent(records(0, 1))

    await world.ownership.deliver(event, world.source)

    assert world.source.forgotten == [event]


async def test_a_stage_without_state_needs_no_fencing_token(world: World) -> None:
    control = TopicPartition("control-events", 2)
    await world.ownership.assigned([control])

    owned = world.take_over([control])

    assert set(owned) == {control}
    assert world.producer.changelog == []


async def test_a_revocation_waits_for_the_snapshots_of_all_partitions_and_ends_them(world: World) -> None:
    await world.ownership.assigned([HERE])
    world.recover()
    partition = world.take_over()[HERE]
    await partition.put(FakeEvent(records(0, 1)))
    await partition.rest()
    last, late = FakeEvent(records(2, 3)), FakeEvent(records(4, 5))
    await partition.put(last)

    covered = await world.ownership.revoked()
    await world.ownership.deliver(late, world.source)

    assert last.acked
    assert covered == {HERE: 4}
    assert world.source.forgotten == [late]
    assert not world.ownership.is_draining()


class SeekingConsumer(BatchConsumer):
    """The consumer's seek, with the rest of Faust left out. ``interruption`` runs where Faust awaits the broker."""

    def __init__(self, world: World) -> None:  # without Faust's
        self.app = SimpleNamespace(listener=world.ownership, group="questions")
        self._thread: Any = SimpleNamespace(committed_of={})
        self._proof = OrderProof(now)
        self._committed_offset: Any = defaultdict(lambda: None)
        self._read_offset: Any = {}
        self._unacked_messages: Any = set()
        self._acked: Any = defaultdict(list)
        self._catch_up, self._accepted = {}, {}
        self._acked_index: Any = defaultdict(set)
        self.interruptions: dict[str, Any] = {}
        self.sought: list[dict[Any, int]] = []

    async def _at(self, place: str) -> None:
        interruption = self.interruptions.pop(place, None)
        if interruption is not None:
            await interruption()

    def assignment(self) -> set[Any]:
        return {HERE}

    async def seek_to_committed(self) -> dict[Any, int]:
        await self._at("committed")
        return {HERE: 0}

    async def log_ends(self, *partitions: Any) -> dict[Any, LogEnd]:
        await self._at("ends")
        return dict.fromkeys(partitions, LogEnd(100, 90))

    async def earliest_offsets(self, *partitions: Any) -> dict[Any, int]:
        await self._at("earliest")
        return dict.fromkeys(partitions, 7)

    async def seek_wait(self, partitions: Any) -> None:
        await self._at("seek")
        self.sought.append(dict(partitions))


@pytest.mark.case("C31")
@pytest.mark.parametrize("place", ["committed", "ends", "earliest", "seek"])
async def test_an_assignment_inside_the_seek_leaves_no_partition_under_an_old_token(world: World, place: str) -> None:
    consumer = SeekingConsumer(world)
    await world.ownership.assigned([HERE])
    world.recover()

    async def rebalance() -> None:
        await world.ownership.assigned([HERE])

    consumer.interruptions[place] = rebalance
    await consumer.perform_seek()
    interrupted = list(world.ownership.partitions())
    world.recover()
    await consumer.perform_seek()

    (owned,) = world.ownership.partitions()
    await owned.put(FakeEvent(records(7, 10)))
    await owned.rest()
    fold = ChangelogReader()
    for offset, row in enumerate(world.producer.changelog):
        fold.add(offset, *row)
    assert interrupted == []
    assert fold.fenced_out == 0
    assert fold.applied == 10
    assert world.errors == []


@pytest.mark.case("C29")
async def test_a_topic_that_ends_before_the_state_was_made_anew_and_is_not_folded(world: World) -> None:
    await leave_state(world)
    consumer = SeekingConsumer(world)
    await world.ownership.assigned([HERE])
    world.recover()

    async def short(*partitions: Any) -> dict[Any, LogEnd]:
        return dict.fromkeys(partitions, LogEnd(10, 10))

    consumer.log_ends = short  # type: ignore[method-assign]  # a broker with a shorter log
    await consumer.perform_seek()

    (error,) = world.errors
    assert isinstance(error, RecreatedTopicError)
    assert "forecast-events was deleted and recreated: partition 0 ends at offset 10" in str(error)
    assert not list(world.ownership.partitions())


@pytest.mark.parametrize("world", ["stop", "keep", "rebuild"], indirect=True)
@pytest.mark.parametrize("is_leased", [True, False])
async def test_state_is_missed_only_under_a_lease_as_others_may_have_written_it_since(
    world: World, *, is_leased: bool
) -> None:
    consumer = SeekingConsumer(world)
    await world.ownership.assigned([HERE])
    world.recover()
    world.producer.is_leased = is_leased

    async def another_owner_commits() -> None:
        consumer._committed_offset[HERE] = 4

    consumer.interruptions["ends"] = another_owner_commits
    with capture_logs() as lines:
        await consumer.perform_seek()

    missed = [str(error) for error in world.errors] + [line["found"] for line in lines if "found" in line]
    assert ["holds no state, though its group has read" in each for each in missed] == [True] * is_leased
    assert ("assignment_over" in [line["event"] for line in lines]) == (not is_leased)
    assert bool(list(world.ownership.partitions())) == (is_leased and not world.errors)


async def test_the_groups_offset_catches_up_with_a_state_that_is_ahead(world: World) -> None:
    await leave_state(world)
    consumer = SeekingConsumer(world)
    await world.ownership.assigned([HERE])
    world.recover()

    await consumer.perform_seek()

    assert consumer.sought[-1] == {HERE: 42}
    assert HERE in consumer._acked
    assert consumer._new_offset(HERE) == 42


async def test_only_a_finished_prefix_of_accepted_batches_may_be_committed(world: World) -> None:
    consumer = SeekingConsumer(world)
    batches = [FakeEvent(records(first, first + 9)) for first in (0, 10, 20)]
    for batch in batches:
        batch.tp = HERE
        consumer.accept(batch)

    batches[0].ack()
    batches[2].ack()
    held_up = consumer._new_offset(HERE)
    batches[1].ack()

    assert held_up == 10
    assert consumer._new_offset(HERE) == 30


@pytest.mark.parametrize(
    ("committed", "covered", "want", "moves"),
    [
        pytest.param(3, 7, 7, True, id="the state covers more"),
        pytest.param(None, 7, 7, True, id="nothing was committed"),
        pytest.param(7, 7, 7, False, id="the state covers the same"),
        pytest.param(None, 0, 0, False, id="nothing was read"),
        pytest.param(25, 0, 0, True, id="the topic was recreated"),
        pytest.param(25, 0, 25, False, id="what was read is rebuilt"),
    ],
)
def test_the_groups_offset_is_moved_to_where_the_state_is_and_not_back_to_where_a_rebuild_begins(
    world: World, committed: int | None, covered: int, want: int, *, moves: bool
) -> None:
    consumer = SeekingConsumer(world)
    consumer._committed_offset[HERE] = committed

    consumer._align_group(HERE, covered, want)

    assert consumer._filter_committable_offsets(list(consumer._acked)) == ({HERE: covered} if moves else {})


async def test_a_stage_without_state_begins_at_the_groups_offset_or_the_start_of_its_log(world: World) -> None:
    consumer = SeekingConsumer(world)
    tps = fresh, known, shorter, named, former = [TopicPartition("control-events", partition) for partition in range(5)]
    consumer._committed_offset.update({known: 95, shorter: 101, named: 95, former: 95})
    consumer._thread.committed_of.update({known: "", shorter: "present", named: "present", former: "former"})

    bounds = await consumer.bounds(tps)
    control = world.ownership.stages["control-events"]

    begins = {tp: control.input_log("present", found).begin for tp, found in bounds.items()}
    assert begins == {fresh: 7, known: 95, shorter: 7, named: 95, former: 7}
    assert control.input_log("", bounds[former]).begin == 95  # a broker without ids of topics


async def test_the_latest_start_is_before_an_open_transaction_since_what_it_commits_is_new(world: World) -> None:
    consumer = SeekingConsumer(world)
    latest = StageInput("question", FORECASTS, CHANGELOG, world.make_stage, begins_at_end=True)

    (bounds,) = (await consumer.bounds([HERE])).values()
    found = StagePartitions(latest, surroundings(world.producer)[0]).input_log("", bounds)

    assert (found.begin, found.readable, found.end) == (90, 90, 100)


async def test_a_state_that_covers_more_than_is_stable_is_no_sign_of_a_shorter_log(world: World) -> None:
    await leave_state(world)
    consumer = SeekingConsumer(world)
    await world.ownership.assigned([HERE])
    world.recover()

    async def unstable(*partitions: Any) -> dict[Any, LogEnd]:
        return dict.fromkeys(partitions, LogEnd(42, 10))

    consumer.log_ends = unstable  # type: ignore[method-assign]
    await consumer.perform_seek()

    assert world.errors == []
    assert consumer.sought[-1] == {HERE: 42}


async def test_recovery_ends_behind_our_token_whatever_the_changelog_ends_in(world: World) -> None:
    consumer = SeekingConsumer(world)
    await leave_state(world)
    await world.ownership.assigned([HERE])
    token = len(world.producer.changelog) - 1
    await world.producer.append("changelog", 0, [ChangelogRow(b"whatever", b"comes later")], 0)

    assert await consumer.highwaters(TopicPartition("changelog", 0)) == {TopicPartition("changelog", 0): token + 1}


@pytest.mark.case("C29")
async def test_a_topic_that_becomes_shorter_while_it_is_read_ends_the_process(world: World) -> None:
    await leave_state(world)
    consumer = SeekingConsumer(world)
    await world.ownership.assigned([HERE])
    world.recover()
    await consumer.perform_seek()

    for end in (None, LogEnd(42, 42), LogEnd(41, 41)):
        batch = FakeEvent(records(0, 1))
        batch.end = end  # as the last fetch said
        await world.ownership.deliver(batch, world.source)

    (error,) = world.errors
    assert isinstance(error, StateError)
    assert str(error) == "forecast-events-0 ends at 41, but 41 was read: it was recreated"


@pytest.mark.case("C29")
async def test_what_was_dropped_is_not_whole_before_the_end_that_the_new_topic_had() -> None:
    world = World("rebuild")
    await leave_state(world)
    await world.ownership.assigned([HERE])
    world.recover()

    partition = world.take_over(found=InputLog("", 0, 3))[HERE]
    folded = []
    for batch in (records(0, 1), records(2, 2)):
        folded.append(partition.rebuilding)
        await partition.put(FakeEvent(batch))
        await eventually(lambda: partition.idle or partition.reached == 3)

    assert folded == [RebuildProgress(0, 3), RebuildProgress(2, 3)]
    assert partition.rebuilding is None
    world.ownership.lost()


@pytest.mark.case("C29")
async def test_that_a_topic_is_another_one_is_durable_before_its_first_record() -> None:
    world = World("keep")
    await leave_state(world)
    await world.ownership.assigned([HERE])
    world.recover()

    partition = world.take_over(found=InputLog("355cab72-150b-4efa-abe6-2ea2d295b254", 0, 3))[HERE]
    covered = partition.covered
    await partition.put(FakeEvent(records(0, 0)))
    await partition.rest()

    assert covered == 0
    fold = ChangelogReader()
    for offset, row in enumerate(world.producer.changelog):
        fold.add(offset, *row)
    assert (fold.origin.base, fold.recovered().applied) == (43, 0)
    world.ownership.lost()


@pytest.mark.case("C29")
async def test_control_events_made_anew_are_noticed_by_what_the_feed_log_met() -> None:
    world = World()
    world.producer.topic_id = "355cab72-150b-4efa-abe6-2ea2d295b254"
    await world.ownership.assigned([HERE])
    world.recover()
    world.take_over()
    ids = await world.producer.topic_ids(world.ownership.stages)

    world.ownership.examine_controls(ids)
    world.stages[-1].met = {0: 17}
    with pytest.raises(RecreatedTopicError, match="topic control-events was deleted and recreated"):
        world.ownership.examine_controls(ids)

    world.ownership.lost()
