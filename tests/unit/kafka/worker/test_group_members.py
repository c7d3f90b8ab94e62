"""What the members of another group were told, as the brokers keep it."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.errors import KafkaConnectionError
from faust.assignor.client_assignment import ClientAssignment, ClientMetadata
from faust.assignor.partition_assignor import PartitionAssignor

from stream_peer.kafka.worker import faust_bridge
from stream_peer.kafka.worker.faust_bridge import owners_of
from stream_peer.kafka.worker.feed_owners import GroupMembers
from tests.unit.clock import Clock


def assigned(url: str, **partitions: list[int]) -> bytes:
    """What Faust's assignor has the brokers give a member."""
    named = {name.replace("_", "-"): places for name, places in partitions.items()}
    told = ClientMetadata(ClientAssignment(named, {}), url, {}, {}, {})
    compressed = PartitionAssignor._compress(told.dumps())
    assignment = ConsumerProtocolMemberAssignment(PartitionAssignor.version.fget(None), [*named.items()], compressed)
    return bytes(assignment.encode())


class Brokers:
    """An admin client of brokers that a test decides."""

    def __init__(self) -> None:
        self.state, self.members = "Stable", [assigned("http://a:1", feed_log=[0])]
        self.fault: Exception | None = None
        self.asked = self.open = 0

    def __call__(self, **options: Any) -> "Brokers":
        assert options == {"bootstrap_servers": "b"}
        return self

    async def start(self) -> None:
        self.open += 1
        if self.fault is not None:
            raise self.fault

    async def close(self) -> None:
        self.open -= 1

    async def describe_consumer_groups(self, groups: list[str]) -> list[Any]:
        self.asked += 1
        members = [("id", "client", "host", b"", member) for member in self.members]
        return [SimpleNamespace(groups=[(0, groups[0], self.state, "consumer", "faust", members, 0)])]


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    made = Brokers()
    monkeypatch.setattr(faust_bridge, "AIOKafkaAdminClient", made)
    return made


def asking(clock: Clock) -> GroupMembers:
    return GroupMembers({"bootstrap_servers": "b"}, "acme-feed", "feed-log", clock)


def test_each_partition_is_at_the_address_of_its_owner_even_if_two_have_the_same() -> None:
    members = [
        assigned("http://a:1", feed_log=[0, 2], control_events=[0, 1]),
        assigned("http://b:1", feed_log=[1]),
        assigned("http://b:1", feed_log=[3], feed_state_changelog=[3]),
        assigned("http://idle:1"),
    ]

    assert dict(owners_of(members, "feed-log")) == {
        0: "http://a:1",
        1: "http://b:1",
        2: "http://a:1",
        3: "http://b:1",
    }


async def test_many_who_ask_at_once_ask_the_brokers_once_and_again_after_a_while(brokers: Brokers) -> None:
    clock = Clock()
    members = asking(clock)

    first = await asyncio.gather(*(members.owners() for _ in range(5)))
    brokers.members = [assigned("http://b:1", feed_log=[0])]
    clock.at += 1.9
    kept = await members.owners()
    clock.at += 0.2
    newer = await members.owners()

    assert [*first, kept] == [{0: "http://a:1"}] * 6
    assert newer == {0: "http://b:1"}
    assert (brokers.asked, brokers.open) == (2, 0)


async def test_while_partitions_are_handed_out_nobody_is_named(brokers: Brokers) -> None:
    brokers.state = "PreparingRebalance"

    assert await asking(Clock()).owners() == {}


@pytest.mark.parametrize("fault", [KafkaConnectionError(), ConnectionRefusedError(), TimeoutError()])
async def test_brokers_that_do_not_answer_name_nobody(brokers: Brokers, fault: Exception) -> None:
    brokers.fault = fault

    assert await asking(Clock()).owners() == {}
    assert brokers.open == 0
