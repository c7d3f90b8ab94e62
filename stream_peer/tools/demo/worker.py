"""The demo's worker: a process of its own, started as a user would start it."""

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from stream_peer.errors import BrokerUnavailableError, NotAuthorisedError, StreamPeerError, TopicsError
from stream_peer.tools.demo.brokers import end_process

READY_SECONDS = 60.0
STOP_SECONDS = 30.0

_ERRORS: Mapping[int, type[StreamPeerError]] = {69: BrokerUnavailableError, 77: NotAuthorisedError, 78: TopicsError}


class DemoWorker:
    """Context manager: ``stream-peer worker`` with the given flags, told to stop at the end.

    Parameters
    ----------
    flags : sequence of str
        Flags of the worker, besides those for its log and port.
    environment : mapping of str
        Its environment.

    Attributes
    ----------
    log : Path
        The file that it logs to, while it runs.
    """

    def __init__(self, flags: Sequence[str], environment: Mapping[str, str]) -> None:
        own = ["--http-port", "0", "--log-format", "json", "--log-level", "info"]
        self.command = [sys.executable, "-m", "stream_peer", "worker", *flags, *own]
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        self._scratch = contextlib.ExitStack()
        self.log = Path()

    def __enter__(self) -> Self:
        directory = self._scratch.enter_context(tempfile.TemporaryDirectory(prefix="stream-peer-demo-"))
        self.log = Path(directory) / "worker.log"
        with self.log.open("wb") as log:
            # In a session of its own: Ctrl-C is for the demo, which then stops the worker.
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                self.command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._scratch:
            if self._process is not None and self._process.poll() is None:
                end_process(self._process, STOP_SECONDS)

    def stop(self) -> None:
        """Tell it to stop (SIGTERM), as an orchestrator does.

        Raises
        ------
        StreamPeerError
            If it does not stop in time, or not cleanly.
        """
        code = end_process(self._running(), STOP_SECONDS)
        if code is None:
            msg = f"the worker did not stop within {STOP_SECONDS:g} s"
            raise StreamPeerError(msg)
        if code:
            raise self._ended(code)

    def check(self) -> None:
        """Refuse to go on without it.

        Raises
        ------
        StreamPeerError
            If it has ended, with its exit code.
        """
        code = self._running().poll()
        if code is not None:
            raise self._ended(code)

    def wait_ready(self) -> Iterator[None]:
        """Yield until it serves; the caller waits a moment each time.

        Raises
        ------
        StreamPeerError
            If it ends, or is not ready in time.
        """
        deadline = time.monotonic() + READY_SECONDS
        while self.url() is None:
            self.check()
            if time.monotonic() > deadline:
                msg = f"the worker was not ready within {READY_SECONDS:g} s: {self._last_word()}"
                raise StreamPeerError(msg)
            yield

    def url(self) -> str | None:
        """Where it serves metrics and health, once it is ready."""
        for event in self._events():
            if event.get("event") == "worker_ready":
                return str(event.get("http"))
        return None

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is None:
            msg = "the worker was not started"
            raise StreamPeerError(msg)
        return self._process

    def _ended(self, code: int) -> StreamPeerError:
        return _ERRORS.get(code, StreamPeerError)(f"the worker ended with exit code {code}: {self._last_word()}")

    def _last_word(self) -> str:
        """The last thing that it logged as wrong, or the last thing at all."""
        lines = self.log.read_text(errors="replace").strip().splitlines()
        wrong = [event for event in self._events() if event.get("level") in {"error", "critical"}]
        if wrong:
            return str(wrong[-1].get("reason") or wrong[-1].get("event"))
        plain = [line for line in lines if not line.startswith("{")]
        return " ".join(plain[-3:]) or (lines[-1] if lines else "it said nothing")

    def _events(self) -> Iterator[dict[str, Any]]:
        for line in self.log.read_text(errors="replace").splitlines():
            with contextlib.suppress(json.JSONDecodeError):
                event = json.loads(line)
                if isinstance(event, dict):
                    yield event
