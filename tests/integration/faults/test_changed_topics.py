"""Topics that change while a worker runs: it is told within a minute, and the way back that is named leads back."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kafka.admin import ConfigResource, ConfigResourceType

from stream_peer.events import topics
from tests.integration.support.client import KafkaClient
from tests.integration.support.events import crowd, milliseconds, question
from tests.integration.support.service import APPLY, Service, Shape, service
from tests.integration.support.waiting import wait_until

pytestmark = [pytest.mark.real_kafka, pytest.mark.faults]


@pytest.fixture
def made(kafka: KafkaClient, tmp_path: Path) -> Iterator[Service]:
    with service(kafka, tmp_path, shape=Shape(2, 1), feeds={"econ": {}}) as started:
        started.set_up().workers["w1"].wait_ready()
        yield started


def reason(made: Service) -> str:
    """Why the worker is not ready; empty if it is. It lives in either case."""
    assert made.workers["w1"].http("/healthz/live")[0] == 200, made.logs()
    status, told = made.workers["w1"].http("/healthz/ready")
    return "" if status == 200 else str(json.loads(told)["reason"])


def told(made: Service, text: str) -> str:
    wait_until(lambda: text in reason(made), 90, lambda: f"{reason(made)}\n{made.logs()}")
    return reason(made)


def asked(made: Service, name: str, day: int) -> None:
    made.send([question(name, "econ", 24.0 * day), *crowd(name, 6, 24.0 * day - 1)])
    made.tick(milliseconds(24.0 * day + 1))
    made.settle()


@pytest.mark.induces("partitions added to forecast-events under a running worker")
def test_added_partitions_are_told_and_the_way_back_that_is_named_loses_nothing_that_was_folded(made: Service) -> None:
    forecasts = made.topic(topics.FORECAST_EVENTS)
    asked(made, "before", 1)
    with made.kafka.admin() as admin:
        admin.create_partitions({forecasts: 4})

    message = told(made, f"{forecasts} has 4 partitions, not 2")
    assert f"delete {forecasts}" in message
    assert "on_recreated: keep" in message
    assert "topics_changed" in made.workers["w1"].said()

    assert made.workers["w1"].terminate() == 0
    refused = made.start()
    assert refused.process.wait(60) == 78
    assert f"{forecasts} has 4 partitions, not 2" in refused.said()
    made.recreate(forecasts)
    made.start(STREAM_PEER_ON_RECREATED="keep").wait_ready()
    asked(made, "after", 2)
    assert set(made.last(topics.PEER_LOSSES, "econ")) == {"before", "after"}
    assert made.weights("econ")["questions"] == 2


LAST_DAY = 24.0 * 30
WATCHFUL = "compares_topics_every_second"
QUESTION_STATE, FEED_STATE = "question-changelog", "feed-changelog"
"""The order in which a test deletes inputs and states matters: a state is folded from an input that is still whole."""


def physical(made: Service, name: str) -> str:
    changelogs = {QUESTION_STATE: made.settings.changelog("question"), FEED_STATE: made.settings.changelog("feed")}
    return changelogs.get(name) or made.topic(name)


class Advice:
    """Does what the product prints, and nothing else."""

    def __init__(self, made: Service) -> None:
        self._made = made

    def follow(self, message: str) -> None:
        """Delete what is to be deleted, run the command that is named, and start with the choice that is named."""
        made, (names, command, choice) = self._made, self._read(message)
        if names:
            self._stop()
            made.reconnect()
            made.kafka.delete(*names)
        if command:
            made.run(*command)
        self._start(choice)

    def ask(self, name: str, day: int) -> None:
        """A question opens, is forecast and closes; a worker that ends meanwhile is started again, as it says."""
        self._made.reconnect()
        self._made.send([question(name, "econ", 24.0 * day), *crowd(name, 6, 24.0 * day - 1)])
        self._made.settle(120, self._tend)
        self._made.tick(milliseconds(24.0 * day + 1))
        self._made.settle(120, self._tend)

    def _tend(self) -> None:
        if self._made.workers["w1"].has_ended:
            self._start("")

    def _read(self, message: str) -> tuple[list[str], list[str], str]:
        names = re.search(r"delete ((?:\S+, )*?\S+), run `", message)
        command = re.search(r"run `stream-peer ([^`]+)`", message)
        choice = re.search(r"on_recreated: (keep)", message)
        return (
            names.group(1).split(", ") if names else [],
            command.group(1).split() if command else [],
            choice.group(1) if choice else "",
        )

    def _stop(self) -> None:
        worker = self._made.workers["w1"]
        if not worker.has_ended:
            assert worker.terminate() == 0, worker.said()

    def _start(self, choice: str) -> None:
        """A worker serves; one that ends says what to do, which is done, once."""
        made, worker = self._made, self._made.workers["w1"]
        named = {"STREAM_PEER_ON_RECREATED": choice} if choice else {}
        if worker.has_ended or choice:
            self._stop()
            worker = made.start("w1", WATCHFUL, **named)
        wait_until(lambda: worker.has_ended or worker.http("/healthz/ready")[0] == 200, 90, made.logs)
        if worker.has_ended:
            assert not choice, worker.said()
            self._start(choice if worker.process.returncode == 70 else self._read(worker.said())[2])


@pytest.fixture
def watched(kafka: KafkaClient, tmp_path: Path) -> Iterator[Service]:
    with service(kafka, tmp_path, shape=Shape(2, 1), feeds={"econ": {}}) as started:
        started.run("topics", "apply")
        started.start("w1", WATCHFUL)
        started.run(*APPLY)
        started.wait_configured()
        started.send([question("open", "econ", LAST_DAY), *crowd("open", 6, 1)])
        asked(started, "q0", 1)
        yield started


def all_counted(made: Service, questions: int) -> None:
    """Also the question that was open all the while, after a restart: of what is stored nothing is missing."""
    made.reconnect()
    made.run(*APPLY)  # an event of the new control-events: the choice is needed no more
    assert made.workers["w1"].terminate() == 0, made.logs()
    made.start("w1", WATCHFUL).wait_ready()
    made.tick(milliseconds(LAST_DAY + 1))
    made.settle()
    assert made.weights("econ")["questions"] == questions + 1
    assert made.last(topics.PEER_LOSSES, "econ").keys() >= {f"q{questions - 1}", "open"}


@pytest.mark.induces("partitions added to every other topic, one kind after the other")
def test_the_way_back_from_added_partitions_that_is_printed_leads_back_from_each_topic(
    watched: Service, found: Callable[[str], None]
) -> None:
    kinds = (
        (QUESTION_STATE,),
        (FEED_STATE,),
        (topics.WEIGHTS, topics.ERROR_RATES, topics.PEER_LOSSES, topics.DEAD_LETTERS),
        (topics.CONTROL_EVENTS,),
        (topics.FEED_LOG,),
    )
    advice = Advice(watched)
    for number, kind in enumerate(kinds, 1):
        names = [physical(watched, name) for name in kind]
        with watched.kafka.admin() as admin:
            admin.create_partitions(dict.fromkeys(names, 3))
        message = told(watched, names[-1])
        assert all(name in message for name in names)
        advice.follow(message)
        advice.ask(f"q{number}", number + 1)
    all_counted(watched, len(kinds) + 1)
    found("each advice followed; no question lost")


@pytest.mark.induces("changelogs and outputs deleted under a running worker, one after the other")
def test_the_way_back_from_deleted_changelogs_and_outputs_that_is_printed_leads_back(
    watched: Service, found: Callable[[str], None]
) -> None:
    kinds = ((QUESTION_STATE,), (FEED_STATE,), topics.OUTPUTS)
    advice = Advice(watched)
    for number, kind in enumerate(kinds, 1):
        names = [physical(watched, name) for name in kind]
        watched.kafka.delete(*names)
        message = told(watched, f"{names[0]} is missing")
        advice.follow(message)
        advice.ask(f"q{number}", number + 1)
    all_counted(watched, len(kinds) + 1)
    found("each advice followed; no question lost")


@pytest.mark.induces("settings of feed-log changed and weights deleted under a running worker")
def test_changed_settings_and_a_deleted_topic_are_told_and_topics_apply_mends_them_while_it_runs(
    watched: Service,
) -> None:
    feed_log, weights = watched.topic(topics.FEED_LOG), watched.topic(topics.WEIGHTS)
    breaks: dict[str, Callable[[], object]] = {
        f"{feed_log} has retention.ms=1000000": lambda: altered(watched, feed_log),
        f"{weights} is missing": lambda: watched.kafka.delete(weights),
    }
    for day, (text, broken) in enumerate(breaks.items(), 2):
        asked(watched, f"question-{day}", day)
        broken()
        assert "run `" in told(watched, text)
        watched.run("topics", "apply")
        wait_until(lambda: reason(watched) == "", 90, watched.logs)
    asked(watched, "last", 4)
    assert watched.weights("econ")["questions"] == 4


@pytest.mark.induces("each input deleted under a running worker, one after the other, and made again")
@pytest.mark.parametrize("at_once", [False, True], ids=["later", "at once"])
def test_the_way_back_from_deleted_inputs_that_is_printed_leads_back(
    watched: Service, found: Callable[[str], None], *, at_once: bool
) -> None:
    inputs = (topics.CONTROL_EVENTS, topics.FORECAST_EVENTS, topics.FEED_LOG)
    advice = Advice(watched)
    for number, logical in enumerate(inputs, 1):
        name = watched.topic(logical)
        if at_once:
            watched.recreate(name)
        else:
            watched.kafka.delete(name)
        advice.follow(told(watched, f"{name} was deleted{' and recreated' if at_once else ''} while workers run"))
        advice.ask(f"q{number}", number + 1)
    all_counted(watched, len(inputs) + 1)
    found("each advice followed; no question lost")


@pytest.mark.induces("retention and compaction of every topic changed under a running worker")
def test_topics_apply_sets_every_changed_setting_back_while_the_worker_runs(watched: Service) -> None:
    inputs = [topics.FORECAST_EVENTS, topics.CONTROL_EVENTS, topics.FEED_LOG]
    changed = {
        **{physical(watched, name): {"retention.ms": "100000000"} for name in inputs},
        **{physical(watched, name): {"cleanup.policy": "compact,delete"} for name in (QUESTION_STATE, FEED_STATE)},
        **{physical(watched, name): {"min.compaction.lag.ms": "0"} for name in topics.KEYED_BY_FEED},
    }
    with watched.kafka.admin() as admin:
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, each) for name, each in changed.items()])

    message = told(watched, physical(watched, FEED_STATE))
    assert all(f"{name} has {next(iter(each))}=" in message for name, each in changed.items())
    Advice(watched).follow(message)
    asked(watched, "q1", 2)
    all_counted(watched, 2)


@pytest.mark.induces("partitions added to all topics: feeds move to other topics")
def test_where_all_topics_have_grown_feeds_move_to_another_prefix_with_all_that_they_know(
    watched: Service, kafka: KafkaClient, tmp_path: Path, found: Callable[[str], None]
) -> None:
    names = [watched.topic(name) for name in topics.ALL]
    names += [physical(watched, name) for name in (QUESTION_STATE, FEED_STATE)]
    with kafka.admin() as admin:
        admin.create_partitions(dict.fromkeys(names, 5))
    message = told(watched, "another prefix")
    assert "`stream-peer export` and `stream-peer import`" in message
    assert watched.workers["w1"].terminate() == 0

    file = str(tmp_path / "econ.feed.gz")
    watched.run("export", "econ", "--out", file)
    with service(kafka, tmp_path / "grown", shape=Shape(5, 5), feeds={"econ": {}}) as grown:
        grown.set_up()
        grown.run("import", file)
        grown.settle()
        asked(grown, "q1", 2)
        all_counted(grown, 2)
    found("exported from the grown topics, imported under another prefix; no question lost")


def altered(made: Service, topic: str) -> None:
    with made.kafka.admin() as admin:
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "1000000"})])
