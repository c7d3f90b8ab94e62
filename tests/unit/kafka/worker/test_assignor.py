from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from faust.assignor.client_assignment import ClientAssignment, ClientMetadata
from faust.assignor.partition_assignor import PartitionAssignor
from yarl import URL

from stream_peer.kafka.worker.faust_bridge import Assignor, readdressed

HERE, FORMER, OTHER = "http://pod-0:6066", "http://10.0.0.7:6066", "http://pod-1:6066"


def told(url: str) -> ConsumerProtocolMemberAssignment:
    """Two partitions of feed-log for this member, and one for another."""
    distribution = {url: {"feed-log": [0, 1]}, OTHER: {"feed-log": [2]}}
    metadata = ClientMetadata(ClientAssignment({"feed-log": [0, 1]}, {}), url, {}, distribution, {"feed-log": 0})
    compressed = PartitionAssignor._compress(metadata.dumps())
    return ConsumerProtocolMemberAssignment(2, [("feed-log", [0, 1])], compressed)


def assignor(kind: type[PartitionAssignor]) -> Any:
    tables = SimpleNamespace(changelog_topics=set())
    return kind(SimpleNamespace(tables=tables, conf=SimpleNamespace(canonical_url=URL(HERE))))


@pytest.mark.parametrize("address", [HERE, FORMER])
def test_a_member_takes_up_what_it_had_whatever_its_address_was(address: str) -> None:
    taking = assignor(Assignor)

    taking.on_assignment(told(address))

    assert {(tp.topic, tp.partition) for tp in taking.assigned_actives()} == {("feed-log", 0), ("feed-log", 1)}
    assert taking.external_topics_metadata() == {HERE: {"feed-log": [0, 1]}, OTHER: {"feed-log": [2]}}


def test_without_us_faust_would_stop_at_another_address() -> None:
    with pytest.raises(AssertionError):
        assignor(PartitionAssignor).on_assignment(told(FORMER))


def test_what_names_todays_address_is_left_as_it_is() -> None:
    data = told(HERE).user_data

    assert readdressed(data, HERE) is data
