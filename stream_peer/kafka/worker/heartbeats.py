"""What the event loop reports of its health, and when that is reason to end the process."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import NamedTuple


class Exit(NamedTuple):
    """Why the process ends, and with which code."""

    code: int
    reason: str


class Deadlines(NamedTuple):
    """How long what may take, in seconds."""

    silence: float
    """A process frozen or a loop blocked for longer has lost its membership, or soon will."""
    shutdown: float
    broker: float
    """Without an answer from any broker, or without the acknowledgement of a write."""


OUTAGE_SECONDS = 10.0
"""Of waiting for brokers, after which a worker is not ready."""
_SLOW_SECONDS = 5.0  # of waiting for brokers that are well: between two answers lie a pause and a slow request


class Heartbeats:
    """What the event loop reports and the watchdog thread reads: plain values, so that no lock is needed."""

    def __init__(self, deadlines: Deadlines, clock: Callable[[], float]) -> None:
        self.deadlines = deadlines
        self._clock = clock
        self._beat = clock()
        self._broker_seen = clock()
        self._stopping: float | None = None
        self._writes: dict[object, float] = {}
        self._tokens: dict[str, tuple[Hashable, float, float]] = {}

    def beat(self) -> None:
        """Say that the event loop turns."""
        self._beat = self._clock()

    def broker_answered(self) -> None:
        """Say that a broker answered."""
        self._end_wait(self._broker_seen)
        self._broker_seen = self._clock()

    def _end_wait(self, since: float) -> None:
        """Work that stood still while brokers did not answer begins to count from here."""
        at = self._clock()
        if at - since > _SLOW_SECONDS:
            self._tokens = {what: (token, at, limit) for what, (token, _, limit) in self._tokens.items()}

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
        """Run a write; brokers may take as long to acknowledge it as they may be silent."""
        write = object()
        self._writes[write] = self._clock()
        try:
            yield
        finally:
            self._end_wait(self._writes.pop(write))

    def progress(self, what: str, token: Hashable, limit: float) -> None:
        """Report how far ``what`` has come; None: there is nothing to do. Standing still for ``limit`` s is fatal."""
        known = self._tokens.get(what)
        if token is None:
            self._tokens.pop(what, None)
        elif known is None or known[0] != token:
            self._tokens[what] = (token, self._clock(), limit)

    def retain(self, names: set[str]) -> None:
        """Forget the progress of everything else."""
        for what in [what for what in self._tokens if what not in names]:
            self._tokens.pop(what, None)

    def fault(self) -> Exit | None:
        """Why the process must end now, if it must."""
        at = self._clock()
        return self._stop_overdue(at) or self._blocked(at) or self._broker_overdue(at) or self._stuck(at)

    def stuck(self) -> str | None:
        """What has stood still for more than half of what it may, for the liveness probe."""
        until = self._answered_until(self._clock())
        return next((what for what, (_, since, limit) in list(self._tokens.items()) if until - since > limit / 2), None)

    def outage(self) -> str | None:
        """For how long brokers have not answered, if that is long, for the readiness probe."""
        at = self._clock()
        silent, unwritten = at - self._broker_seen, at - self._oldest_write(at)
        if silent > OUTAGE_SECONDS:
            return f"no broker has answered for {silent:.0f} s"
        return f"a write has not been acknowledged for {unwritten:.0f} s" if unwritten > OUTAGE_SECONDS else None

    def _oldest_write(self, at: float) -> float:
        return min(list(self._writes.values()), default=at)

    def _answered_until(self, at: float) -> float:
        """Until when brokers answered: what stands still later is no fault of this process."""
        return min(at, self._broker_seen + _SLOW_SECONDS, self._oldest_write(at))

    @property
    def silence(self) -> float:
        """Seconds since the loop last turned."""
        return self._clock() - self._beat

    def _blocked(self, at: float) -> Exit | None:
        if at - self._beat <= self.deadlines.silence:
            return None
        return Exit(70, f"the event loop was blocked for {at - self._beat:.1f} s")

    def _broker_overdue(self, at: float) -> Exit | None:
        patience = self.deadlines.broker
        if at - self._broker_seen > patience:
            return Exit(69, f"no broker answered for {patience:g} s (broker_patience)")
        if at - self._oldest_write(at) > patience:
            return Exit(69, f"a write was not acknowledged for {patience:g} s (broker_patience)")
        return None

    def _stop_overdue(self, at: float) -> Exit | None:
        if self._stopping is None or at - self._stopping <= self.deadlines.shutdown:
            return None
        broker_lost = bool(self._writes) or at - self._broker_seen > self.deadlines.shutdown
        return Exit(69 if broker_lost else 70, f"stopping took longer than {self.deadlines.shutdown:g} s")

    def _stuck(self, at: float) -> Exit | None:
        if self._stopping is not None:
            return None
        until = self._answered_until(at)
        for what, (_, since, limit) in list(self._tokens.items()):
            if until - since > limit:
                return Exit(70, f"{what} stood still for {limit:g} s")
        return None
