"""Explanations over HTTP, by real processes without a broker: what reads the log is played."""

import asyncio
import contextlib
import os
import select
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import psutil  # type: ignore[import-untyped] # it has none
import pytest

from stream_peer.serve.http.explain import ExplainAnswers, ExplainTool
from stream_peer.settings.process import Secret, Security, Settings
from tests.unit.serve.http.season_process import tool
from tests.unit.serve.http.serving import Client, sources
from tests.unit.serve.http.serving import serving as serving_all

EXPLAIN = "/feeds/econ/experts/e1/explain"


def started() -> list[psutil.Process]:
    """Processes that explain: other tests in this process may have started others."""
    found = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if "resource_tracker" not in " ".join(child.cmdline()):
                found.append(child)
    return found


def serving(tool: ExplainTool, **limits: Any) -> AbstractAsyncContextManager[Client]:
    return serving_all(sources(answers=ExplainAnswers(tool, **limits)))


async def get(client: Client, path: str = EXPLAIN) -> tuple[int, Mapping[str, str], Any]:
    found = await client.get(path)
    return found.status, found.headers, found.json


class Gate:
    """A pipe with a name, which a process reads to its end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)

    @asynccontextmanager
    async def entered(self, request: "asyncio.Task[Any]") -> AsyncIterator[int]:
        """Within it the process of a request waits; after it the process goes on."""
        opening = asyncio.create_task(asyncio.to_thread(os.open, self.path, os.O_WRONLY))  # until there is a reader
        await asyncio.wait([opening, request], return_when=asyncio.FIRST_COMPLETED)
        reader = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)  # so that opening ends also if the process has ended
        end = await opening
        os.close(reader)
        try:
            assert not request.done(), request.result()
            yield end
        finally:
            os.close(end)


async def is_dead(end: int) -> bool:
    """Whether the process that reads a pipe ends, within half a minute."""
    poll = select.poll()
    poll.register(end, 0)  # errors are always told: the pipe has no reader
    return bool(await asyncio.to_thread(poll.poll, 30_000))


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path / "gate")


async def test_the_same_explanation_is_served_as_json() -> None:
    async with serving(tool()) as server:
        status, headers, body = await get(server, f"{EXPLAIN}?weight=select&questions=2&from=3")

    assert status == 200
    assert headers["Content-Type"].startswith("application/json")
    assert (body["feed"], body["expert"], body["weight"], body["since"]["revision"]) == ("econ", "e1", "select", 3)
    assert len(body["questions"]) == 2
    assert sum(one["change"] for one in body["causes"]) == pytest.approx(body["difference"], abs=1e-9)


@pytest.mark.parametrize(
    ("path", "status", "detail"),
    [
        ("/feeds/econ/experts/E1/explain", 404, "did you mean e1"),
        ("/feeds/eco/experts/e1/explain", 404, "did you mean econ?"),
        (f"{EXPLAIN}?from=soon", 400, "'soon' is neither a moment"),
        (f"{EXPLAIN}?from=5&to=4", 400, "from is after to"),
        (f"{EXPLAIN}?from=999999&to=2026-03-03", 400, "from is after to"),
        (f"{EXPLAIN}?from=3&from=5", 400, "from can be given once"),
        (f"{EXPLAIN}?weight=both", 400, "neither mix nor select"),
        (f"{EXPLAIN}?questions=-1", 400, "questions is '-1'"),
        (f"{EXPLAIN}?questions=%D9%A3", 400, "no number within 0..10000"),
        (f"{EXPLAIN}?since=3", 400, "no parameter 'since'"),
    ],
)
async def test_faults_are_problem_documents(path: str, status: int, detail: str) -> None:
    async with serving(tool()) as server:
        found, headers, body = await get(server, path)

    assert (found, body["status"]) == (status, status)
    assert headers["Content-Type"].startswith("application/problem+json")
    assert detail in body["detail"]


@pytest.mark.parametrize(
    ("play", "status", "title", "detail"),
    [
        ("finds_no_broker", 503, "The log cannot be read", "No broker answers at 127.0.0.1:9092."),
        ("needs_memory", 503, "Too much to read", "needs more memory than 512 MB; `stream-peer explain` has no such"),
        ("dies", 503, "Too much to read", "was killed, most likely because memory ran out"),
        ("fails", 500, "Internal Server Error", "its log says why"),
    ],
)
async def test_when_the_process_fails_the_client_learns_why(play: str, status: int, title: str, detail: str) -> None:
    async with serving(tool(play)) as server:
        found, _headers, body = await get(server)

    assert (found, body["title"]) == (status, title)
    assert detail in body["detail"]


async def test_secrets_reach_the_process_by_its_standard_input_and_not_by_its_command_line() -> None:
    settings = Settings(prefix="acme-", security=Security(password=Secret("hunter2")))
    async with serving(tool("reveals", settings=settings)) as server:
        _, _, body = await get(server)

    told, command = body["detail"].split(": ", 1)
    assert told == "hunter2 b'secret' acme-"
    assert command.endswith("season_process reveals ")


async def test_one_is_computed_at_a_time(gate: Gate) -> None:
    async with serving(tool("waits", gate.path)) as server:
        first = asyncio.create_task(get(server))
        async with gate.entered(first):
            second = await get(server, "/feeds/econ/experts/e2/explain")
        assert (second[0], second[1]["Retry-After"], second[2]["title"]) == (429, "5", "Busy")
        assert (await first)[0] == 200


async def test_a_client_that_leaves_takes_its_process_with_it(gate: Gate) -> None:
    async with serving(tool("waits", gate.path)) as server, aiohttp.ClientSession() as session:
        leaving = asyncio.create_task(session.get(server.server.url + EXPLAIN))
        async with gate.entered(leaving) as end:
            leaving.cancel()

            assert await is_dead(end)

        gate.path.unlink()
        while (found := await get(server))[0] == 429:
            pass  # until the server has seen that the process is dead
        assert found[0] == 200


async def test_a_worker_that_stops_kills_the_process_and_says_so_to_the_client(gate: Gate) -> None:
    async with serving(tool("waits", gate.path)) as server:
        waiting = asyncio.create_task(get(server))
        async with gate.entered(waiting) as end:
            await server.server.on_stop()
            status, headers, body = await waiting

            assert await is_dead(end)
    assert (status, headers["Retry-After"]) == (503, "5")
    assert body["detail"] == "the worker that was asked is stopping; ask again"


async def test_a_log_that_takes_too_long_to_read_is_given_up_and_the_process_killed(gate: Gate) -> None:
    async with serving(tool("waits", gate.path), patience_seconds=0.01) as server:
        status, _, body = await get(server)

        assert not started()
    assert (status, body["title"]) == (503, "Too much to read")
    assert "stream-peer explain" in body["detail"]


async def test_an_answer_that_is_too_long_is_not_kept() -> None:
    async with serving(tool(), most_bytes=1_000) as server:
        status, _, body = await get(server)

    assert (status, body["title"]) == (503, "Too much to read")
    assert "the answer is longer than 0.001 MB" in body["detail"]
