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
        if self._consumer is not None:
            _leave_apart(self._consumer)
        try:
            await super().on_thread_stop()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._consumer is None or (task is not None and task.cancelling()):
                raise
            await self._consumer._client.close()  # noqa: SLF001 - what the client left undone


def _leave_apart(client: Any) -> None:
    """Have a client leave its group on a new connection.

    A broker answers one request of a connection after the other, and holds a join back until all members have come: on
    the same connection whoever leaves meanwhile would wait for them, until its time to stop is over.
    """
    coordinator = client._coordinator  # noqa: SLF001 - nothing of it is public
    leave = coordinator._maybe_leave_group  # noqa: SLF001

    async def left() -> None:
        joining = client._client._conns.get((coordinator.coordinator_id, ConnectionGroup.COORDINATION))  # noqa: SLF001
        if joining is not None:
            joining.close()
        await leave()

    coordinator._maybe_leave_group = left  # noqa: SLF001
