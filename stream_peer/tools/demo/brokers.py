"""The demo's brokers: a real Kafka from its jars, and one inside this process where no Kafka can be had.

The embedded one is librdkafka's mock cluster. It speaks enough of Kafka for the whole service, and nothing survives the
process. It has no compaction, no security, always four partitions a topic, 5 MB a partition, and a fetch at the end of
a log returns late: measure nothing on it.
"""

import base64
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from random import SystemRandom
from types import TracebackType
from typing import Any, Self

from stream_peer.errors import BrokerUnavailableError, MissingExtraError, SettingFault, SettingsError, StreamPeerError
from stream_peer.settings.process.checks import EMBEDDED_PARTITIONS


class EmbeddedBroker:
    """Context manager: the broker lives from enter to exit, in threads of this process.

    Parameters
    ----------
    topics : iterable of str
        Physical names of topics that shall exist from the start.

    Raises
    ------
    SettingsError
        On enter, if the extra ``demo`` is not installed.

    Examples
    --------
    >>> with EmbeddedBroker(["forecast-events"]) as broker:
    ...     broker.bootstrap.startswith("127.0.0.1:")
    True
    """

    def __init__(self, topics: Iterable[str] = ()) -> None:
        self._topics = list(topics)
        self._host: Any = None
        self.bootstrap = ""

    def __enter__(self) -> Self:
        self._host = _client_class()({"test.mock.num.brokers": 1, "bootstrap.servers": "unused", "log_level": 0})
        brokers = self._host.list_topics(timeout=10).brokers.values()
        self.bootstrap = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
        self.create_topics(self._topics)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._host = None  # the mock cluster ends with the client that made it

    def create_topics(self, topics: Iterable[str]) -> None:
        """Make topics by asking for them, the only way that this broker knows; existing ones stay."""
        for topic in topics:
            until(partial(self._has, topic), 10.0, f"the embedded broker did not make the topic {topic}")

    def _has(self, topic: str) -> bool:
        found = self._host.list_topics(topic, timeout=10).topics[topic]
        return found.error is None and len(found.partitions) == EMBEDDED_PARTITIONS


def _client_class() -> Any:
    try:
        from confluent_kafka import Producer
    except ImportError:
        message = "the embedded broker needs confluent-kafka: pip install 'stream-peer[demo]'"
        raise SettingsError([SettingFault("broker", "embedded", message)]) from None
    return Producer


KAFKA = "4.1.1"
LEAST_JAVA = 17
READY_SECONDS = 90.0
_STOP_SECONDS = 15.0
_PAUSE_SECONDS = 0.05

_ARTIFACTS = (
    ("org.apache.kafka", "kafka_2.13", KAFKA),
    ("org.apache.kafka", "kafka-tools", KAFKA),
    ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.24.3"),
)
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>stream-peer</groupId><artifactId>kafka</artifactId><version>1</version><packaging>pom</packaging>
<dependencies>{dependencies}</dependencies></project>
"""
LOG4J = """\
Configuration:
  Appenders: {{File: {{name: log, fileName: "{file}", PatternLayout: {{pattern: "%d %p %c{{1}} %m%n"}}}}}}
  Loggers: {{Root: {{level: INFO, AppenderRef: {{ref: log}}}}}}
"""
_ONE_NODE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "auto.create.topics.enable": "false",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}
_JVM = ("-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class LocalKafka:
    """Context manager: fetches the jars if they are not cached, formats a scratch directory, runs a broker in it.

    Raises
    ------
    MissingExtraError
        On enter, if Java or Maven is missing.
    BrokerUnavailableError
        On enter, if the broker does not start.
    """

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._cache = Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stream-peer"
        self._process: subprocess.Popen[bytes] | None = None
        self._scratch = ExitStack()
        self.bootstrap = ""

    def __enter__(self) -> Self:
        check_java()
        jars = self._jars()
        with ExitStack() as undo:
            undo.callback(self.__exit__, None, None, None)
            directory = Path(self._scratch.enter_context(tempfile.TemporaryDirectory(prefix="stream-peer-kafka-")))
            self._start(jars, directory)
            undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            end_process(self._process, _STOP_SECONDS)
            self._process = None
        self._scratch.close()

    def _jars(self) -> Path:
        """Directory of jars: cached ones of this version, or fetched now."""
        for lib in sorted(self._cache.glob(f"kafka-{KAFKA}*/lib")):
            if any(lib.glob("kafka_2.13-*.jar")):
                return lib
        lib = self._cache / f"kafka-{KAFKA}" / "lib"
        if shutil.which("mvn") is None:
            msg = "a real Kafka needs Maven (mvn) once, to fetch it; or name a broker of yours with --bootstrap"
            raise MissingExtraError(msg)
        lib.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=lib.parent) as scratch:
            fetched = _fetch(Path(scratch))
            if not lib.exists():
                fetched.replace(lib)
        return lib

    def _start(self, jars: Path, directory: Path) -> None:
        ports = free_ports(2)
        self.bootstrap = f"127.0.0.1:{ports[0]}"
        properties, log = directory / "server.properties", directory / "server.log"
        properties.write_text("".join(f"{name}={value}\n" for name, value in one_node(ports, directory).items()))
        (directory / "log4j2.yaml").write_text(LOG4J.format(file=log))
        class_path = f"{jars}/*"
        format_storage(class_path, properties)
        logging = f"-Dlog4j2.configurationFile={directory / 'log4j2.yaml'}"
        command = ["java", *_JVM, logging, "-cp", class_path, "kafka.Kafka", str(properties)]
        with (directory / "stdout.log").open("wb") as out:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )
        self._wait(log)

    def _wait(self, log: Path) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline and self._process is not None and self._process.poll() is None:
            if log.exists() and "Kafka Server started" in log.read_text(errors="replace"):
                return
            time.sleep(0.1)
        tail = log.read_text(errors="replace")[-500:] if log.exists() else "it logged nothing"
        msg = f"Kafka did not start within {READY_SECONDS:g} s: {tail}"
        raise BrokerUnavailableError(msg)


def until(
    condition: Callable[[], bool],
    seconds: float,
    what: str,
    meanwhile: Callable[[], None] = lambda: None,
    progress: Callable[[], object] = lambda: None,
) -> None:
    """Wait until a condition holds, as long as there is progress, and so many seconds more.

    Raises
    ------
    StreamPeerError
        If it does not in time; the message says what never came.
    """
    deadline, seen = time.monotonic() + seconds, progress()
    while not condition():
        if (now := progress()) != seen:
            deadline, seen = time.monotonic() + seconds, now
        if time.monotonic() > deadline:
            msg = f"{what} within {seconds:g} s"
            raise StreamPeerError(msg)
        meanwhile()
        time.sleep(_PAUSE_SECONDS)


def end_process(process: "subprocess.Popen[bytes]", seconds: float) -> int | None:
    """Tell a process to end (SIGTERM), and kill it if it has not by then: its exit code, or None."""
    process.terminate()
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None


def check_java() -> None:
    """Refuse a machine without a Java that Kafka runs on.

    Raises
    ------
    MissingExtraError
        If there is none, or an old one.
    """
    found = java_version()
    if found is None or found < LEAST_JAVA:
        there = "none is" if found is None else f"Java {found} is"
        msg = f"a real Kafka needs Java {LEAST_JAVA}, {there} there; leave --real out, or use --bootstrap"
        raise MissingExtraError(msg)


def java_version() -> int | None:
    """Major version of ``java``; None where there is none."""
    if not shutil.which("java"):
        return None
    run = subprocess.run(["java", "-version"], capture_output=True, text=True, timeout=60, check=False)  # noqa: S607
    found = re.search(r'version "(\d+)', run.stderr + run.stdout)
    return int(found.group(1)) if found else None


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now.

    Below the range from which the kernel takes the ports of outgoing connections: otherwise a client that keeps
    calling a killed broker may be given the broker's own port, connect to itself, and the broker cannot come back.
    """
    kernel = Path("/proc/sys/net/ipv4/ip_local_port_range")  # of Linux
    lowest = int(kernel.read_text().split()[0]) if kernel.exists() else 32_768
    found: list[int] = []
    with ExitStack() as held:
        while len(found) < count:
            port = SystemRandom().randrange(min(20_000, lowest - 2_000), lowest)
            listener = held.enter_context(socket.socket())
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            found.append(port)
    return found


def one_node(ports: Sequence[int], directory: Path) -> dict[str, str]:
    """The properties of a broker that is its own controller, on these two ports."""
    plaintext, controller = f"PLAINTEXT://127.0.0.1:{ports[0]}", f"CONTROLLER://127.0.0.1:{ports[1]}"
    return {
        **_ONE_NODE,
        "listeners": f"{plaintext},{controller}",
        "advertised.listeners": plaintext,
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{ports[1]}",
        "log.dirs": str(directory / "data"),
    }


def cluster_id() -> str:
    """An id that no cluster has."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")


def format_storage(class_path: str, properties: Path, *more: str, cluster: str = "") -> None:
    """Format the data directory of a broker: of a node of a cluster, or of one that stands alone.

    Raises
    ------
    BrokerUnavailableError
        If Kafka's tool fails; with what it says.
    """
    alone = [] if cluster else ["--standalone"]
    arguments = ["format", *alone, "-t", cluster or cluster_id(), "-c", str(properties), *more]
    _run(
        "Kafka's storage could not be formatted",
        ["java", *_JVM, "-cp", class_path, "kafka.tools.StorageTool", *arguments],
    )


def _fetch(directory: Path) -> Path:
    """Have Maven copy the jars."""
    dependency = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
    pom, lib = directory / "pom.xml", directory / "lib"
    pom.write_text(_POM.format(dependencies="".join(dependency.format(*artifact) for artifact in _ARTIFACTS)))
    command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={lib}"]
    _run("Maven could not fetch Apache Kafka", command)
    return lib


def _run(fault: str, command: list[str]) -> None:
    run = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)  # noqa: S603 - our own
    if run.returncode:
        msg = f"{fault}: {(run.stdout + run.stderr).strip()[-500:]}"
        raise BrokerUnavailableError(msg)
