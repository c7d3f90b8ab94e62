"""Time as an event: when a deadline of an owned partition has passed and no record says so, its owner writes a tick."""

from collections.abc import Iterable

import msgspec

from stream_peer.events import topics
from stream_peer.events.times import Milliseconds, to_iso
from stream_peer.kafka.worker.partition import OwnedPartition
from stream_peer.log.signatures import Signatures
from stream_peer.log.stage import Output

_AGAIN_AFTER: Milliseconds = (
    30_000  # a tick that did not move the clock was ignored: our clock is ahead of the broker's
)


class Ticker:
    """Remembers which ticks are under way, so that each deadline is met once."""

    def __init__(self, signatures: Signatures) -> None:
        self._signatures = signatures
        self._written: dict[int, Milliseconds] = {}

    def due(self, partitions: Iterable[OwnedPartition], at: Milliseconds) -> list[Output]:
        """Ticks to write now, at wall-clock time ``at``, for partitions that have read all there is."""
        return [self._tick(partition, at) for partition in partitions if self._is_due(partition, at)]

    def _is_due(self, partition: OwnedPartition, at: Milliseconds) -> bool:
        deadline = partition.stage.deadline()
        if deadline is None or deadline > at or partition.stage.clock >= at:
            return False
        return at >= self._written.get(partition.tp.partition, 0) + _AGAIN_AFTER or self._arrived(partition)

    def _arrived(self, partition: OwnedPartition) -> bool:
        return partition.stage.clock >= self._written[partition.tp.partition]

    def _tick(self, partition: OwnedPartition, at: Milliseconds) -> Output:
        number = partition.tp.partition
        self._written[number] = at
        value = msgspec.json.encode({"type": "tick", "now": to_iso(at)})
        return self._signatures.signed(Output(topics.FORECAST_EVENTS, b"tick", value, at, number))
