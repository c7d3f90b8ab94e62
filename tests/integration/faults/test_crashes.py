"""The whole service killed, frozen, joined and left under load: afterwards everything it said follows from its logs."""

import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from stream_peer.events import topics
from stream_peer.kafka.worker.state_writer import BETWEEN_ENTRIES_AND_HEAD
from stream_peer.tools.replay.feed_log_reader import replay_from_log
from tests.integration.support.client import KafkaClient
from tests.integration.support.load import FEEDS, Load
from tests.integration.support.recount import Recount
from tests.integration.support.service import SECRET, Service, Shape, Worker, service
from tests.integration.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.real_kafka]

SESSION = 6.0
RESTLESS = {
    "session": SESSION,
    "rebalance_timeout": 8,
    "feeds": {"red": {"round_every": "2h"}, "green": {"round_every": "3h", "quorum": 4}},
}


class Pod:
    """A worker that is killed again and again and comes back under its name at once.

    Of every three deaths one is where its state is half written: between entries and head.
    """

    def __init__(self, deployment: Service, name: str, seed: int) -> None:
        self._deployment = deployment
        self._name = name
        self._choose = random.Random(seed)
        self.deaths = Counter[bool]()

    @property
    def worker(self) -> Worker:
        """The process of this life."""
        return self._deployment.workers[self._name]

    def start(self, fault: str = "") -> None:
        """Begin a life, which the fault may end."""
        environment = {"STREAM_PEER_FAULT": fault} if fault else {}
        self._deployment.start(self._name, STREAM_PEER_INSTANCE=self._name, **environment)

    def die(self, times: int) -> None:
        """Live and die so often; the last life is left."""
        for life in range(times):
            half_written = life % 3 == 2
            self.start(f"{BETWEEN_ENTRIES_AND_HEAD}:{self._choose.randint(1, 6)}" if half_written else "")
            if half_written:
                code = self.worker.process.wait(60)
            else:
                self._wait_for_the_moment()
                code = self.worker.kill()
            assert code == -signal.SIGKILL, self.worker.said()
            self.deaths[half_written] += 1
        self.start()

    def _wait_for_the_moment(self) -> None:
        """The moment of death is the test's input: at work, or at any time after the start."""
        if self._choose.random() < 0.7:
            self.worker.wait_ready()
            time.sleep(self._choose.uniform(0.0, 1.0))
        else:
            time.sleep(self._choose.uniform(1.0, 5.0))


def tend(pods: Iterable[Pod]) -> None:
    """Whoever ended is started again, as a supervisor would."""
    for pod in pods:
        if pod.worker.has_ended:
            pod.start()


@pytest.mark.case("C31")
@pytest.mark.induces("20 kills -9 of two workers, of which 6 between entries and head; 1 freeze, 1 join, 1 leave")
def test_after_kills_freezes_joins_and_leaves_all_that_was_said_follows_from_the_log(
    kafka: KafkaClient, tmp_path: Path, found: Callable[[str], None]
) -> None:
    with service(kafka, tmp_path, **RESTLESS) as deployment:
        deployment.set_up("a")
        assert deployment.workers["a"].terminate() == 0
        pods = [Pod(deployment, name, seed) for seed, name in enumerate(("a", "b"))]
        with Load(deployment, seed=31, rate=200) as load, ThreadPoolExecutor(len(pods)) as pool:
            list(pool.map(lambda pod: pod.die(10), pods))
            guest = deployment.start("guest").wait_ready()
            assert guest.terminate() == 0, guest.said()
            del deployment.workers["guest"]
            frozen = pods[0].worker.wait_ready()
            with frozen.frozen():
                time.sleep(2 * SESSION)  # the length of the freeze is the test's input
            assert frozen.process.wait(20) == 70, frozen.said()
            tend(pods)
        deployment.settle(90, tended=lambda: tend(pods))

        assert pods[0].deaths + pods[1].deaths == {False: 14, True: 6}
        assert load.sent > 3_000
        recount = checked(deployment)
        assert recount.repeats > 0  # else nobody died at work
        comparison = replay_from_log(deployment.settings, FEEDS[0], secret=SECRET.encode())
        assert comparison.is_equal, comparison
        assert comparison.equal > 0
        found(f"{load.sent} events, none lost, none doubled, none different; {recount.repeats} repeats, byte-equal")


@pytest.mark.faults
@pytest.mark.induces("3 times all of 3 workers killed at once, half of the events malformed")
def test_after_all_workers_are_killed_at_once_among_malformed_events_all_that_was_said_follows_from_the_log(
    kafka: KafkaClient, tmp_path: Path, found: Callable[[str], None]
) -> None:
    choose = random.Random(33)
    with service(kafka, tmp_path, **RESTLESS) as deployment:
        pods = three(deployment)
        with Load(deployment, seed=33, rate=200, malformed=0.5) as load:
            for _ in range(3):
                for pod in pods:
                    pod.worker.wait_ready()
                time.sleep(choose.uniform(0.0, 1.0))  # the moment of death is the test's input
                assert {pod.worker.kill() for pod in pods} == {-signal.SIGKILL}
                tend(pods)
        deployment.settle(90, tended=lambda: tend(pods))

        recount = checked(deployment)
        assert len(deployment.dead_letters()) > load.sent / 3
        found(f"{load.sent} events, none lost, none doubled, none different; {recount.repeats} repeats, byte-equal")


@pytest.mark.faults
@pytest.mark.induces("3 workers, each killed twice at work and then while it joins")
def test_after_workers_are_killed_while_they_join_all_that_was_said_follows_from_the_log(
    kafka: KafkaClient, tmp_path: Path, found: Callable[[str], None]
) -> None:
    choose = random.Random(34)
    with service(kafka, tmp_path, **RESTLESS) as deployment:
        pods = three(deployment)
        with Load(deployment, seed=34, rate=200) as load:
            for pod in (*pods, *pods):
                pod.worker.wait_ready().kill()
                pod.start()
                wait_until(lambda pod=pod: "worker_starts" in pod.worker.said(), 30, deployment.logs)  # type: ignore[misc]
                time.sleep(choose.uniform(0.5, 3.0))  # the moment of death is the test's input
                pod.worker.kill()
                tend(pods)
        deployment.settle(90, tended=lambda: tend(pods))

        recount = checked(deployment)
        found(f"{load.sent} events, none lost, none doubled, none different; {recount.repeats} repeats, byte-equal")


@pytest.mark.faults
@pytest.mark.induces("30 kills -9 of three workers on eight partitions, of which 9 between entries and head")
def test_after_thirty_kills_of_three_workers_on_eight_partitions_replay_of_each_feed_is_what_was_said(
    kafka: KafkaClient, tmp_path: Path, found: Callable[[str], None]
) -> None:
    with service(kafka, tmp_path, shape=Shape(8, 2), **RESTLESS) as deployment:
        deployment.set_up("a")
        assert deployment.workers["a"].terminate() == 0
        pods = [Pod(deployment, name, seed) for seed, name in enumerate("abc", 35)]
        with Load(deployment, seed=35, rate=200) as load, ThreadPoolExecutor(len(pods)) as pool:
            list(pool.map(lambda pod: pod.die(10), pods))
        deployment.settle(90, tended=lambda: tend(pods))

        assert sum((pod.deaths for pod in pods), Counter()) == {False: 21, True: 9}
        recount = checked(deployment)
        replays = {feed: replay_from_log(deployment.settings, feed, secret=SECRET.encode()) for feed in FEEDS}
        assert all(replay.is_equal and replay.equal > 0 for replay in replays.values()), replays
        equal = ", ".join(f"{feed} {replay.equal}" for feed, replay in replays.items())
        found(f"{load.sent} events; {recount.repeats} repeats, byte-equal; equal in replay: {equal}")


def three(deployment: Service) -> list[Pod]:
    """Three workers of a new deployment, ready."""
    deployment.set_up("a", STREAM_PEER_INSTANCE="a")
    pods = [Pod(deployment, name, seed) for seed, name in enumerate(("a", "b", "c"))]
    for pod in pods[1:]:
        pod.start()
    for pod in pods:
        pod.worker.wait_ready()
    return pods


def checked(deployment: Service) -> Recount:
    """All workers stop cleanly, and all that was said follows from the log."""
    assert {worker.wait_ready().terminate() for worker in deployment.workers.values()} == {0}, deployment.logs()
    recount = Recount(deployment)
    recount.check()
    return recount


@pytest.mark.case("C38")
@pytest.mark.induces("SIGTERM under load")
def test_a_worker_told_to_stop_under_load_leaves_in_time_and_commits_what_it_did(
    kafka: KafkaClient, tmp_path: Path, repository: Path
) -> None:
    with service(kafka, tmp_path, **RESTLESS) as deployment:
        worker = deployment.set_up().workers["w1"].wait_ready()
        with Load(deployment, seed=38, rate=400):
            deployment.wait_committed(500)
            asked = time.monotonic()
            code = worker.terminate()
            took = time.monotonic() - asked
            committed = deployment.committed("question", topics.FORECAST_EVENTS)
            covered = deployment.covered("question")
            deployment.start()
        deployment.settle()

        assert code == 0, worker.said()
        assert took < deployment.settings.shutdown_deadline < grace_period(repository)
        assert committed == covered
        assert sum(committed.values()) >= 500
        recount = Recount(deployment)
        recount.check()
        assert recount.repeats == 0
        comparison = replay_from_log(deployment.settings, FEEDS[0], secret=SECRET.encode())
        assert comparison.is_equal, comparison


def grace_period(repository: Path) -> float:
    """How long the chart lets a pod live after SIGTERM, in seconds."""
    values = yaml.safe_load((repository / "helm/stream-peer/values.yaml").read_text())
    return float(values["terminationGracePeriodSeconds"])
