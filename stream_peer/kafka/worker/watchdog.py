"""A thread that ends the process when it may no longer act: frozen, blocked, too slow, stuck, or told to stop.

A worker that was expelled from its group can still write. What it writes is ignored in the next recovery, but the
sooner it is gone the better; and leaving is always safe, because nothing depends on a clean stop.
"""

import asyncio
import logging
import os
import threading
import time
import uuid
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

import structlog

from stream_peer.events.times import Milliseconds

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


class Exit(NamedTuple):
    """Why the process ends, and with which code."""

    code: int
    reason: str


class Limits(NamedTuple):
    """How long what may take, in seconds."""

    silence: float
    """A process frozen or a loop blocked for longer has lost its membership, or soon will."""
    write: float
    shutdown: float
    broker: float
    """Without an answer from any broker."""


class Vitals:
    """What the event loop reports and the watchdog thread reads: plain values, so that no lock is needed."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = now) -> None:
        self.limits = limits
        self._clock = clock
        self._beat = clock()
        self._broker_seen = clock()
        self._stopping: float | None = None
        self._writes: dict[object, float] = {}
        self._markers: dict[str, tuple[Hashable, float, float]] = {}

    def beat(self) -> None:
        """Say that the event loop turns."""
        self._beat = self._clock()

    def broker_answered(self) -> None:
        """Say that a broker answered."""
        self._broker_seen = self._clock()

    def stopping(self) -> None:
        """Say that the process was told to stop: its deadline runs from the first time."""
        if self._stopping is None:
            self._stopping = self._clock()

    @property
    def is_stopping(self) -> bool:
        """Whether the process was told to stop."""
        return self._stopping is not None

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Run a write whose acknowledgement has a deadline, counted from the submission."""
        token = object()
        self._writes[token] = self._clock()
        try:
            yield
        finally:
            del self._writes[token]

    def progress(self, what: str, marker: Hashable, limit: float) -> None:
        """Report how far ``what`` has come; None: there is nothing to do. Standing still for ``limit`` s is fatal."""
        known = self._markers.get(what)
        if marker is None:
            self._markers.pop(what, None)
        elif known is None or known[0] != marker:
            self._markers[what] = (marker, self._clock(), limit)

    def retain(self, names: set[str]) -> None:
        """Forget the progress of everything else."""
        for what in set(self._markers) - names:
            self._markers.pop(what, None)

    def fault(self) -> Exit | None:
        """Why the process must end now, if it must."""
        at = self._clock()
        return self._stop_overdue(at) or self._blocked(at) or self._write_overdue(at) or self._stuck(at)

    def stuck(self) -> str | None:
        """What has stood still for more than half of what it may, for the liveness probe."""
        at = self._clock()
        return next((what for what, (_, since, limit) in list(self._markers.items()) if at - since > limit / 2), None)

    @property
    def silence(self) -> float:
        """Seconds since the loop last turned."""
        return self._clock() - self._beat

    def _blocked(self, at: float) -> Exit | None:
        if at - self._beat <= self.limits.silence:
            return None
        return Exit(70, f"the event loop was blocked for {at - self._beat:.1f} s")

    def _write_overdue(self, at: float) -> Exit | None:
        writes = list(self._writes.values())
        if writes and at - min(writes) > self.limits.write:
            return Exit(69, f"a write was not acknowledged within {self.limits.write:g} s (batch_deadline)")
        if not writes and at - self._broker_seen > self.limits.broker:
            return Exit(69, f"no broker answered for {self.limits.broker:g} s (broker_patience)")
        return None

    def _stop_overdue(self, at: float) -> Exit | None:
        if self._stopping is None or at - self._stopping <= self.limits.shutdown:
            return None
        broker_lost = bool(self._writes) or at - self._broker_seen > self.limits.shutdown
        return Exit(69 if broker_lost else 70, f"stopping took longer than {self.limits.shutdown:g} s")

    def _stuck(self, at: float) -> Exit | None:
        if self._stopping is not None:
            return None
        for what, (_, since, limit) in list(self._markers.items()):
            if at - since > limit:
                return Exit(70, f"{what} stood still for {limit:g} s")
        return None


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

    def __init__(self, vitals: Vitals, leave: Callable[[int, str], None] = leave) -> None:
        self._vitals = vitals
        self._leave = leave
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._vitals.beat()
        self._vitals.broker_answered()
        self._thread.start()

    def stop(self) -> None:
        """End watching: the loop is about to end properly."""
        self._done.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        last = now()
        while not self._done.wait(LOOK_EVERY_SECONDS):
            at = now()
            if at - last > self._vitals.limits.silence:
                fault: Exit | None = Exit(70, f"the process was frozen for {at - last:.1f} s")
            else:
                fault = self._vitals.fault()
            if fault is not None:
                self._leave(*fault)
                return
            last = at
