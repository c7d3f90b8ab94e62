import asyncio
import contextlib
import resource
import socket
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from stream_peer.serve.http import server
from stream_peer.serve.http.feeds import FeedAnswers
from tests.unit.serve.http.serving import Client, ended, serving

HEAD = b"GET /feeds HTTP/1.1\r\nHost: localhost\r\n"
Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def opened(client: Client, number: int) -> AsyncIterator[list[Pair]]:
    """Connections, one after the other."""
    place = urlsplit(client.server.url)
    made = [await asyncio.open_connection(place.hostname, place.port) for _ in range(number)]
    try:
        yield made
    finally:
        for _, writer in made:
            await ended(writer)


async def is_closed(reader: asyncio.StreamReader) -> bool:
    """Whether the other side ends it, rather than answer."""
    try:
        return await asyncio.wait_for(reader.read(1), 30) == b""
    except ConnectionResetError:
        return True


async def test_whoever_comes_when_all_places_are_taken_gets_that_of_the_first_who_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 3)
    async with serving() as client, opened(client, 3) as idle:
        for _, writer in idle:
            writer.write(HEAD)  # and never the end of it
        found = await client.get("/healthz/live")
        assert found.status == 200
        assert await is_closed(idle[0][0])

        idle[1][1].write(b"\r\n")
        assert (await asyncio.wait_for(idle[1][0].readline(), 30)).startswith(b"HTTP/1.1 200")


async def test_many_who_come_at_once_get_as_many_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections that the event loop takes up in one turn, before it has closed any."""
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 3)
    async with serving() as client:
        place = urlsplit(client.server.url)
        flood = [
            socket.create_connection((place.hostname, place.port)) for _ in range(20)
        ]  # nobody is served meanwhile
        async with opened(client, 3):
            ended = await asyncio.gather(*[asyncio.to_thread(is_ended, one) for one in flood])

    assert ended == [True] * 20


def is_ended(one: socket.socket) -> bool:
    """Whether the other side ends it within a while."""
    with one:
        one.settimeout(5)
        try:
            return one.recv(1) == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False


async def test_who_is_being_answered_keeps_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, answered = asyncio.Event(), asyncio.Event()

    async def slowly(*_: object) -> web.Response:
        asked.set()
        await answered.wait()
        return web.Response(text="at last")

    monkeypatch.setattr(server, "MOST_CONNECTIONS", 2)
    monkeypatch.setattr(FeedAnswers, "feeds", slowly)
    async with serving() as client, opened(client, 2) as (first, second):
        first[1].write(HEAD + b"\r\n")
        await asked.wait()
        assert (await client.get("/healthz/live")).status == 200
        assert await is_closed(second[0])
        answered.set()
        assert (await asyncio.wait_for(first[0].readline(), 30)).startswith(b"HTTP/1.1 200")


async def test_where_all_are_being_answered_the_newest_gets_in(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = asyncio.Event()

    async def slowly(*_: object) -> web.Response:
        asked.set()
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return] # never

    monkeypatch.setattr(server, "MOST_CONNECTIONS", 1)
    monkeypatch.setattr(FeedAnswers, "feeds", slowly)
    async with serving() as client, opened(client, 1) as (busy,):
        busy[1].write(HEAD + b"\r\n")
        await asked.wait()
        assert (await client.get("/healthz/live")).status == 200
        assert await is_closed(busy[0])


async def test_an_answer_that_nobody_takes_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    given_up, whole = asyncio.Event(), 50_000_000
    abort = server.Connection.abort

    def noted(one: server.Connection) -> None:
        abort(one)
        given_up.set()

    async def much(*_: object) -> web.Response:
        return web.Response(body=b"x" * whole)

    monkeypatch.setattr(server, "TAKING_SECONDS", 0.1)
    monkeypatch.setattr(server.Connection, "abort", noted)
    monkeypatch.setattr(FeedAnswers, "feeds", much)
    async with serving() as client, opened(client, 1) as [(reader, writer)]:
        writer.write(HEAD + b"\r\n")
        await asyncio.wait_for(given_up.wait(), 30)
        with contextlib.suppress(ConnectionResetError):
            assert len(await asyncio.wait_for(reader.read(), 30)) < whole


async def test_a_connection_that_sends_many_requests_ahead_is_ended() -> None:
    async with serving() as client, opened(client, 2) as [(greedy, sends), (modest, sends_few)]:
        sends.write((HEAD + b"\r\n") * (server.MOST_WAITING + 2))
        sends_few.write((HEAD + b"\r\n") * 3)
        answers = [await asyncio.wait_for(modest.readuntil(b"HTTP/1.1 200"), 30) for _ in range(3)]
        with contextlib.suppress(ConnectionResetError):
            taken = await asyncio.wait_for(greedy.read(), 30)
            assert taken.count(b"HTTP/1.1 200") <= 1

    assert len(answers) == 3


@pytest.mark.parametrize(("limit", "most"), [(1_024, 256), (256, 104), (64, 8), (24, 2), (-1, 256)])
def test_no_more_connections_are_held_than_a_process_has_descriptors_for(
    monkeypatch: pytest.MonkeyPatch, limit: int, most: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (limit, limit))

    assert server.most_connections() == most


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs Linux")
def test_a_probe_is_answered_although_idle_connections_take_every_descriptor() -> None:
    command = [sys.executable, "-m", "tests.unit.serve.http.few_descriptors"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        place = urlsplit(process.stdout.readline().strip())
        idle = [socket.create_connection((place.hostname, place.port)) for _ in range(100)]
        try:
            with urllib.request.urlopen(f"http://{place.netloc}/healthz/live", timeout=30) as answer:
                assert answer.status == 200
        finally:
            for one in idle:
                one.close()
            process.communicate()
