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
    write: float
    shutdown: float
    broker: float
    """Without an answer from any broker."""


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
        write = object()
        self._writes[write] = self._clock()
        try:
            yield
        finally:
            del self._writes[write]

    def progress(self, what: str, token: Hashable, limit: float) -> None:
        """Report how far ``what`` has come; None: there is nothing to do. PathState still for ``limit`` s is fatal."""
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
        return self._stop_overdue(at) or self._blocked(at) or self._write_overdue(at) or self._stuck(at)

    def stuck(self) -> str | None:
        """What has stood still for more than half of what it may, for the liveness probe."""
        at = self._clock()
        return next((what for what, (_, since, limit) in list(self._tokens.items()) if at - since > limit / 2), None)

    @property
    def silence(self) -> float:
        """Seconds since the loop last turned."""
        return self._clock() - self._beat

    def _blocked(self, at: float) -> Exit | None:
        if at - self._beat <= self.deadlines.silence:
            return None
        return Exit(70, f"the event loop was blocked for {at - self._beat:.1f} s")

    def _write_overdue(self, at: float) -> Exit | None:
        writes = list(self._writes.values())
        if writes and at - min(writes) > self.deadlines.write:
            return Exit(69, f"a write was not acknowledged within {self.deadlines.write:g} s (batch_deadline)")
        if not writes and at - self._broker_seen > self.deadlines.broker:
            return Exit(69, f"no broker answered for {self.deadlines.broker:g} s (broker_patience)")
        return None

    def _stop_overdue(self, at: float) -> Exit | None:
        if self._stopping is None or at - self._stopping <= self.deadlines.shutdown:
            return None
        broker_lost = bool(self._writes) or at - self._broker_seen > self.deadlines.shutdown
        return Exit(69 if broker_lost else 70, f"stopping took longer than {self.deadlines.shutdown:g} s")

    def _stuck(self, at: float) -> Exit | None:
        if self._stopping is not None:
            return None
        for what, (_, since, limit) in list(self._tokens.items()):
            if at - since > limit:
                return Exit(70, f"{what} stood still for {limit:g} s")
        return None
