"""How far a partition is behind, where a log may end without a record, or in one that got lost.

Markers of transactions and aborted records have offsets, and are never read. A lost batch is noticed by the next one,
which is refused. At the end of a log there is no next one: then the consumer's position is past what the partition
wants, and only reading again tells a loss from an end without a record.
"""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

from aiokafka.errors import KafkaError

from stream_peer.kafka.client.log_ends import LogEnd
from stream_peer.kafka.worker.partition import OwnedPartition
from stream_peer.kafka.worker.watchdog import now

_POSITION_SECONDS = 2.0
_SETTLED_SECONDS = 5.0  # after which a fetch from the wanted offset would have brought what is there
_AGAIN_SECONDS = 10.0


class Lag(NamedTuple):
    """What is not folded yet of what can be read.

    ``position``: where the consumer is while nothing waits to be folded. It moves as long as it reads, also through
    aborted records, of which nothing comes.
    """

    records: int
    position: int | None = None


class _Sought(NamedTuple):
    want: int
    end: int
    first: float
    last: float
    is_empty: bool = False


class Lags:
    """Lag by partition; reads again where only that can tell."""

    def __init__(self, clock: Callable[[], float] = now) -> None:
        self._clock = clock
        self._sought: dict[Any, _Sought] = {}

    async def of(self, partition: OwnedPartition, end: LogEnd | None, consumer: Any) -> Lag:
        """How far the partition is behind the last stable offset of its log."""
        lag = 0 if end is None else max(0, end.stable - partition.reached)
        if end is None or not (lag and partition.idle):
            self._sought.pop(partition.tp, None)
            return Lag(lag)
        try:
            position = await asyncio.wait_for(consumer.position(partition.tp), _POSITION_SECONDS)
        except (KafkaError, TimeoutError):  # revoked meanwhile
            return Lag(0)
        return Lag(lag, position) if position < end.stable else self._past_the_end(partition, end.stable, lag, consumer)

    def _past_the_end(self, partition: OwnedPartition, end: int, lag: int, consumer: Any) -> Lag:
        """Nothing comes up to the end: because there is no record, or because it got lost on the way."""
        at, tp, want = self._clock(), partition.tp, partition.want
        known = self._sought.get(tp)
        if known is None or (known.want, known.end) != (want, end):
            known = _Sought(want, end, at, float("-inf"))
        found_nothing = consumer.found_nothing(tp, want)
        if found_nothing and known.is_empty:  # in two looks: what was fetched at the first has arrived at the second
            partition.pass_over(end)
            consumer.pass_over(tp, end)
            lag = 0
        elif not found_nothing and at - known.last > _AGAIN_SECONDS:
            consumer.read_again(tp, want)
            known = known._replace(last=at)
        self._sought[tp] = known._replace(is_empty=found_nothing)
        return Lag(0 if at - known.first > _SETTLED_SECONDS else lag)
