"""What all tests share: the broker of the ladder, markers that follow from fixtures, and what is said about skips."""

import contextlib
import importlib
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests import hypothesis_profiles as hypothesis_profiles
from tests.integration.support.brokers import (
    Choice,
    LadderError,
    Rung,
    RunningBroker,
    choose,
    own_broker,
    real_probes,
    running,
)
from tests.integration.support.client import KafkaClient
from tests.integration.support.kafka_broker import KafkaBroker

REPOSITORY = Path(__file__).parent.parent
DATA = "STREAM_PEER_DATA"
BROKER_FIXTURES = {"broker", "kafka", "kafka_bootstrap", "own_kafka"}
TESTS_OF_A_BROKER = "tests/integration/"

_choice = pytest.StashKey[Choice | LadderError]()
_shared_broker = "stream_peer_bootstrap_file"


class _OneBroker:
    """With xdist the controller starts one broker for all its workers, once it knows that their tests need one."""

    def __init__(self, rung: Rung) -> None:
        self._rung = rung
        self._stack = ExitStack()
        self._directory = Path(self._stack.enter_context(TemporaryDirectory()))
        self._bootstrap_file = self._directory / "bootstrap"

    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput[_shared_broker] = str(self._bootstrap_file)

    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        # No test starts before every worker has collected: the file is there when the first one reads it.
        if not self._bootstrap_file.exists() and any(name.startswith(TESTS_OF_A_BROKER) for name in ids):
            started = self._stack.enter_context(running(self._rung, self._directory / "kafka"))
            self._bootstrap_file.write_text(started.bootstrap, encoding="utf-8")

    def pytest_unconfigure(self) -> None:
        self._stack.close()


def pytest_configure(config: pytest.Config) -> None:
    try:
        choice = config.stash[_choice] = choose(os.environ, real_probes(os.environ))
    except LadderError as error:  # only runs that have broker tests fail of it
        config.stash[_choice] = error
        return
    if choice.rung.is_real and config.getoption("dist", "no") != "no":
        config.pluginmanager.register(_OneBroker(choice.rung))


def pytest_report_header(config: pytest.Config) -> list[str]:
    choice = config.stash[_choice]
    broker = str(choice) if isinstance(choice, LadderError) else choice.describe()
    data = _data_directory()
    return [f"test broker: {broker}", f"data sets: {data or f'none ({DATA} is not set)'}"]


def pytest_collection(session: pytest.Session) -> None:
    """In a fresh clone each of xdist's processes compiles another part of the tests, and reads what others compiled."""
    worker = getattr(session.config, "workerinput", None)
    if worker is None:
        return
    names = sorted(".".join(path.relative_to(REPOSITORY).with_suffix("").parts) for path in _test_files(session.config))
    first = len(names) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for name in names[first:] + names[:first]:
        with contextlib.suppress(Exception, pytest.skip.Exception):  # collection tells of it
            importlib.import_module(name)


def _test_files(config: pytest.Config) -> set[Path]:
    named = [Path(argument.partition("::")[0]).resolve() for argument in config.args]
    return {path for each in named if REPOSITORY / "tests" in (each, *each.parents) for path in each.rglob("test_*.py")}


LONGEST = (
    "test_recreated_state",
    "test_recreated",
    "test_crashes",
    "test_export_import",
    "test_faults",
    "test_cases",
    "test_demo",
    "test_whom_to_trust_cases",
    # of tests/infra
    "test_release",
    "test_dashboard_answers",
    "test_rules",
    "test_chart_runs",
    "test_benchmark_attacks",
    "test_chart",
    "test_contract",
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark by fixtures, and skip with a reason what this machine cannot give; the longest files come first."""
    place = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(place)))  # else the last process runs one of them alone
    choice = config.stash[_choice]
    for item in items:
        used = set(getattr(item, "fixturenames", ()))
        if used & BROKER_FIXTURES:
            item.add_marker("kafka")
        if "own_kafka" in used:
            item.add_marker("real_kafka")
        if "data_directory" in used:
            item.add_marker("data")
        if item.get_closest_marker("kafka") or item.get_closest_marker("real_kafka"):
            if isinstance(choice, LadderError):
                raise pytest.UsageError(str(choice))
            _skip_what_the_rung_lacks(item, choice.rung)
        if item.get_closest_marker("data") and _data_directory() is None:
            item.add_marker(pytest.mark.skip(reason=f"needs the data sets: {DATA} names no directory"))


def _skip_what_the_rung_lacks(item: pytest.Item, rung: Rung) -> None:
    if item.get_closest_marker("real_kafka") and not rung.is_real:
        item.add_marker(pytest.mark.skip(reason=f"needs a real Kafka, not the {rung.value}"))
    elif "own_kafka" in getattr(item, "fixturenames", ()) and rung is not Rung.JARS:
        item.add_marker(pytest.mark.skip(reason=f"needs a broker of its own to break, not the {rung.value}"))


def _data_directory() -> Path | None:
    named = os.environ.get(DATA)
    return Path(named).resolve() if named and Path(named).is_dir() else None


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the repository."""
    return REPOSITORY


@pytest.fixture(scope="session")
def data_directory() -> Path:
    """The data sets that ``STREAM_PEER_DATA`` points to."""
    found = _data_directory()
    assert found
    return found


@pytest.fixture(scope="session")
def broker(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """The broker of this run, started once. Use it with a ``topic_prefix``; do not break it: see ``own_kafka``."""
    choice = pytestconfig.stash[_choice]
    assert isinstance(choice, Choice)
    shared = Path(getattr(pytestconfig, "workerinput", {}).get(_shared_broker, ""))
    if shared.is_file():
        yield RunningBroker(shared.read_text(encoding="utf-8"), choice.rung)
        return
    with running(choice.rung, tmp_path_factory.mktemp("broker") / "kafka") as started:
        yield started


@pytest.fixture(scope="session")
def kafka_bootstrap(broker: RunningBroker) -> str:
    """Bootstrap servers of the broker of this run."""
    return broker.bootstrap


@pytest.fixture(scope="session")
def kafka(broker: RunningBroker) -> KafkaClient:
    """Topics and records of the broker of this run."""
    return KafkaClient(broker)


@pytest.fixture
def topic_prefix(kafka: KafkaClient) -> Iterator[str]:
    """A prefix for this test's topics and groups; what bears it is deleted afterwards."""
    prefix = f"test-{uuid.uuid4().hex[:10]}-"
    yield prefix
    kafka.delete_topics(prefix)


@pytest.fixture
def own_kafka(tmp_path: Path) -> Iterator[Callable[[Mapping[str, str]], KafkaBroker]]:
    """Make a started broker of this test's own, to kill, stop and pause: ``own_kafka({})``, or with configuration."""
    with ExitStack() as stack:
        made = 0

        def make(config: Mapping[str, str]) -> KafkaBroker:
            nonlocal made
            made += 1
            return stack.enter_context(own_broker(tmp_path / f"kafka-{made}", config=config))

        yield make
