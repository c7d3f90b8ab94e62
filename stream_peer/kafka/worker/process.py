"""The machine's side of the port: time, ids and threads; and every way in which the process ends at once.

A worker that was expelled from its group can still write. What it writes is ignored in the next recovery, but the
sooner it is gone the better; and leaving is always safe, because nothing depends on a clean stop.
"""

import asyncio
import logging
import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import TypeVar

import click
import structlog

from stream_peer.events.times import Milliseconds
from stream_peer.kafka.worker.heartbeats import Exit, Heartbeats

log = structlog.get_logger(__name__)

_T = TypeVar("_T")

LOOK_EVERY_SECONDS = 0.02
_SECONDS_TO_SAY_WHY = 1.0
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # goes on while a virtual machine is suspended


def now() -> float:
    """Seconds on a clock that neither steps nor stops in suspension."""
    return time.clock_gettime(_CLOCK)


class SystemRuntime:
    """Time, chance and threads of this process."""

    now = staticmethod(now)

    def wall(self) -> Milliseconds:
        """Return the time of day."""
        return time.time_ns() // 1_000_000

    def fresh_id(self) -> str:
        """Return 12 random hex digits."""
        return uuid.uuid4().hex[:12]

    async def aside(self, work: Callable[[], _T]) -> _T:
        """Compute in a thread."""
        return await asyncio.to_thread(work)


def leave(code: int, reason: str, error: BaseException | None = None) -> None:
    """End the process at once. The reason is logged if that does not hang."""

    def say_why() -> None:
        log.critical("worker_ends", code=code, reason=reason, exc_info=error)
        logging.shutdown()  # says what was kept back, too

    speaker = threading.Thread(target=say_why, daemon=True)
    speaker.start()
    speaker.join(_SECONDS_TO_SAY_WHY)
    os._exit(code)


class Watchdog:
    """The thread. ``leave`` is called with a code and a reason, and normally does not return."""

    def __init__(self, heartbeats: Heartbeats, leave: Callable[[int, str], None] = leave) -> None:
        self._heartbeats = heartbeats
        self._leave = leave

    def start(self) -> None:
        """Begin to watch."""
        self._heartbeats.beat()
        self._heartbeats.broker_answered()
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    def _watch(self) -> None:
        last = now()
        while True:
            time.sleep(LOOK_EVERY_SECONDS)
            at = now()
            if at - last > self._heartbeats.deadlines.silence:
                fault: Exit | None = Exit(70, f"the process was frozen for {at - last:.1f} s")
            else:
                fault = self._heartbeats.fault()
            if fault is not None:
                self._leave(*fault)
                return
            last = at


FAULT_VARIABLE = "STREAM_PEER_FAULT"


def _pass(_place: str) -> None:
    """Go on."""


def fault_from(environment: Mapping[str, str]) -> Callable[[str], None]:
    """What kills this process (SIGKILL) when it comes to ``PLACE`` for the N-th time; nothing without the variable.

    Raises
    ------
    click.UsageError
        If the variable is set to something else.
    """
    text = environment.get(FAULT_VARIABLE, "")
    if not text:
        return _pass
    place, _, number = text.partition(":")
    if not place or not (number or "1").isdigit():
        msg = f"{FAULT_VARIABLE} is {text!r}, not PLACE or PLACE:N"
        raise click.UsageError(msg)
    left = int(number or "1")

    def arrive(at: str) -> None:
        nonlocal left
        left -= at == place
        if left <= 0 and at == place:
            os.kill(os.getpid(), signal.SIGKILL)

    return arrive
