"""Apache Kafka as jars from Maven, fetched once and kept in the user's cache with what makes a start quick."""

import fcntl
import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from stream_peer.tools.demo.brokers import java_version

POM = Path(__file__).with_name("pom.xml")


class KafkaJars(NamedTuple):
    """A directory of jars, and beside it the formatted data directory and the class archive, once they are made."""

    home: Path

    @property
    def lib(self) -> Path:
        return self.home / "lib"

    @property
    def class_path(self) -> str:
        """All jars by name: an archived class path must be spelled alike each time."""
        return ":".join(str(jar) for jar in sorted(self.lib.glob("*.jar")))

    @property
    def template(self) -> Path:
        """A formatted, empty data directory: copying it takes no time, formatting two seconds."""
        return self.home / "template"

    @property
    def archive(self) -> Path:
        """Loaded classes (AppCDS): halves the time of a start."""
        return self.home / f"kafka-java{java_version()}.jsa"


def kafka_version(pom: Path = POM) -> str:
    """Version in pom.xml."""
    found = re.search(r"<kafka.version>(.+)</kafka.version>", pom.read_text())
    assert found, f"{pom} names no kafka.version"
    return found.group(1)


def cache_directory(environment: Mapping[str, str], pom: Path = POM) -> Path:
    """Where the jars of a pom.xml are kept."""
    root = Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "stream-peer" / f"kafka-{kafka_version(pom)}-{hashlib.sha256(pom.read_bytes()).hexdigest()[:8]}"


def cached_jars(environment: Mapping[str, str]) -> KafkaJars | None:
    """Jars that an earlier run fetched."""
    jars = KafkaJars(cache_directory(environment))
    return jars if jars.lib.is_dir() else None


@contextmanager
def alone(directory: Path) -> Iterator[None]:
    """One process at a time prepares a cache directory; the others wait and find it done."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def fetch_jars(environment: Mapping[str, str], pom: Path = POM) -> KafkaJars:
    """Take the jars from the cache, or have Maven fetch them into it (10 seconds, 54 MB)."""
    home = cache_directory(environment, pom)
    with alone(home):
        jars = KafkaJars(home)
        if not jars.lib.is_dir():
            with tempfile.TemporaryDirectory(dir=home) as scratch:
                copied = Path(scratch) / "lib"
                _run_maven(copied, pom)
                copied.replace(jars.lib)
    return jars


def _run_maven(directory: Path, pom: Path) -> None:
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={directory}"]
    command = ["mvn", "-q", "-B", "-f", str(pom), *goal]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, env={**os.environ})
    if run.returncode:
        msg = f"Maven could not fetch Apache Kafka:\n{(run.stdout + run.stderr)[-2000:]}"
        raise RuntimeError(msg)
