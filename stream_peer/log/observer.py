"""Reports of a worker about its work: metrics implement this, ``cli`` passes them, tests pass a fake."""

from stream_peer.events.times import Milliseconds
from stream_peer.log.stage import Effects, Stage


class Observer:
    """Receives reports of what happened; a subclass uses those it wants. Its methods are quick and never raise.

    ``stage_name`` is ``question``, ``feed`` or ``control``.
    """

    def owned(self, stage_name: str, partition: int, stage: Stage) -> None:
        """The partition is this worker's now; ``stage`` holds its recovered state."""

    def released(self, stage_name: str, partition: int) -> None:
        """The partition is another worker's: whatever was reported for it ends."""

    def folded(
        self, stage_name: str, partition: int, records: int, seconds: float, effects: Effects, last_offset: int
    ) -> None:
        """Records up to ``last_offset`` were folded in ``seconds`` and their effects acknowledged by the broker."""

    def snapshotted(self, stage_name: str, partition: int, rows: int, bytes_: int, seconds: float) -> None:
        """State was made durable: ``rows`` changelog records of ``bytes_`` bytes."""

    def stored(self, stage_name: str, partition: int, records: int, bytes_: int) -> None:
        """The durable state of an owned partition is so many records, their values so many bytes."""

    def lag(
        self, stage_name: str, partition: int, records: int | None, oldest: Milliseconds | None, waiting: float = 0.0
    ) -> None:
        """So many records of an owned partition were not yet folded, the oldest of that time; None: not known.

        It has waited so many seconds for the end of an open transaction, behind which nothing can be read.
        """

    def polled(self, seconds_since_last: float) -> None:
        """The fetch loop came round."""

    def rebalanced(self) -> None:
        """The group's partitions were assigned again."""

    def recovering(self, stage_name: str, partition: int, remaining: int) -> None:
        """So many changelog records are still to be read before the partition can be owned."""

    def input_lost(self, topic: str, partition: int, records: int) -> None:
        """Records were gone from the input before they were read (retention shorter than the outage)."""

    def rebuilding(self, stage_name: str, partition: int, done: int, total: int) -> None:
        """A rebuild has folded so many of the log's records; the partition stands still until it has folded all."""

    def rebuilt(self, stage_name: str, partition: int, seconds: float) -> None:
        """A rebuild has ended, and the partition goes on."""

    def audited(self, stage_name: str, partition: int, agrees: bool) -> None:  # noqa: FBT001 - what it was about
        """The state was compared with what it follows from. If it does not agree, a rebuild follows."""

    def retried(self, batches: int) -> None:
        """So many batches had to be sent once more, because a broker did not take them."""

    def skewed(self, seconds: float | None) -> None:
        """So far is our clock ahead of the brokers'; None: nothing tells it."""


class NullObserver(Observer):
    """Ignores all reports."""
