"""The thread in which Faust runs the Kafka client of a consumer, and its end."""

import asyncio
from typing import Any

from aiokafka.client import ConnectionGroup
from faust.transport.drivers import aiokafka as driver


class ClientThread(driver.AIOKafkaConsumerThread):
    """The thread, which always comes to its end."""

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
