"""The service as a release has it: it runs from the image or, where images cannot be built, from the wheel."""

import signal
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stream_peer import __version__
from tests.infra.support.image import ARCHIVE, Store, build_release, obstacle, opened
from tests.infra.support.tools import ROOT, run, said
from tests.integration.support.gateway import gateway_environment
from tests.integration.support.service import Service, Worker

_WHEEL = ROOT / "build" / "wheel" / "environment" / "bin" / "stream-peer"


class Contained(Worker):
    """A worker or a gateway in a container; podman, in front of it, ends when the container does, with its code."""

    def __init__(self, store: Store, program: str, directory: Path, environment: dict[str, str], log: Path) -> None:
        self._podman, self._name = store.podman, f"stream-peer-{uuid.uuid4().hex[:8]}"
        mounts = {directory: str(directory)}
        command = store.attached(self._name, program, variables="STREAM_PEER_", mounts=mounts)
        super().__init__(command, environment, log)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the first process of the container."""
        self._podman("kill", "--signal", number.name, self._name)

    @property
    def pid(self) -> int:
        """That process, as this machine numbers it."""
        return int(self._podman("inspect", "--format", "{{.State.Pid}}", self._name).out)


class Released(Service):
    """A deployment of the released service."""

    def __init__(self, store: Store | None, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.directory.chmod(0o755)  # the image's user reads the settings
        self._store = store

    def worker(self, environment: dict[str, str], log: Path, altered: str) -> Worker:
        """Start a worker from the image, or from the wheel."""
        return self._started("worker", environment, log)

    def gateway(self) -> Worker:
        """Start a gateway for the platform."""
        return self._started("gateway", gateway_environment(self), self.directory / "gateway.log")

    def _started(self, program: str, environment: dict[str, str], log: Path) -> Worker:
        if self._store:
            return Contained(self._store, program, self.directory, environment, log)
        return Worker([str(_WHEEL), program], environment, log)


@contextmanager
def built() -> Iterator[tuple[Store | None, str]]:
    """The store that has the image, or None where the wheel is installed; and what workers run from."""
    if reason := obstacle():
        made = run("make", "--silent", "wheel", seconds=600)
        assert made.returncode == 0, said(made)
        yield None, f"the wheel {__version__} in an environment of its own ({reason})"
        return
    with opened() as store:
        build_release(store, ARCHIVE)
        store.load(ARCHIVE)
        yield store, f"the image in {ARCHIVE.relative_to(ROOT)}"
