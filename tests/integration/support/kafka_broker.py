"""A real Apache Kafka on this machine, without a container: one KRaft node of jars, to start, stop and kill."""

import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

from stream_peer.tools.demo.brokers import LOG4J, cluster_id, end_process, format_storage, free_ports, one_node
from tests.integration.support.kafka_jars import KafkaJars, alone
from tests.integration.support.waiting import wait_until

JVM = ["-Xms128m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-XX:-UsePerfData"]
READY = "Kafka Server started"

ONE_NODE = {
    "num.partitions": "4",
    "message.max.bytes": "1048588",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "1",
    # Sessions as short as tests like them.
    "group.min.session.timeout.ms": "1000",
    # A killed broker may come back once its old self is given up (9 s by default).
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "1000",
    # A small machine.
    "num.network.threads": "2",
    "num.io.threads": "2",
    "background.threads": "2",
    "log.cleaner.threads": "1",
    "log.cleaner.dedupe.buffer.size": "2097152",
    # Tests read all that was ever published, at times long past: compaction must not come before them.
    "log.cleaner.backoff.ms": "3600000",
}
THREE_NODES = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
}
COMPACT_SOON = {
    "log.cleaner.backoff.ms": "200",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "1000",
}


class KafkaBroker:
    """One combined broker and controller on 127.0.0.1, plaintext unless ``config`` says otherwise.

    ``config`` overlays server.properties (``COMPACT_SOON`` is ready-made). ``scram`` are ``name=u,password=p``
    texts; they need a format of their own instead of the copied template. The ports stay the same over restarts.
    ``cluster`` is the id of the cluster that it is a node of, and ``ports`` are those that the other nodes know.
    """

    def __init__(
        self,
        jars: KafkaJars,
        directory: Path,
        *,
        config: Mapping[str, str] | None = None,
        scram: Sequence[str] = (),
        jvm: Sequence[str] = (),
        cluster: str = "",
        ports: Sequence[int] = (),
    ) -> None:
        self.jars = jars
        self.directory = directory
        self.port, self.controller_port = ports or free_ports(2)
        self.log = directory / "server.log"
        self._jvm = [*JVM, *jvm]
        self._process: subprocess.Popen[bytes] | None = None
        directory.mkdir(parents=True, exist_ok=True)
        self._write_configuration(config or {})
        self._lay_data(scram, cluster)

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def runs(self) -> bool:
        """Whether it was started, and neither stopped nor killed."""
        return self._process is not None

    @property
    def pid(self) -> int:
        assert self._process, "the broker does not run"
        return self._process.pid

    def start(self, deadline: float = 90.0) -> Self:
        """Start it and return when its log says that it serves (the port opens earlier)."""
        seen = len(self._log_text())
        arguments = [f"-Dlog4j2.configurationFile={self.directory / 'log4j2.yaml'}"]
        if self.jars.archive.exists():
            arguments.append(f"-XX:SharedArchiveFile={self.jars.archive}")
        command = _java([*self._jvm, *arguments], self.jars, "kafka.Kafka", str(self._properties))
        with (self.directory / "stdout.log").open("ab") as out:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )
        wait_until(lambda: self._is_ready(seen), deadline, f"the broker in {self.directory} never became ready")
        return self

    def stop(self, deadline: float = 30.0) -> None:
        """SIGTERM; SIGKILL if it has not ended by the deadline."""
        if self._process is None:
            return
        end_process(self._process, deadline)
        self._process = None

    def kill(self) -> None:
        """SIGKILL. ``start`` brings it back on the same ports and data."""
        assert self._process, "the broker does not run"
        self._process.kill()
        self._process.wait()
        self._process = None

    def pause(self) -> None:
        """SIGSTOP: connections stay open and nothing answers."""
        assert self._process
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        assert self._process
        self._process.send_signal(signal.SIGCONT)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process:
            self._process.send_signal(signal.SIGCONT)
        self.stop()

    @property
    def _properties(self) -> Path:
        return self.directory / "server.properties"

    def _write_configuration(self, config: Mapping[str, str]) -> None:
        own = one_node((self.port, self.controller_port), self.directory)
        properties = {**own, **ONE_NODE, **config}
        lines = [f"{name}={value}\n" for name, value in properties.items()]
        self._properties.write_text("".join(lines))
        (self.directory / "log4j2.yaml").write_text(LOG4J.format(file=self.log))

    def _lay_data(self, scram: Sequence[str], cluster: str) -> None:
        if self.jars.template.is_dir() and not scram and not cluster:
            shutil.copytree(self.jars.template, self.directory / "data")
            return
        users = [word for user in scram for word in ("--add-scram", f"SCRAM-SHA-512=[{user}]")]
        format_storage(self.jars.class_path, self._properties, *users, cluster=cluster)

    def _is_ready(self, seen: int) -> bool:
        assert self._process
        if self._process.poll() is not None:
            output = (self.directory / "stdout.log").read_text()[-2000:]
            msg = f"the broker ended with {self._process.returncode}:\n{output}{self._log_text()[-4000:]}"
            raise RuntimeError(msg)
        return READY in self._log_text()[seen:]

    def _log_text(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""


class KafkaCluster:
    """Three brokers, started; ``nodes`` by their ids. Of the three replicas of a record two must have it."""

    def __init__(self, jars: KafkaJars, directory: Path) -> None:
        ids, cluster, ports = (1, 2, 3), cluster_id(), free_ports(6)
        of_node = {node: (ports[2 * node - 2], ports[2 * node - 1]) for node in ids}
        voters = ",".join(f"{node}@127.0.0.1:{controller}" for node, (_, controller) in of_node.items())

        def made(node: int) -> KafkaBroker:
            config = {**THREE_NODES, "node.id": str(node), "controller.quorum.voters": voters}
            return KafkaBroker(jars, directory / str(node), config=config, cluster=cluster, ports=of_node[node])

        with ThreadPoolExecutor(len(ids)) as pool:
            self.nodes = dict(zip(ids, pool.map(made, ids), strict=True))

    @property
    def bootstrap(self) -> str:
        return ",".join(node.bootstrap for node in self.nodes.values())

    def __enter__(self) -> Self:
        with ThreadPoolExecutor(len(self.nodes)) as pool:
            list(pool.map(KafkaBroker.start, self.nodes.values()))  # none is ready before the second one is
        return self

    def __exit__(self, *_: object) -> None:
        for node in self.nodes.values():
            if node.runs:
                node.kill()  # the last one to stop would wait for the others


def prepare(jars: KafkaJars) -> None:
    """Make the formatted template and the class archive, once: later brokers start in two seconds."""
    with alone(jars.home):
        if jars.template.is_dir() and jars.archive.exists():
            return
        with tempfile.TemporaryDirectory(dir=jars.home) as scratch:
            first = KafkaBroker(jars, Path(scratch) / "first", jvm=[f"-XX:ArchiveClassesAtExit={scratch}/kafka.jsa"])
            if not jars.template.is_dir():
                shutil.copytree(first.directory / "data", Path(scratch) / "template")
                (Path(scratch) / "template").replace(jars.template)
            with first:
                pass
            archive = Path(scratch) / "kafka.jsa"
            if archive.exists():  # a Java without class sharing starts brokers slowly, which is no fault
                archive.replace(jars.archive)


def _java(options: Sequence[str], jars: KafkaJars, main: str, *arguments: str) -> list[str]:
    return ["java", *options, "-cp", jars.class_path, main, *arguments]
