"""What a process costs, watched from outside, and how far its consumer groups are."""

import os
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.errors import CoordinatorLoadInProgressError, CoordinatorNotAvailableError, GroupIdNotFoundError

from tests.integration.support.waiting import wait_until

Value = TypeVar("Value")


class Cost(NamedTuple):
    """CPU seconds (user and system, all threads and children), wall seconds, and the largest memory in MB."""

    cpu_seconds: float
    wall_seconds: float
    rss_peak_mb: float


class Meter:
    """Samples the CPU time of a process and its children every 20 ms, from a thread of the watcher."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._samples: list[tuple[float, float]] = []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()

    def between(self, start: float, end: float) -> Cost:
        """What was spent between two moments of ``time.monotonic``."""
        return Cost(self._cpu_at(end) - self._cpu_at(start), end - start, self._peak_mb())

    def _cpu_at(self, moment: float) -> float:
        return next((cpu for at, cpu in self._samples if at >= moment), self._samples[-1][1])

    def _watch(self) -> None:
        while not self._end.wait(0.02):
            try:
                spent = sum(_cpu_seconds(pid) for pid in _family(self._pid))
            except (FileNotFoundError, ProcessLookupError):
                continue
            self._samples.append((time.monotonic(), spent))

    def _peak_mb(self) -> float:
        """The kernel's own high-water mark."""
        text = Path(f"/proc/{self._pid}/status").read_text(encoding="utf-8")
        line = next(line for line in text.splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024


def _family(pid: int) -> list[int]:
    """The process and all that descend from it."""
    found = [pid]
    for member in found:
        for task in Path(f"/proc/{member}/task").iterdir():
            found.extend(int(child) for child in (task / "children").read_text(encoding="utf-8").split())
    return found


def _cpu_seconds(pid: int) -> float:
    """User and system time of all threads."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Groups:
    """Reads ends of topics and committed offsets of consumer groups."""

    def __init__(self, bootstrap: str) -> None:
        self._admin: Any = KafkaAdminClient(bootstrap_servers=bootstrap)
        self._consumer: Any = KafkaConsumer(bootstrap_servers=bootstrap)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._admin.close()
        self._consumer.close()

    def create(self, topics: list[str], partitions: int) -> None:
        """Create plain topics and wait until they are known."""
        asked = {topic: {"num_partitions": partitions, "replication_factor": 1} for topic in topics}
        self._admin.create_topics(asked, wait_for_metadata=True)

    def ends(self, topic: str) -> dict[int, int]:
        """Offset after the last record of each partition."""
        places = [TopicPartition(topic, p) for p in self._consumer.partitions_for_topic(topic) or ()]
        return {place.partition: end for place, end in self._consumer.end_offsets(places).items()}

    def is_stable(self, group: str, members: int | None = None) -> bool:
        """Whether the group has members, or so many of them, and knows what each of them reads."""
        try:
            described = self._admin.describe_groups([group])[group]
        except (CoordinatorNotAvailableError, CoordinatorLoadInProgressError, GroupIdNotFoundError):
            return False  # nobody has asked for it yet
        found = len(described["members"])
        return bool(described["group_state"] == "Stable" and found and members in (None, found))

    def has_read_all(self, group: str, topic: str) -> bool:
        """Whether the group has committed everything that the topic holds."""
        return not self.behind(group, topic)

    def behind(self, group: str, topic: str) -> dict[int, tuple[int, int]]:
        """Partitions that the group has not read to their end: committed offset and end."""
        committed = {
            place.partition: found.offset
            for place, found in self._admin.list_group_offsets({group: None})[group].items()
            if place.topic == topic
        }
        places = {partition: (committed.get(partition, 0), end) for partition, end in self.ends(topic).items()}
        return {partition: place for partition, place in places.items() if place[0] < place[1]}


def wait_for(
    condition: Callable[[], Value | None],
    deadline: float,
    message: str | Callable[[], str],
    process: subprocess.Popen[bytes],
) -> Value:
    """Poll every 50 ms; end with the message at the deadline, or as soon as the process waited for is gone."""

    def met() -> Value | None:
        value = condition()
        if not value and process.poll() is not None:
            msg = f"the process ended with {process.returncode}; {message if isinstance(message, str) else message()}"
            raise RuntimeError(msg)
        return value

    return wait_until(met, deadline, message)
