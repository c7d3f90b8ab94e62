"""With which version of the method settings are applied, by what the workers that run serve."""

import time
from typing import Any

import pytest
from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata
from faust.assignor.client_assignment import ClientMetadata
from faust.assignor.partition_assignor import PartitionAssignor

from stream_peer.errors import EarlierWorkersError, NotAuthorisedError
from stream_peer.kafka.client import method_in_force
from stream_peer.kafka.client.method_in_force import as_applied, newest_served, to_apply, with_served
from stream_peer.kafka.worker.faust_bridge import Assignor
from stream_peer.settings.feed.model import NEWEST_METHOD
from stream_peer.settings.process import Settings
from tests.unit.kafka.worker.test_assignor import assignor

SETTINGS = Settings(bootstrap="kafka:1", prefix="acme-")
FIRST, SECOND = {"defaults": {"method_version": 1}}, {"defaults": {"method_version": 2}}


def member(user_data: bytes) -> bytes:
    encoded: bytes = ConsumerProtocolMemberMetadata(2, ["feed-log"], user_data).encode()
    return encoded


EARLIER = member(b'{"url": "http://a"}')
OURS = member(with_served(b'{"url": "http://a"}'))


class Groups:
    """What the brokers tell of the members, one answer after the other; the last one stays."""

    def __init__(self, *answers: list[bytes] | None) -> None:
        self._answers = [*answers]
        self.asked: list[list[str]] = []

    def __call__(self, _: Settings) -> "Groups":
        return self

    def members(self, groups: list[str]) -> list[bytes] | None:
        self.asked.append(groups)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that were slept, on a clock that goes by them alone."""
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr(time, "monotonic", lambda: sum(slept))
    return slept


def run(monkeypatch: pytest.MonkeyPatch, *answers: list[bytes] | None) -> Groups:
    groups = Groups(*answers)
    monkeypatch.setattr(method_in_force, "KafkaAdmin", groups)
    return groups


def test_a_worker_tells_its_group_what_it_serves_and_faust_reads_all_else_of_it() -> None:
    ours, former = (assignor(kind).metadata({"feed-log"}) for kind in (Assignor, PartitionAssignor))

    assert (newest_served(ours.encode()), newest_served(former.encode())) == (NEWEST_METHOD, 1)
    read = [ClientMetadata.loads(told.user_data) for told in (ours, former)]
    assert len({(metadata.url, metadata.dumps()) for metadata in read}) == 1


@pytest.mark.parametrize("metadata", [b"", b"\0", member(b"no JSON"), member(b"[]"), member(b'{"method": "new"}')])
def test_a_member_that_tells_nothing_of_the_method_serves_the_first_version(metadata: bytes) -> None:
    assert newest_served(metadata) == 1


@pytest.mark.parametrize("members", [[], [OURS, OURS]])
@pytest.mark.parametrize("in_force", [None, {}, FIRST])
def test_settings_get_the_newest_version_where_no_earlier_worker_runs(
    monkeypatch: pytest.MonkeyPatch, members: list[bytes], in_force: Any
) -> None:
    groups = run(monkeypatch, members)

    assert to_apply(SETTINGS, {"defaults": {"loss": "log"}}, in_force, 0.0) == (
        {"defaults": {"method_version": 2, "loss": "log"}},
        None,
    )
    assert groups.asked == [["acme-stream-peer-question", "acme-stream-peer-feed"]]


@pytest.mark.parametrize(("in_force", "kept"), [(None, {}), (FIRST, {}), (SECOND, SECOND)])
def test_the_version_in_force_stays_while_an_earlier_worker_runs(
    monkeypatch: pytest.MonkeyPatch, waited: list[float], in_force: Any, kept: Any
) -> None:
    run(monkeypatch, [OURS, EARLIER])

    document, why_not = to_apply(SETTINGS, {}, in_force, 0.0)

    assert document == kept
    said = "1 of 2 members of the groups are of a release that does not serve version 2: feeds stay at version 1"
    assert why_not == (None if in_force is SECOND else said)
    assert not waited


def test_it_can_be_waited_until_no_earlier_worker_runs(monkeypatch: pytest.MonkeyPatch, waited: list[float]) -> None:
    run(monkeypatch, [EARLIER], None, [OURS, EARLIER], [OURS])

    assert to_apply(SETTINGS, {}, None, 60.0) == (SECOND, None)
    assert len(waited) == 3


def test_groups_whose_members_come_and_go_are_waited_for_and_not_for_ever(
    monkeypatch: pytest.MonkeyPatch, waited: list[float]
) -> None:
    run(monkeypatch, None)

    document, why_not = to_apply(SETTINGS, {}, None, 0.0)

    assert document == {}
    assert why_not is not None
    assert why_not.startswith("workers come or go")
    assert sum(waited) == 10.0


def test_a_version_that_the_document_states_is_not_applied_against_an_earlier_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run(monkeypatch, [EARLIER])
    of_one_feed = {"feeds": {"econ": {"method_version": 2}}}

    for document in (SECOND, of_one_feed):
        with pytest.raises(EarlierWorkersError, match="does not serve version 2: nothing was applied") as refused:
            to_apply(SETTINGS, document, None, 0.0)
        assert refused.value.exit_code == 69
    assert to_apply(SETTINGS, FIRST, None, 0.0) == (FIRST, None)


@pytest.mark.parametrize(("in_force", "of_all"), [(None, {}), (FIRST, {}), (SECOND, SECOND)])
def test_a_version_that_one_feed_states_does_not_raise_that_of_the_others_against_an_earlier_worker(
    monkeypatch: pytest.MonkeyPatch, in_force: Any, of_all: Any
) -> None:
    of_one_feed = {"feeds": {"econ": {"method_version": 1}}}
    groups = run(monkeypatch, [OURS, EARLIER])

    document, why_not = to_apply(SETTINGS, of_one_feed, in_force, 0.0)

    assert document == {**of_one_feed, **of_all}
    assert (why_not is None) == (not groups.asked) == (in_force is SECOND)
    run(monkeypatch, [OURS])
    assert to_apply(SETTINGS, of_one_feed, in_force, 0.0) == ({**of_one_feed, **SECOND}, None)


def test_who_may_not_see_the_groups_leaves_the_version_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refused(Groups):
        def members(self, groups: list[str]) -> list[bytes] | None:
            raise NotAuthorisedError(str(groups))

    monkeypatch.setattr(method_in_force, "KafkaAdmin", Refused())

    document, why_not = to_apply(SETTINGS, {}, None, 0.0)

    assert document == {}
    assert why_not is not None
    assert "acme-stream-peer-" in why_not


def test_a_file_that_states_no_version_does_not_differ_from_what_was_applied_of_it() -> None:
    assert as_applied({}, SECOND) == SECOND
    assert as_applied(FIRST, SECOND) == FIRST
    assert as_applied({"feeds": {}}, {}) == {"feeds": {}}
