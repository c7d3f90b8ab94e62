"""The end of the client's thread."""

import asyncio
from typing import Any

import pytest

from stream_peer.topology.consumer import ConsumerThread


class Client:
    """A client one of whose fetches waits to be tried again when it is closed."""

    def __init__(self) -> None:
        self.is_closed = False
        self._client = self

    async def stop(self) -> None:
        fetch = asyncio.ensure_future(asyncio.Event().wait())
        await asyncio.sleep(0)
        fetch.cancel()
        await fetch

    async def close(self) -> None:
        self.is_closed = True


class Waiting(Client):
    """A client whose end takes for ever."""

    async def stop(self) -> None:
        await asyncio.Event().wait()


def thread_of(client: Client) -> Any:
    made: Any = ConsumerThread.__new__(ConsumerThread)
    made._consumer, made._method_queue = client, None
    return made


async def test_a_fetch_that_waits_to_be_tried_again_does_not_keep_the_thread_from_ending() -> None:
    client = Client()

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
