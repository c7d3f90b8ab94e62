"""What peers need beside the product: an environment of Python, and jars with a compiled class. Made once, and kept."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from tests.integration.support.kafka_jars import alone, cache_directory, fetch_jars

HERE = Path(__file__).parent
REQUIREMENTS = HERE.parents[1] / "requirements" / "peers.txt"
POM = HERE / "pom.xml"
JOB = HERE / "CommonJob.java"
JVM = ("-Xmx768m", "-XX:+UseParallelGC", "-Xshare:auto")


def python() -> Path:
    """Of an environment that has what ``requirements/peers.txt`` pins, and nothing else."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    home = cache_directory(os.environ).with_name(f"peers-{version}-{_digest(REQUIREMENTS)}")
    found, complete = home / "bin" / "python", home / ".complete"
    with alone(home):
        if not complete.exists():
            subprocess.run([sys.executable, "-m", "venv", home], check=True)
            install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
            subprocess.run([found, *install, "-r", REQUIREMENTS], check=True)
            complete.touch()
    return found


def java_job(*arguments: str) -> list[str]:
    """The command that runs the job on Kafka Streams."""
    jars = fetch_jars(os.environ, POM)
    classes = jars.home / f"classes-{_digest(JOB)}"
    with alone(jars.home):
        if not classes.is_dir():
            subprocess.run(["javac", "-cp", jars.class_path, "-d", classes, JOB], check=True)
    return ["java", *JVM, "-cp", f"{classes}:{jars.class_path}", JOB.stem, *arguments]


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:8]
