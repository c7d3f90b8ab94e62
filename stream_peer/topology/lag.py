"""How far a partition is behind, where the end of a log may be the marker of a transaction, or a record that got lost.

A lost batch is noticed by the next one, which is refused. At the end of a log there is no next one: then the consumer's
position is past what the partition wants, and only reading again tells a marker from a loss.
"""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

from aiokafka.errors import KafkaError

from stream_peer.topology.partition import OwnedPartition
from stream_peer.topology.watchdog import now

_POSITION_SECONDS = 2.0
_SETTLED_SECONDS = 5.0  # after which a fetch from the wanted offset would have brought what is there
_AGAIN_SECONDS = 10.0


class _Sought(NamedTuple):
    want: int
    end: int
    first: float
    last: float


class Lags:
    """Records not folded yet, by partition; reads again where only that can tell."""

    def __init__(self, clock: Callable[[], float] = now) -> None:
        self._clock = clock
        self._sought: dict[Any, _Sought] = {}

    async def of(self, partition: OwnedPartition, consumer: Any) -> int:
        """Records of the partition that are not folded yet."""
        try:
            end = consumer.highwater(partition.tp)
            lag = 0 if end is None else max(0, end - partition.reached)
            if not (lag and partition.idle):
                self._sought.pop(partition.tp, None)
                return lag
            position = await asyncio.wait_for(consumer.position(partition.tp), _POSITION_SECONDS)
        except (KafkaError, TimeoutError):  # revoked meanwhile
            return 0
        return lag if position < end else self._read_again(partition, end, lag, consumer)

    def _read_again(self, partition: OwnedPartition, end: int, lag: int, consumer: Any) -> int:
        at, known = self._clock(), self._sought.get(partition.tp)
        if known is None or (known.want, known.end) != (partition.want, end):
            known = _Sought(partition.want, end, at, at)
            consumer.read_again(partition.tp, partition.want)
        elif at - known.last > _AGAIN_SECONDS:
            known = known._replace(last=at)
            consumer.read_again(partition.tp, partition.want)
        self._sought[partition.tp] = known
        return 0 if at - known.first > _SETTLED_SECONDS else lag
