"""Who owns a feed, as the group's leader told all members."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from stream_peer.events.partitioning import partition_of
from stream_peer.kafka.worker.feed_owners import FeedOwners, GroupMembers
from stream_peer.kafka.worker.ownership import RunningApp
from stream_peer.kafka.worker.port import TopicPartition
from stream_peer.kafka.worker.process import now
from stream_peer.kafka.worker.worker import StageMakers, make_apps
from stream_peer.log.owners import Elsewhere, Here, Unknown
from stream_peer.settings.process import Http, Settings
from tests.unit.kafka.worker.fakes import FakeMember, FakeProducer, SumStage, surroundings

OURS, THEIRS = "http://worker-0:8080", "http://worker-1:8080"
PARTITIONS = 4
FEED = "econ"
PLACE = partition_of(FEED, PARTITIONS)


def group(
    owned: dict[int, Any] | None = None,
    members: dict[str, list[int]] | None = None,
    *,
    rebalancing: bool = False,
    joined: int = 1,
    assigned: Sequence[int] = (PLACE,),
) -> FeedOwners:
    """Owners as a worker sees them that owns some partitions, in a group whose members own some."""
    places = [TopicPartition("acme-feed-log", number) for number in assigned]
    member = FakeMember(rebalances=joined, rebalancing=rebalancing, assigned=places)
    member.told = members or {}
    ownership: Any = SimpleNamespace(owned=lambda tp: (owned or {}).get(tp.partition))
    app = RunningApp(member, ownership)
    owners = FeedOwners()
    owners.attach(Settings(prefix="acme-"), app, PARTITIONS, now)
    return owners


def partition(*, counting: bool = False, rebuilding: object = None) -> Any:
    return SimpleNamespace(counting=counting, rebuilding=rebuilding, stage="the stage")


async def test_what_it_owns_it_answers_from() -> None:
    assert await group({PLACE: partition()}, {THEIRS: [PLACE]}).of(FEED) == Here("the stage")  # type: ignore[arg-type]


@pytest.mark.parametrize("unready", [partition(counting=True), partition(rebuilding=(3, 10))])
async def test_what_is_being_folded_anew_is_not_answered_from(unready: Any) -> None:
    assert await group({PLACE: unready}).of(FEED) == Unknown("the feed is being rebuilt")


async def test_what_another_owns_is_at_its_address() -> None:
    others = [number for number in range(PARTITIONS) if number != PLACE]

    assert await group({}, {OURS: others, THEIRS: [PLACE]}).of(FEED) == Elsewhere(THEIRS)


@pytest.mark.parametrize("owners", [group({}, {THEIRS: [PLACE]}, rebalancing=True), group({}, {}, joined=0)])
async def test_in_a_rebalance_nobody_is_named(owners: FeedOwners) -> None:
    assert await owners.of(FEED) == Unknown("partitions are being reassigned")


async def test_nobody_is_ever_sent_to_this_worker_itself() -> None:
    found = await group({}, {OURS: [PLACE]}).of(FEED)

    assert found == Unknown("the worker that owns the feed is still recovering it")


@pytest.mark.parametrize("owned", [[PLACE], [number for number in range(PARTITIONS) if number != PLACE]])
async def test_an_address_that_several_advertise_hides_some_of_them(owned: list[int]) -> None:
    found = await group({}, {OURS: owned}, assigned=()).of(FEED)

    assert isinstance(found, Unknown)
    assert "http.advertise" in found.reason


async def test_before_it_is_built_a_worker_knows_nobody() -> None:
    assert await FeedOwners().of(FEED) == Unknown("the worker is starting")


async def test_a_worker_that_folds_no_feeds_asks_what_those_who_do_were_told(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[GroupMembers] = []

    async def owners_of_group(self: GroupMembers) -> dict[int, str]:
        asked.append(self)
        return {PLACE: THEIRS} if len(asked) == 1 else {}

    monkeypatch.setattr(GroupMembers, "owners", owners_of_group)
    owners = FeedOwners()
    owners.attach(Settings(stage="question"), None, PARTITIONS, now)

    assert await owners.of(FEED) == Elsewhere(THEIRS)
    assert await owners.of(FEED) == Unknown("no worker is known to own the feed")


async def test_both_apps_tell_their_groups_the_advertised_address() -> None:
    settings, around = Settings(http=Http(advertise=THEIRS)), surroundings(FakeProducer())[0]

    apps = make_apps(settings, around, StageMakers(*[lambda _: SumStage()] * 3))

    assert [app.member.address for app in apps] == [THEIRS, THEIRS]
    assert [app.ownership.has_stage("feed") for app in apps] == [False, True]
