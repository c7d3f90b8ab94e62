"""Kills, freezes, rebalances and lost fetches: nothing is lost, nothing is counted twice, repeats are byte-equal.

Counting stages take the place of the product's, so that every single record shows; everything else is the worker as it
is. ``exact`` means: every input has its output, all outputs equal the recomputed bytes, the state in the changelog is
right for every key, and the group's offsets are at the end of the log.
"""

import json
import random
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.integration.support.brokers import Rung, RunningBroker
from tests.integration.support.client import KafkaClient
from tests.integration.support.counting import Counting, counting
from tests.integration.support.kafka_broker import KafkaBroker
from tests.integration.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.real_kafka, pytest.mark.case("C31")]

Deploy = Callable[..., Counting]
Exact = Callable[[Counting], None]
ALWAYS = "between-entries-and-head:1"


@pytest.fixture
def deploy(kafka: KafkaClient, topic_prefix: str, tmp_path: Path) -> Iterator[Deploy]:
    """Make a counting deployment on the broker of this run."""
    made: list[Counting] = []

    def make(**options: Any) -> Counting:
        made.append(Counting(kafka, topic_prefix, tmp_path, **options))
        return made[-1]

    yield make
    for each in made:
        each.kill()


def folds(run: Counting, least: int) -> None:
    """Wait until the worker has committed so much."""

    def committed() -> bool:
        topic = run.settings.topic("forecast-events")
        return sum(run.kafka.committed(run.settings.app_id("question"), topic).values()) >= least

    wait_until(committed, 40, f"{least} records were never committed", every=0.2)


@pytest.mark.induces("10 kills -9, of which 3 between entries and head")
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.faults)])
def test_ten_kills_three_of_them_between_entries_and_head_lose_and_double_nothing(
    deploy: Deploy, assert_exact: Exact, seed: int
) -> None:
    run = deploy(instance="pod-0")
    choose = random.Random(seed)
    run.feed(300)

    for life in range(10):
        at_the_fault_point = life % 3 == 2
        worker = run.start(fault=ALWAYS if at_the_fault_point else "")
        if at_the_fault_point:
            worker.process.wait(30)
        else:
            time.sleep(choose.uniform(0.5, 4.0))  # the moment of death is the test's input, nothing is waited for
            worker.kill()
    run.start()
    run.drain()

    assert run.stop() == [0]
    assert_exact(run)


@pytest.mark.faults
@pytest.mark.induces("3 workers join, 1 leaves, 1 is killed")
def test_workers_that_join_and_leave_hand_over_exactly(deploy: Deploy, assert_exact: Exact) -> None:
    run = deploy(stage="all")
    run.feed(400)
    run.start("w1").wait_owned()
    run.start("w2").wait_owned()

    left = run.workers.pop("w1").end(signal.SIGTERM)
    run.start("w3").wait_owned()
    run.workers.pop("w2").end(signal.SIGKILL)
    run.drain()

    assert left == 0
    assert run.stop() == [0]
    assert_exact(run)


@pytest.mark.induces("1 freeze of two sessions")
@pytest.mark.parametrize(
    "environment",
    [pytest.param({}, id="watchdog"), pytest.param({"COUNTING_ZOMBIE": "1"}, id="zombie", marks=pytest.mark.faults)],
)
def test_a_worker_frozen_for_twice_its_session_harms_nothing(
    deploy: Deploy, assert_exact: Exact, environment: dict[str, str]
) -> None:
    run = deploy()
    run.feed(350)
    frozen = run.start("w1", environment=environment).wait_owned()
    run.start("w2", environment=environment).wait_owned()
    folds(run, 500)

    frozen.send(signal.SIGSTOP)
    time.sleep(2 * run.settings.session)  # the length of the freeze is the test's input
    frozen.send(signal.SIGCONT)

    if not environment:
        assert frozen.process.wait(5) == 70
        assert "frozen" in frozen.said()
    run.drain()
    assert set(run.stop()) == {0}
    assert_exact(run)


@pytest.mark.faults
@pytest.mark.induces("a freeze with records in the producer's queue")
def test_what_a_frozen_worker_had_handed_to_its_producer_never_comes_behind_the_records_of_the_next_owner(
    deploy: Deploy, assert_exact: Exact
) -> None:
    """Without a watchdog: only the lease keeps it from sending them."""
    run = deploy()
    frozen = run.start("w1", environment={"COUNTING_ZOMBIE": "1", "COUNTING_FREEZE": "10"}).wait_owned()
    run.feed(400, 4_000)
    wait_until(frozen.is_frozen, 30, "it never stopped itself")
    run.start("w2").wait_owned()
    run.drain()

    frozen.send(signal.SIGCONT)
    wait_until(lambda: frozen.has_ended or "partition_lost" in frozen.said(), 20, frozen.said)

    run.drain()
    numbers: dict[bytes, list[int]] = {}
    for message in run.kafka.read_all(run.settings.topic("feed-log")):
        number = json.loads(message.value or b"")["state"][0]
        numbers.setdefault(message.key or b"", []).append(number)
    assert [key for key, of_key in numbers.items() if of_key[-1] != max(of_key)] == []
    assert set(run.stop()) == {0}
    assert_exact(run)


@pytest.mark.faults
@pytest.mark.induces("SIGTERM under load")
def test_sigterm_under_load_commits_everything_and_leaves_within_the_deadline(
    deploy: Deploy, assert_exact: Exact
) -> None:
    run = deploy(stage="all")
    run.feed(400)
    worker = run.start().wait_owned()
    folds(run, 300)

    code = worker.end(signal.SIGTERM, deadline=run.settings.shutdown_deadline)
    outputs = run.kafka.read_all(run.settings.topic("feed-log"))
    committed = run.kafka.committed(run.settings.app_id("question"), run.settings.topic("forecast-events"))

    reached: dict[int, int] = {}
    for partition, offset in (json.loads(message.value or b"")["src"] for message in outputs):
        reached[partition] = max(reached.get(partition, 0), offset + 1)
    assert code == 0
    assert committed == reached
    run.start()
    run.drain()
    run.stop()
    assert_exact(run)
    assert [verdict.repeated for verdict in run.verdicts()] == [0, 0]


@pytest.mark.faults
@pytest.mark.induces("every fifth fetched batch lost")
def test_batches_lost_on_the_way_are_fetched_again(deploy: Deploy, assert_exact: Exact) -> None:
    run = deploy()
    run.feed(400)

    worker = run.start(environment={"COUNTING_DROP": "0.2"}).wait_owned()
    folds(run, 3_000)
    run.drain()

    assert "input_order" in worker.said()
    assert run.stop() == [0]
    assert_exact(run)


@pytest.mark.faults
@pytest.mark.induces("transactions while every twentieth fetched batch is lost")
def test_markers_of_transactions_are_no_holes_and_no_lag(deploy: Deploy) -> None:
    run = deploy()
    worker = run.start(environment={"COUNTING_DROP": "0.05"}).wait_owned()

    run.feed(400, 2_000, transactional=True)  # while it reads: inside one fetch nobody looks for holes
    wait_until(lambda: len(run.kafka.read_all(run.settings.topic("feed-log"))) >= 2_000, 60, "outputs are missing")
    folds(run, 2_000)
    wait_until(lambda: "admitted=True" in worker.said(), 1, "no marker was recognised")

    assert run.stop() == [0]
    (verdict,) = run.verdicts()
    assert (verdict.missing, verdict.wrong, verdict.wrong_keys) == (0, 0, 0)


@pytest.mark.induces("1 broker killed and started again")
def test_a_lost_broker_ends_the_worker_and_a_restart_goes_on_exactly(
    own_kafka: Callable[[Mapping[str, str]], KafkaBroker], assert_exact: Exact, tmp_path: Path
) -> None:
    broker = own_kafka({})
    client = KafkaClient(RunningBroker(broker.bootstrap, Rung.JARS))
    with counting(client, "own-", tmp_path) as run:
        run.feed(300)
        worker = run.start().wait_owned()
        folds(run, 300)

        broker.kill()
        lost = worker.process.wait(30)
        stopped = run.start("w2")
        wait_until(lambda: "waits" in stopped.said() or not stopped.has_ended, 5, "it gave up at once")
        broker.start()
        run.start("w1")
        run.drain(90)

        assert lost == 69
        assert set(run.stop()) == {0}
        assert_exact(run)


@pytest.mark.faults
@pytest.mark.induces("1 broker killed, then SIGTERM")
def test_sigterm_with_the_broker_down_ends_within_the_deadline(
    own_kafka: Callable[[Mapping[str, str]], KafkaBroker], tmp_path: Path
) -> None:
    broker = own_kafka({})
    client = KafkaClient(RunningBroker(broker.bootstrap, Rung.JARS))
    with counting(client, "own-", tmp_path) as run:
        run.feed(300)
        worker = run.start().wait_owned()
        folds(run, 300)

        broker.kill()
        code = worker.end(signal.SIGTERM, deadline=run.settings.shutdown_deadline + 3)

        assert code == 69
