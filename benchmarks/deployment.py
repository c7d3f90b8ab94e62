"""The service as a user runs it: a settings file, the commands of its manual, a worker as a process."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).parents[1]
PARTITIONS = 16
FEED_SETTINGS = {"history": True}
SIGNING_KEY = b"the signing key of the benchmarks"


class Deployment(NamedTuple):
    """One topic prefix on a broker; files go to ``directory``."""

    bootstrap: str
    prefix: str
    directory: Path

    def prepare(self, **changed: Any) -> None:
        """Write the settings file, with what is changed in it, and make the topics."""
        key = self.directory / "signing-key"
        key.write_bytes(SIGNING_KEY)
        settings: dict[str, Any] = {
            "bootstrap": self.bootstrap,
            "prefix": self.prefix,
            "signing_key_file": str(key),
            "http": {"port": 0},
            "log": {"format": "console"},
            "partitions": {"forecast_events": PARTITIONS, "feed_log": PARTITIONS},
            "defaults": FEED_SETTINGS,
            **changed,
        }
        (self.directory / "settings.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
        self.command("topics", "apply")

    def topic(self, logical: str) -> str:
        """Physical name of a topic."""
        return self.prefix + logical

    def group(self, stage: str) -> str:
        """Consumer group of a stage."""
        return f"{self.prefix}stream-peer-{stage}"

    def command(self, *arguments: str) -> None:
        """Run a command to its end."""
        subprocess.run(self._line(*arguments), cwd=ROOT, env=self._environment(), check=True, timeout=120)

    @contextlib.contextmanager
    def worker(self, *options: str, command: str = "worker") -> Iterator[subprocess.Popen[bytes]]:
        """A worker, or another process of the service, that runs while the block does, and has to stop cleanly."""
        process = self.start(*options, command=command)
        try:
            yield process
        except BaseException:
            sys.stderr.write(self.log.read_text(errors="replace")[-4000:])
            raise
        finally:
            process.send_signal(signal.SIGTERM)
            status = process.wait(60)
        if status:
            sys.stderr.write(self.log.read_text(errors="replace")[-4000:])
            msg = f"the {command} ended with {status}, not 0"
            raise RuntimeError(msg)

    def start(self, *options: str, command: str = "worker") -> subprocess.Popen[bytes]:
        """A worker that runs until somebody ends it."""
        with self.log.open("ab") as output:
            return subprocess.Popen(
                self._line(command, *options), cwd=ROOT, env=self._environment(), stdout=output, stderr=output
            )

    @property
    def log(self) -> Path:
        """What all workers said."""
        return self.directory / "worker.log"

    def _line(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "stream_peer", *arguments]

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "STREAM_PEER_CONFIG": str(self.directory / "settings.yaml")}
