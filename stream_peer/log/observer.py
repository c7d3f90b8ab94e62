"""Reports of a worker about its work: metrics implement this, ``cli`` passes them, tests pass a fake."""

from stream_peer.events.times import Milliseconds
from stream_peer.log.stage import Effects, Stage


class Observer:
    """Receives reports of what happened, and ignores them: a subclass uses those it wants.

    Its methods are quick and never raise. ``stage_name`` is ``question``, ``feed`` or ``control``.
    """

    def owned(self, stage_name: str, partition: int, stage: Stage) -> None:
        """The partition is this worker's now; ``stage`` holds its recovered state."""

    def released(self, stage_name: str, partition: int) -> None:
        """The partition is no longer this worker's: its metrics end."""

    def folded(self, stage_name: str, partition: int, records: int, seconds: float, effects: Effects) -> None:
        """Records were folded in ``seconds`` and their effects acknowledged by the broker."""

    def snapshotted(self, stage_name: str, partition: int, rows: int, bytes_: int, seconds: float) -> None:
        """State was made durable: ``rows`` changelog records of ``bytes_`` bytes."""

    def stored(self, stage_name: str, partition: int, records: int, bytes_: int) -> None:
        """The durable state of an owned partition has ``records`` records with values of ``bytes_`` bytes."""

    def lag(
        self, stage_name: str, partition: int, records: int | None, oldest: Milliseconds | None, waiting: float = 0.0
    ) -> None:
        """``records`` of an owned partition are not folded yet, the oldest is of ``oldest``; None: not known.

        It has waited ``waiting`` seconds for the end of an open transaction; later records cannot be read before.
        """

    def polled(self, seconds_since_last: float) -> None:
        """The fetch loop began another turn."""

    def rebalanced(self) -> None:
        """The group's partitions were assigned again."""

    def recovering(self, stage_name: str, partition: int, remaining: int) -> None:
        """``remaining`` changelog records are still to be read before the partition can be owned."""

    def input_lost(self, topic: str, partition: int, records: int) -> None:
        """Records were deleted from the input before they were read (retention shorter than the outage)."""

    def rebuilding(self, stage_name: str, partition: int, done: int, total: int) -> None:
        """A rebuild has folded ``done`` of ``total`` records; its feeds wait meanwhile, other feeds go on."""

    def rebuilt(self, stage_name: str, partition: int) -> None:
        """A rebuild has ended; what waited for it follows."""

    def audited(self, stage_name: str, agrees: bool) -> None:  # noqa: FBT001 - what it was about
        """An audit compared the state with what it is computed from. If they differ, a rebuild follows."""

    def retried(self, batches: int) -> None:
        """So many batches were sent again, because a broker did not accept them."""

    def skewed(self, seconds: float | None) -> None:
        """Our clock is ``seconds`` ahead of the brokers'; None: not known."""
