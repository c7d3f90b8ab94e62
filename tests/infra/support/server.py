"""A server of the machine's own packages: started with a configuration, on a free port, in a temporary directory."""

import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from stream_peer.tools.demo.brokers import end_process, free_ports
from tests.integration.support.asking import ask
from tests.integration.support.waiting import wait_until

READY_SECONDS = 60.0
STOP_SECONDS = 20.0
_TIMEOUT = 30.0
_LOG_SHOWN = 4000


class MissingProgramError(Exception):
    """A program that is not on this machine: install its package."""


def installed(name: str) -> str:
    """Where a program of this machine lies.

    Raises
    ------
    MissingProgramError
        If it is not there.
    """
    path = shutil.which(name)
    if path is None:
        msg = f"{name} is not installed"
        raise MissingProgramError(msg)
    return path


class Server(ABC):
    """Context manager: a server of the Prometheus family, which is ready when ``/-/ready`` says so.

    Parameters
    ----------
    program : str
        Its name on this machine.
    config : mapping
        Content of its configuration file.
    """

    def __init__(self, program: str, config: Mapping[str, Any]) -> None:
        self._program = program
        self._config = dict(config)
        self._scratch = ExitStack()
        self._process: subprocess.Popen[bytes] | None = None
        self._directory = Path()
        self.address = ""

    @property
    def url(self) -> str:
        """Where it serves."""
        return f"http://{self.address}"

    def __enter__(self) -> Self:
        with ExitStack() as scratch:
            self._directory = Path(scratch.enter_context(tempfile.TemporaryDirectory(prefix=f"{self._program}-")))
            scratch.callback(self.stop)
            self._fill()
            self._start()
            self._wait_ready()
            self._scratch = scratch.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._scratch.close()

    def stop(self) -> None:
        """End it; what it said and its data stay until the block is left."""
        process = self._process
        if process is not None and process.poll() is None:
            end_process(process, STOP_SECONDS)

    def said(self) -> str:
        """The end of its log."""
        return (self._directory / "log").read_text(errors="replace")[-_LOG_SHOWN:]

    @abstractmethod
    def _options(self, data: Path) -> list[str]:
        """Its flags beside those for configuration and address: where its data lie, for one."""

    def _fill(self) -> None:  # noqa: B027 - most begin with nothing
        """Put data where it will look for them."""

    def _write_config(self) -> Path:
        file = self._directory / "config.yml"
        file.write_text(yaml.safe_dump(self._config), encoding="utf-8")
        return file

    def _start(self) -> None:
        self.address = f"127.0.0.1:{free_ports(1)[0]}"
        flags = [f"--config.file={self._write_config()}", f"--web.listen-address={self.address}"]
        command = [installed(self._program), *flags, *self._options(self._directory / "data")]
        with (self._directory / "log").open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._directory)

    def _wait_ready(self) -> None:
        process = self._process
        assert process is not None

        def ready() -> bool:
            assert process.poll() is None, f"{self._program} ended with {process.returncode}:\n{self.said()}"
            return self._http("/-/ready")[0] == 200

        wait_until(ready, READY_SECONDS, lambda: f"{self._program} was never ready:\n{self.said()}")

    def _http(self, path: str, body: bytes | None = None, method: str = "GET") -> tuple[int, str]:
        """Status and text of an answer; status 0: there is none, and why."""
        return ask(urllib.request.Request(f"http://{self.address}{path}", data=body, method=method), _TIMEOUT)
