"""The thread in which Faust runs the Kafka client of a consumer, and its end."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from aiokafka.client import ConnectionGroup
from aiokafka.errors import KafkaError
from faust.transport.drivers import aiokafka as driver

from stream_peer.kafka.client.log_ends import LogEnd, high_watermarks, log_end
from stream_peer.kafka.client.security import ISOLATION
from stream_peer.kafka.worker.instances import notice_replacement


class ClientThread(driver.AIOKafkaConsumerThread):
    """The thread, which always comes to its end. Its client reads committed records only."""

    def _create_worker_consumer(self, transport: Any) -> Any:
        """Make the client. Faust reads committed records only if it also writes in transactions, which we do not."""
        client = super()._create_worker_consumer(transport)
        client._isolation_level = ISOLATION  # noqa: SLF001 - the start of the client hands it to its fetcher
        return client

    def log_end(self, tp: Any) -> LogEnd | None:
        """Where a log ended at the last fetch; None: nothing was fetched of it, or it is not ours any more."""
        client = self._consumer
        try:
            return None if client is None else log_end(client.highwater(tp), client.last_stable_offset(tp))
        except (KafkaError, AssertionError):  # aiokafka asserts that it is assigned
            return None

    async def log_ends(self, places: Sequence[Any]) -> Mapping[Any, LogEnd]:
        """Where logs end now."""
        ends: Mapping[Any, LogEnd] = await self.call_thread(self._log_ends, places)
        return ends

    async def _log_ends(self, places: Sequence[Any]) -> Mapping[Any, LogEnd]:
        client = self._ensure_consumer()
        stable = await client.end_offsets(places)  # before the high watermarks: a log only grows
        return {tp: LogEnd(high, min(high, stable[tp])) for tp, high in (await high_watermarks(client, places)).items()}

    async def on_start(self) -> None:
        """Start the client, and end the worker if another process takes its place in the group."""
        await super().on_start()
        coordinator = self._consumer._coordinator  # noqa: SLF001 - nothing of it is public
        if coordinator._group_instance_id is not None:  # noqa: SLF001
            notice_replacement(coordinator, self.consumer.app.ownership.fail)

    async def on_thread_stop(self) -> None:
        """Close the client.

        It cancels a fetch that waits to be tried again, and raises that as if it had been cancelled itself: the thread
        would end without a word, and the worker would wait for one until its time to stop is over.
        """
        if self._consumer is not None and self._consumer._coordinator is not None:  # noqa: SLF001 - it is in a group
            _leave_apart(self._consumer)
        try:
            await super().on_thread_stop()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._consumer is None or (task is not None and task.cancelling()):
                raise
            await self._consumer._client.close()  # noqa: SLF001 - what the client left undone


def _leave_apart(client: Any) -> None:
    """Have a client close without waiting for other members of its group, and leave the group on a new connection.

    A broker holds a join back until all members have come, and answers one request of a connection after the other:
    whoever stops meanwhile would wait for them twice, until its time to stop is over. The join ends with its
    connection, and is not tried again by a coordinator that closes.
    """
    coordinator = client._coordinator  # noqa: SLF001 - nothing of it is public
    close, leave = coordinator.close, coordinator._maybe_leave_group  # noqa: SLF001
    node: int | None = None

    async def closed() -> None:
        nonlocal node
        node = coordinator.coordinator_id
        connection = client._client._conns.get((node, ConnectionGroup.COORDINATION))  # noqa: SLF001
        if connection is not None and connection._requests:  # noqa: SLF001 - that it waits for
            connection.close()
        await close()

    async def left() -> None:
        if coordinator.coordinator_id is None:  # given up with the connection
            coordinator.coordinator_id = node
            coordinator._coordinator_dead_fut = asyncio.get_running_loop().create_future()  # noqa: SLF001
        if coordinator.member_id:  # which the broker knows it by, although its first join has not ended
            coordinator.generation = max(coordinator.generation, 1)
        await leave()

    coordinator.close, coordinator._maybe_leave_group = closed, left  # noqa: SLF001
