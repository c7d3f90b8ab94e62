"""The answers to an orchestrator's probes."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from stream_peer.kafka.worker.health import Health
from stream_peer.kafka.worker.heartbeats import Deadlines, Heartbeats
from stream_peer.kafka.worker.long_work import RebuildProgress
from stream_peer.kafka.worker.ownership import RunningApp
from stream_peer.kafka.worker.port import TopicPartition
from tests.unit.clock import Clock
from tests.unit.kafka.worker.fakes import FakeMember


def app(
    *,
    assigned: int = 2,
    owned: int = 2,
    rebalancing: bool = False,
    joined: int = 1,
    rebuilds: Sequence[RebuildProgress] = (),
    is_member: bool = True,
    waiting: float | None = None,
) -> Any:
    rebuilding: list[RebuildProgress | None] = [None, *rebuilds]
    partitions = [
        SimpleNamespace(rebuilding=each, counting=False, waiting=waiting, tp=TopicPartition("feed-log", n))
        for n, each in enumerate(rebuilding)
    ]
    partitions += [SimpleNamespace(rebuilding=None, counting=False, waiting=None)] * (owned - len(partitions))
    places = {TopicPartition("forecast-events", n) for n in range(assigned)}
    member = FakeMember(rebalances=joined, rebalancing=rebalancing, is_member=is_member, assigned=places)
    ownership: Any = SimpleNamespace(inputs_among=len, partitions=lambda: partitions)
    return RunningApp(member, ownership)


def health_of(worker: Any) -> tuple[Health, Clock, Heartbeats]:
    clock = Clock()
    heartbeats = Heartbeats(Deadlines(silence=4.0, shutdown=8.0, broker=20.0), clock)
    health = Health()
    health.attach(heartbeats, [worker])
    return health, clock, heartbeats


def test_who_waits_for_an_open_transaction_is_alive_and_ready_and_says_so_unless_it_is_an_ordinary_one() -> None:
    ordinary, long = health_of(app(waiting=4.9))[0], health_of(app(waiting=61.2))[0]

    assert ordinary.live() == ordinary.ready() == (True, "")
    assert long.live() == long.ready() == (True, "feed-log-0 is waiting-for-transaction, for 61 s")


def test_a_worker_that_is_being_built_lives_and_is_not_ready() -> None:
    health = Health()

    assert health.live() == (True, "starting")
    assert health.ready() == (False, "starting")
    assert health.started() == (False, "starting")


def test_a_worker_that_owns_what_it_was_assigned_is_ready_even_if_that_is_nothing() -> None:
    assert health_of(app())[0].ready() == (True, "")
    assert health_of(app(assigned=0, owned=0))[0].ready() == (True, "")


def test_a_worker_whose_brokers_are_away_lives_and_is_not_ready_until_they_answer() -> None:
    health, clock, heartbeats = health_of(app())

    clock.at += 12
    heartbeats.beat()
    away = health.live(), health.ready()
    heartbeats.broker_answered()

    assert away == ((True, ""), (False, "no broker has answered for 12 s"))
    assert health.ready() == (True, "")


def test_a_worker_whose_topics_changed_says_what_to_do_and_is_not_ready() -> None:
    _, _, heartbeats = health_of(app())
    health = Health(lambda: "weights is missing: run `stream-peer topics apply`")
    health.attach(heartbeats, [app()])

    assert health.ready() == (False, "weights is missing: run `stream-peer topics apply`")
    assert health.live() == (True, "")


def test_a_worker_whose_write_is_not_acknowledged_is_not_ready() -> None:
    health, clock, heartbeats = health_of(app())

    with heartbeats.writing():
        clock.at += 12
        heartbeats.broker_answered()
        waiting = health.ready()

    assert (waiting, health.ready()) == ((False, "a write has not been acknowledged for 12 s"), (True, ""))


def test_a_worker_that_recovers_or_waits_says_so() -> None:
    recovering, _, _ = health_of(app(owned=1))
    waiting, _, _ = health_of(app(rebalancing=True))
    silent, _, _ = health_of(app(assigned=0, owned=0, joined=0))

    assert recovering.ready() == (False, "acme-feed recovers 1 of 2 partitions")
    assert silent.ready() == (False, "acme-feed waits for its partitions")
    assert waiting.ready() == (False, "acme-feed waits for its partitions")


def test_a_worker_that_was_expelled_from_its_group_is_not_ready() -> None:
    assert health_of(app(is_member=False))[0].ready() == (False, "acme-feed is not in its group any more")


def test_a_worker_that_folds_a_log_anew_is_not_ready_says_how_far_it_is_and_lives() -> None:
    health, _, _ = health_of(app(rebuilds=[RebuildProgress(12, 200), RebuildProgress(0, 0)]))

    ready, reason = health.ready()

    assert not ready
    assert reason.split("; ") == [
        "acme-feed rebuilds feed-log-1: 12 of 200 records",
        "acme-feed rebuilds feed-log-2: waits for its turn",
    ]
    assert health.live() == (True, "")


def test_a_worker_whose_stage_still_counts_what_it_loaded_is_not_ready() -> None:
    worker = app()
    next(iter(worker.ownership.partitions())).counting = True

    assert health_of(worker)[0].ready() == (False, "acme-feed counts what feed-log-0 knows")


def test_a_rebuild_at_the_start_does_not_count_as_starting() -> None:
    """However long it takes: an orchestrator that ended the worker would make it begin anew."""
    health, _, _ = health_of(app(rebuilds=[RebuildProgress(12, 200)]))

    assert health.started() == (True, "")


def test_once_started_a_rebalance_does_not_undo_it() -> None:
    worker = app()
    health, _, _ = health_of(worker)
    health.ready()

    worker.member.rebalancing = True

    assert health.started() == (True, "")


def test_a_stopping_worker_is_not_ready_and_still_lives() -> None:
    health, _, heartbeats = health_of(app())

    heartbeats.stopping()

    assert health.ready() == (False, "stopping")
    assert health.live() == (True, "")


def test_a_blocked_loop_or_work_that_stands_still_is_not_alive() -> None:
    blocked, clock, heartbeats = health_of(app())
    heartbeats.progress("question 3", 1, 10.0)

    clock.at += 2.1
    silent = blocked.live()
    heartbeats.beat()
    clock.at += 1.0
    heartbeats.broker_answered()
    fine = blocked.live()
    heartbeats.beat()
    clock.at += 1.9
    heartbeats.beat()
    clock.at += 0.5

    assert silent == (False, "the event loop is blocked for 2.1 s")
    assert fine == (True, "")
    assert blocked.live() == (False, "question 3 stands still")
