"""The end of the client's thread."""

import asyncio
from typing import Any

import pytest
from aiokafka.client import ConnectionGroup

from stream_peer.kafka.worker.faust_bridge import ClientThread


class Connection:
    """To the coordinator of a group: a join waits for its answer."""

    def __init__(self) -> None:
        self._requests = ["join"]
        self.ended = asyncio.Event()

    def close(self) -> None:
        self._requests = []
        self.ended.set()


class Coordinator:
    """Of the group that a client is in: it closes when its join has ended, and has no connection then."""

    def __init__(self, connection: Connection) -> None:
        self.coordinator_id: int | None = 1
        self.member_id, self.generation = "member", -1
        self._coordinator_dead_fut: asyncio.Future[None] | None = None
        self.left_at: int | None = None
        self._connection = connection

    async def close(self) -> None:
        await asyncio.wait_for(self._connection.ended.wait(), 10)
        self.coordinator_id = None
        await self._maybe_leave_group()

    async def _maybe_leave_group(self) -> None:
        if self.generation > 0:
            self.left_at = self.coordinator_id


class Client:
    """A client one of whose fetches waits to be tried again when it is closed."""

    def __init__(self) -> None:
        self.is_closed = False
        self.connection = Connection()
        self._client = self
        self._conns = {(1, ConnectionGroup.COORDINATION): self.connection}
        self._coordinator = Coordinator(self.connection)

    async def stop(self) -> None:
        await self._coordinator.close()
        fetch = asyncio.ensure_future(asyncio.Event().wait())
        await asyncio.sleep(0)
        fetch.cancel()
        await fetch

    async def close(self) -> None:
        self.is_closed = True


class Unanswered(Client):
    """A client that no broker has answered yet: it is in no group."""

    async def stop(self) -> None:
        await self.close()


class Waiting(Client):
    """A client whose end takes for ever."""

    async def stop(self) -> None:
        await asyncio.Event().wait()


def thread_of(client: Client) -> Any:
    made: Any = ClientThread.__new__(ClientThread)
    made._consumer, made._method_queue = client, None
    return made


async def test_a_fetch_that_waits_to_be_tried_again_does_not_keep_the_thread_from_ending() -> None:
    client = Client()

    await thread_of(client).on_thread_stop()

    assert client.is_closed


@pytest.mark.parametrize("generation", [-1, 7])
async def test_a_join_that_waits_for_others_ends_and_the_group_is_left_be_it_the_first_one(generation: int) -> None:
    client = Client()
    client._coordinator.generation = generation

    await thread_of(client).on_thread_stop()

    assert client.connection.ended.is_set()
    assert client._coordinator.left_at == 1
    dead = client._coordinator._coordinator_dead_fut
    assert dead is not None
    assert not dead.done()  # a leave that fails finds the coordinator alive


async def test_a_client_that_no_broker_has_answered_ends_as_well() -> None:
    client: Any = Unanswered()
    client._coordinator = None

    await thread_of(client).on_thread_stop()

    assert client.is_closed


async def test_whoever_cancels_the_end_itself_is_obeyed() -> None:
    client = Waiting()
    ending = asyncio.ensure_future(thread_of(client).on_thread_stop())
    await asyncio.sleep(0)
    ending.cancel()

    with pytest.raises(asyncio.CancelledError):
        await ending
    assert not client.is_closed
