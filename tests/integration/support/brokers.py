"""The ladder of test brokers: the most real one that this machine can give.

1. the broker that ``STREAM_PEER_TEST_BOOTSTRAP`` names;
2. Apache Kafka in a container, where a Docker engine answers;
3. Apache Kafka from Maven jars, where Java 17 and Maven (or the cached jars) are there;
4. the embedded broker, which lacks much: tests that need more are skipped.

A rung that should be there but fails is an error, never a silent step down. ``STREAM_PEER_TEST_REQUIRE=kafka`` makes
rung 4 an error.
"""

import contextlib
import enum
import gc
import os
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from stream_peer.tools.demo.brokers import LEAST_JAVA, EmbeddedBroker, java_version
from tests.integration.support.kafka_broker import KafkaBroker, prepare
from tests.integration.support.kafka_jars import cached_jars, fetch_jars, kafka_version

GIVEN = "STREAM_PEER_TEST_BOOTSTRAP"
REQUIRE = "STREAM_PEER_TEST_REQUIRE"
CONTAINER_IMAGE = "confluentinc/cp-kafka:8.1.0"  # Apache Kafka 4.1


class LadderError(Exception):
    """No broker as real as demanded can be had here; the message says what is missing on each rung."""


class Rung(enum.Enum):
    """Where the tests' broker comes from, most real first."""

    GIVEN = "given broker"
    CONTAINER = "Apache Kafka in a container"
    JARS = "Apache Kafka from Maven jars"
    EMBEDDED = "embedded broker"

    @property
    def is_real(self) -> bool:
        return self is not Rung.EMBEDDED


class Probes(NamedTuple):
    """How the ladder looks around; tests pass fakes."""

    docker_answers: Callable[[], bool]
    java_version: Callable[[], int | None]
    has_jars: Callable[[], bool]
    """Jars are cached, or Maven is there to fetch them."""


class Choice(NamedTuple):
    """The rung that is taken, and why not a higher one."""

    rung: Rung
    passed_over: tuple[str, ...]

    def describe(self) -> str:
        """One line for the header of a test run."""
        version = f" {kafka_version()}" if self.rung is Rung.JARS else ""
        return f"{self.rung.value}{version}" + (f" ({'; '.join(self.passed_over)})" if self.passed_over else "")


class RunningBroker(NamedTuple):
    """A broker that runs."""

    bootstrap: str
    rung: Rung


def choose(environment: Mapping[str, str], probes: Probes) -> Choice:
    """Take the highest rung that is there.

    Raises
    ------
    LadderError
        If a real Kafka is demanded and there is none, or something unknown is demanded.
    """
    demanded = environment.get(REQUIRE, "")
    if demanded not in ("", "kafka"):
        msg = f"{REQUIRE} is {demanded!r}; it may be 'kafka' or unset"
        raise LadderError(msg)
    choice = _highest(environment, probes)
    if demanded and not choice.rung.is_real:
        msg = f"{REQUIRE}=kafka demands a real Kafka: {'; '.join(choice.passed_over)}"
        raise LadderError(msg)
    return choice


def _highest(environment: Mapping[str, str], probes: Probes) -> Choice:
    if environment.get(GIVEN):
        return Choice(Rung.GIVEN, ())
    passed_over = [f"{GIVEN} is not set"]
    if probes.docker_answers():
        return Choice(Rung.CONTAINER, tuple(passed_over))
    passed_over.append("no Docker engine answers")
    java = probes.java_version()
    if java is None or java < LEAST_JAVA:
        found = "no Java" if java is None else f"Java {java}"
        passed_over.append(f"{found}, {LEAST_JAVA} is needed")
    elif not probes.has_jars():
        passed_over.append("no Maven and no cached Kafka jars")
    else:
        return Choice(Rung.JARS, tuple(passed_over))
    return Choice(Rung.EMBEDDED, tuple(passed_over))


def real_probes(environment: Mapping[str, str]) -> Probes:
    """Look at this machine."""
    return Probes(
        docker_answers=docker_answers,
        java_version=java_version,
        has_jars=lambda: cached_jars(environment) is not None or shutil.which("mvn") is not None,
    )


def docker_answers() -> bool:
    """Whether a Docker engine answers within two seconds."""
    import docker  # slow, and only this rung needs it

    with warnings.catch_warnings():  # a client that finds no engine leaves its socket open
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            with contextlib.closing(docker.from_env(timeout=2)) as client:
                return bool(client.ping())
        except (docker.errors.DockerException, OSError):
            return False
        finally:
            gc.collect()


@contextlib.contextmanager
def running(rung: Rung, directory: Path, environment: Mapping[str, str] = os.environ) -> Iterator[RunningBroker]:
    """Start the broker of a rung; stop it at the end."""
    starters = {Rung.CONTAINER: _container, Rung.EMBEDDED: _embedded}
    with contextlib.ExitStack() as stack:
        if rung is Rung.GIVEN:
            bootstrap = environment[GIVEN]
        elif rung is Rung.JARS:
            bootstrap = stack.enter_context(own_broker(directory, environment)).bootstrap
        else:
            bootstrap = stack.enter_context(starters[rung]())
        yield RunningBroker(bootstrap, rung)


def own_broker(
    directory: Path, environment: Mapping[str, str] = os.environ, config: Mapping[str, str] | None = None
) -> KafkaBroker:
    """Make a broker of jars in a fresh directory; the caller starts it, by ``with`` or ``start``."""
    jars = fetch_jars(environment)
    prepare(jars)
    return KafkaBroker(jars, directory, config=config)


@contextlib.contextmanager
def _container() -> Iterator[str]:
    from testcontainers.community.kafka import KafkaContainer

    with KafkaContainer(CONTAINER_IMAGE).with_kraft() as kafka:
        yield str(kafka.get_bootstrap_server())


@contextlib.contextmanager
def _embedded() -> Iterator[str]:
    with EmbeddedBroker() as broker:
        yield broker.bootstrap
