"""Whether this worker lives, is ready, has started: the answers to an orchestrator's probes."""

from collections.abc import Callable, Iterator, Sequence

from stream_peer.kafka.worker.heartbeats import Heartbeats
from stream_peer.kafka.worker.ownership import RunningApp

ProbeAnswer = tuple[bool, str]
"""(yes, why not); if yes, what it waits for that is no fault of its own."""

TOLD_AFTER_SECONDS = 5.0
"""Ordinary transactions are shorter, and no line of the log."""

_NOT_STARTED = (False, "starting")


class Health:
    """Answers for a worker that may not have been built yet: ``attach`` it when it is.

    Parameters
    ----------
    topics_fault : callable
        What is not as planned of the topics; empty: nothing.
    """

    def __init__(self, topics_fault: Callable[[], str] = lambda: "") -> None:
        self._topics_fault = topics_fault
        self._heartbeats: Heartbeats | None = None
        self._apps: Sequence[RunningApp] = ()
        self._has_started = False

    def attach(self, heartbeats: Heartbeats, apps: Sequence[RunningApp]) -> None:
        """Say whose health it is; the topics were checked before."""
        self._heartbeats, self._apps = heartbeats, apps

    def live(self) -> ProbeAnswer:
        """The loop turns and assigned work progresses. Otherwise a restart helps."""
        if self._heartbeats is None:
            return True, "starting"
        if self._heartbeats.silence > self._heartbeats.deadlines.silence / 2:
            return False, f"the event loop is blocked for {self._heartbeats.silence:.1f} s"
        stuck = self._heartbeats.stuck()
        return (False, f"{stuck} stands still") if stuck else (True, self._transactions())

    def ready(self) -> ProbeAnswer:
        """Partitions are assigned and recovered, none is rebuilt, brokers and topics are well, and it does not stop."""
        if self._heartbeats is None:
            return _NOT_STARTED
        if self._heartbeats.is_stopping:
            return False, "stopping"
        if fault := self._heartbeats.outage() or self._topics_fault():
            return False, fault
        waiting = self._waiting()
        rebuilds = [] if waiting else [reason for app in self._apps for reason in _rebuilds(app)]
        return (False, "; ".join(waiting or rebuilds)) if waiting or rebuilds else (True, self._transactions())

    def started(self) -> ProbeAnswer:
        """All that it was assigned was recovered once. A rebuild counts as started: only liveness watches it."""
        if self._heartbeats is None:
            return _NOT_STARTED
        waiting = self._waiting()
        return (True, "") if self._has_started else (False, "; ".join(waiting))

    def _transactions(self) -> str:
        return "; ".join(reason for app in self._apps for reason in _waits(app))

    def _waiting(self) -> list[str]:
        waiting = [reason for reason in map(_not_owning, self._apps) if reason]
        self._has_started = self._has_started or not waiting
        return waiting


def _waits(app: RunningApp) -> Iterator[str]:
    """Which partitions have waited for an open transaction for longer than ordinary ones last, and how long."""
    for partition in app.ownership.partitions():
        if partition.waiting is not None and partition.waiting >= TOLD_AFTER_SECONDS:
            where = f"{partition.tp.topic}-{partition.tp.partition}"
            yield f"{where} is waiting-for-transaction, for {partition.waiting:.0f} s"


def _rebuilds(app: RunningApp) -> Iterator[str]:
    """Which partitions are rebuilt, and how far they are, or still compute sums of what they loaded."""
    for partition in app.ownership.partitions():
        progress = partition.rebuilding
        if partition.counting:
            yield f"{app.member.group} counts what {partition.tp.topic}-{partition.tp.partition} knows"
        elif progress is not None:
            how_far = f"{progress.done} of {progress.total} records" if progress.total else "waits for its turn"
            yield f"{app.member.group} rebuilds {partition.tp.topic}-{partition.tp.partition}: {how_far}"


def _not_owning(app: RunningApp) -> str | None:
    """Why an app does not own yet what it was assigned."""
    member, ownership = app
    if not member.is_settled:
        return f"{member.group} waits for its partitions"
    if not member.is_member:
        return f"{member.group} is not in its group any more"
    assigned, owned = ownership.inputs_among(member.assignment()), len(list(ownership.partitions()))
    return f"{member.group} recovers {assigned - owned} of {assigned} partitions" if owned < assigned else None
