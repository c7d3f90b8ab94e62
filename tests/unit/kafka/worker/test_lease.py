"""Until when a member of a group may write; and what the producer and the heartbeats of its clients make of it."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.producer.transaction_manager import TransactionManager
from aiokafka.protocol.group import HeartbeatRequest, JoinGroupRequest, SyncGroupRequest
from aiokafka.structs import TopicPartition

from stream_peer.errors import LeaseEndedError
from stream_peer.kafka.worker import faust_bridge
from stream_peer.kafka.worker.faust_bridge import KafkaWriter, LeasedSend, renew_by_heartbeats
from stream_peer.kafka.worker.heartbeats import Deadlines, Heartbeats
from stream_peer.kafka.worker.lease import NO_TERM, Lease, Right
from stream_peer.kafka.worker.producer import BatchProducer

SESSION, REBALANCE = 10.0, 30.0
WELL, REBALANCES, UNKNOWN = 0, 27, 25


class Member:
    """A member in generation 7, and its clock."""

    def __init__(self) -> None:
        self.now, self.term = 100.0, 7
        self.lease = Lease(SESSION, REBALANCE, lambda: self.now)
        self.lease.follow(lambda: self.term)


@pytest.fixture
def member() -> Member:
    return Member()


def test_without_an_answered_heartbeat_everything_waits(member: Member) -> None:
    assert member.lease.right(7) is Right.WAITS


def test_a_lease_holds_for_half_a_session_from_when_the_heartbeat_was_sent_not_from_its_answer(member: Member) -> None:
    member.now = 104.0
    member.lease.answered(100.0, 7)

    assert member.lease.right(7) is Right.HOLDS
    member.now = 105.0
    assert member.lease.right(7) is Right.WAITS


def test_an_answer_after_an_outage_renews_the_lease_of_the_same_generation(member: Member) -> None:
    member.lease.answered(100.0, 7)
    member.now = 500.0
    assert member.lease.right(7) is Right.WAITS

    member.lease.answered(500.0, 7)

    assert member.lease.right(7) is Right.HOLDS


def test_records_of_a_former_generation_are_never_sent(member: Member) -> None:
    member.term = 9
    member.lease.answered(100.0, 9)

    assert member.lease.right(7) is Right.OVER
    assert member.lease.right(9) is Right.HOLDS


def test_a_member_that_was_expelled_has_no_right(member: Member) -> None:
    member.lease.answered(100.0, 7)
    member.term = NO_TERM

    assert member.lease.right(7) is Right.OVER
    assert member.lease.right(NO_TERM) is Right.OVER


def test_the_answer_to_a_heartbeat_of_a_former_generation_renews_nothing(member: Member) -> None:
    member.lease.answered(100.0, 6)

    assert member.lease.right(7) is Right.WAITS


@pytest.mark.parametrize("renews", [True, False])
async def test_who_waits_for_the_lease_goes_on_with_the_next_answer_or_the_end_of_the_term(
    member: Member, *, renews: bool
) -> None:
    producer = BatchProducer(KafkaWriter({}, None), str, Heartbeats(Deadlines(10.0, 10.0, 10.0), lambda: member.now))
    waiting = asyncio.ensure_future(producer.under(member.lease).hold())
    await asyncio.sleep(0)
    waits = not waiting.done()

    if renews:
        member.lease.answered(100.0, 7)
    else:
        member.term = NO_TERM
    (outcome,) = await asyncio.gather(waiting, return_exceptions=True)

    assert waits
    assert isinstance(outcome, LeaseEndedError) != renews


def test_while_the_group_waits_for_a_join_the_lease_is_not_renewed_beyond_half_the_rebalance_timeout(
    member: Member,
) -> None:
    member.lease.answered(100.0, 7)
    for moment in (103.0, 106.0, 109.0, 112.0):
        member.now = moment
        member.lease.answered(moment, 7, rebalances=True)

    assert member.lease.right(7) is Right.HOLDS
    member.now = 115.0
    assert member.lease.right(7) is Right.WAITS


def test_nothing_is_sent_while_a_member_waits_for_the_answer_to_its_join(member: Member) -> None:
    member.lease.answered(100.0, 7)
    member.lease.joins()

    assert member.lease.right(7) is Right.WAITS


class Batch:
    """Of one partition: written in generation 7 of a member, or by nobody in particular."""

    def __init__(self, member: Member | None) -> None:
        tenure = None if member is None else faust_bridge._Tenure(member.lease, 7)
        self._builder = SimpleNamespace(tenure=tenure)
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def get_data_buffer(self) -> bytes:
        return b""

    def done(self, *_: Any) -> None:
        self.future.set_result(None)

    def failure(self, exception: Exception) -> None:
        self.future.set_exception(exception)


class Sending:
    """A sender with its client and its queue; while it connects, a test lets something happen."""

    def __init__(self, *, connects: bool = True) -> None:
        self.connects = connects
        self.requests: list[list[TopicPartition]] = []
        self.put_back: list[Any] = []
        self.meanwhile: Any = lambda: None
        self.client = self._message_accumulator = self
        self._txn_manager = TransactionManager(None, 60_000)
        self._txn_manager.set_pid_and_epoch(5, 0)
        self._retry_backoff, self._acks, self._request_timeout_ms = 0.0, -1, 1_000

    async def ready(self, _node: int) -> bool:
        self.meanwhile()
        return self.connects

    async def send(self, _node: int, request: Any) -> Any:
        sent = [(topic, place, 0, 40, 0, 0) for topic, places in request._topics for place, _ in places]
        self.requests.append([TopicPartition(topic, place) for topic, place, *_ in sent])
        topics = [(topic, [tuple(answer)]) for topic, *answer in sent]
        return SimpleNamespace(topics=topics, API_VERSION=5)

    def reenqueue(self, batch: Any) -> None:
        self.put_back.append(batch)

    async def _maybe_wait_metadata(self) -> None:
        pass

    async def do(self, **batches: Batch) -> dict[str, Batch]:
        await LeasedSend(self, {TopicPartition(name, 0): batch for name, batch in batches.items()}).do(1)
        return batches


async def test_a_request_holds_the_batches_whose_lease_holds_when_the_connection_is_there(member: Member) -> None:
    member.lease.answered(100.0, 7)
    other = Member()
    other.lease.answered(100.0, 7)
    sending = Sending()

    def lease_ends() -> None:
        other.now = 106.0

    sending.meanwhile = lease_ends
    batches = await sending.do(mine=Batch(member), others=Batch(other), nobodys=Batch(None))

    assert sending.requests == [[TopicPartition("mine", 0), TopicPartition("nobodys", 0)]]
    assert sending.put_back == [batches["others"]]
    assert batches["mine"].future.done()


async def test_nothing_is_sent_over_a_connection_that_is_made_after_the_look(member: Member) -> None:
    member.lease.answered(100.0, 7)
    sending = Sending(connects=False)

    batches = await sending.do(mine=Batch(member))

    assert not sending.requests
    assert sending.put_back == [batches["mine"]]


async def test_batches_of_a_term_that_is_over_are_left_out_and_a_producer_with_another_id_goes_on(
    member: Member,
) -> None:
    member.term = 8
    sending = Sending()
    sending._txn_manager.increment_sequence_number(TopicPartition("mine", 0), 3)

    batches = await sending.do(mine=Batch(member))

    assert not sending.requests
    assert not sending.put_back
    with pytest.raises(LeaseEndedError, match="the group gave the partitions to other workers"):
        batches["mine"].future.result()
    assert not sending._txn_manager.has_pid()
    assert sending._txn_manager.sequence_number(TopicPartition("mine", 0)) == 0
    sending._txn_manager.set_pid_and_epoch(6, 0)
    assert sending._txn_manager.has_pid()


class Coordinator:
    """Of a client that joins: what the broker says to its requests, and the order of what it does."""

    def __init__(self, code: int = WELL) -> None:
        self.generation, self.code = 7, code
        self.did: list[str] = []

    async def _send_req(self, request: Any) -> Any:
        self.did.append(type(request).__name__)
        return SimpleNamespace(error_code=self.code)

    async def _do_heartbeat(self) -> None:
        await self._send_req(HeartbeatRequest("g", self.generation, "m"))

    def _start_heartbeat_task(self) -> None:
        self.did.append("heartbeats")

    async def _on_join_complete(self, *generation: Any) -> None:
        self.did.append("assigned")


@pytest.fixture
def following(member: Member, monkeypatch: pytest.MonkeyPatch) -> Coordinator:
    monkeypatch.setattr(faust_bridge, "now", lambda: member.now)
    coordinator = Coordinator()
    renew_by_heartbeats(coordinator, member.lease)
    return coordinator


async def test_heartbeats_begin_before_partitions_are_taken_over_since_a_take_over_writes(
    member: Member, following: Coordinator
) -> None:
    await following._on_join_complete(7, "m", "p", b"")

    assert following.did == ["heartbeats", "HeartbeatRequest", "assigned"]
    assert member.lease.right(7) is Right.HOLDS


@pytest.mark.parametrize(("code", "right"), [(REBALANCES, Right.HOLDS), (UNKNOWN, Right.WAITS)])
async def test_a_heartbeat_that_calls_for_a_join_renews_and_one_of_an_unknown_member_does_not(
    member: Member, following: Coordinator, code: int, right: Right
) -> None:
    await following._do_heartbeat()
    member.now, following.code = 104.0, code
    await following._do_heartbeat()
    member.now = 106.0

    assert member.lease.right(7) is right


async def test_a_generation_whose_first_heartbeat_calls_for_a_join_has_half_the_rebalance_timeout_to_write(
    member: Member, following: Coordinator
) -> None:
    await following._send_req(SyncGroupRequest("g", 7, "m", None, []))
    for moment in (101.0, 104.0, 107.0):
        member.now, following.code = moment, REBALANCES
        await following._do_heartbeat()

    assert member.lease.right(7) is Right.HOLDS
    member.now = 115.0
    assert member.lease.right(7) is Right.WAITS


async def test_a_join_suspends_the_lease_and_a_new_generation_ends_it(member: Member, following: Coordinator) -> None:
    await following._do_heartbeat()
    await following._send_req(JoinGroupRequest("g", 10, 10, "m", None, "consumer", []))
    assert member.lease.right(7) is Right.WAITS

    following.generation = 8

    assert member.lease.right(7) is Right.OVER
    assert member.lease.term == 8
