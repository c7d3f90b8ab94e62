"""The whole service killed, frozen, joined and left under load: afterwards everything it said follows from its logs."""

import random
import signal
import time
from pathlib import Path

import pytest

from stream_peer.adapters.feed_log_reader import replay_from_log
from stream_peer.events import topics
from stream_peer.topology.partition import BETWEEN_ENTRIES_AND_HEAD
from tests.integration.support.client import KafkaClient
from tests.integration.support.load import FEEDS, Load
from tests.integration.support.recount import Recount
from tests.integration.support.service import SECRET, Service, service

pytestmark = [pytest.mark.slow, pytest.mark.real_kafka]

SESSION = 6.0
RESTLESS = {
    "session": SESSION,
    "rebalance_timeout": 8,
    "batch_deadline": 2.9,
    "feeds": {"red": {"round_every": "2h"}, "green": {"round_every": "3h", "quorum": 4}},
}


class Chaos:
    """Kills workers as fast as they come back."""

    def __init__(self, deployment: Service, seed: int) -> None:
        self.deployment = deployment
        self.choose = random.Random(seed)
        self.kills = 0
        self.at_fault_point = 0

    def start(self, name: str, fault: str = "") -> None:
        """Start a worker as a pod that comes back under its name."""
        environment = {"STREAM_PEER_FAULT": fault} if fault else {}
        self.deployment.start(name, STREAM_PEER_INSTANCE=name, **environment)

    def tend(self) -> None:
        """Whoever ended is started again, as a supervisor would."""
        for name, worker in self.deployment.workers.items():
            if worker.has_ended:
                self.start(name)

    def kill(self, name: str) -> None:
        """At a random moment after the start, or while it serves."""
        worker = self.deployment.workers[name]
        if self.choose.random() < 0.7:
            worker.wait_ready()
        time.sleep(self.choose.uniform(0.0, 1.5))  # the moment of death is the test's input, nothing is waited for
        assert worker.kill() == -signal.SIGKILL, worker.said()
        self.kills += 1

    def kill_between_entries_and_head(self, name: str) -> None:
        """Where the state is half written."""
        worker = self.deployment.workers[name]
        worker.kill()
        self.start(name, f"{BETWEEN_ENTRIES_AND_HEAD}:{self.choose.randint(1, 6)}")
        worker = self.deployment.workers[name]
        assert worker.process.wait(60) == -signal.SIGKILL, worker.said()
        self.kills += 1
        self.at_fault_point += 1


@pytest.mark.case("C31")
def test_after_kills_freezes_joins_and_leaves_all_that_was_said_follows_from_the_log(
    kafka: KafkaClient, tmp_path: Path
) -> None:
    with service(kafka, tmp_path, **RESTLESS) as deployment:
        deployment.set_up("a", STREAM_PEER_INSTANCE="a")
        chaos = Chaos(deployment, seed=31)
        with Load(deployment, seed=31, rate=150) as load:
            chaos.start("b")
            for number in range(20):
                name = "ab"[number % 2]
                if number % 4 == 3:
                    chaos.kill_between_entries_and_head(name)
                else:
                    chaos.kill(name)
                chaos.tend()
            guest = deployment.start("guest").wait_ready()
            frozen = deployment.workers["a"].wait_ready()
            with frozen.frozen():
                time.sleep(2 * SESSION)  # the length of the freeze is the test's input
            assert frozen.process.wait(20) == 70, frozen.said()
            chaos.tend()
            assert guest.terminate() == 0, guest.said()
            del deployment.workers["guest"]
        deployment.settle(90, tended=chaos.tend)

        assert (chaos.kills, chaos.at_fault_point) == (20, 5)
        assert load.sent > 3_000
        assert {worker.terminate() for worker in deployment.workers.values()} == {0}, deployment.logs()
        recount = Recount(deployment)
        recount.check()
        assert recount.repeats > 0  # else nobody died at work
        comparison = replay_from_log(deployment.settings, FEEDS[0], secret=SECRET.encode())
        assert comparison.is_equal, comparison
        assert comparison.equal > 0


@pytest.mark.case("C38")
def test_a_worker_told_to_stop_under_load_leaves_in_time_and_commits_what_it_did(
    kafka: KafkaClient, tmp_path: Path
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
        assert took < deployment.settings.shutdown_deadline
        assert committed == covered
        assert sum(committed.values()) >= 500
        Recount(deployment).check()
