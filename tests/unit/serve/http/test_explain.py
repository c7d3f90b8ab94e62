"""Explanations over HTTP, without a broker: whoever reads the log is played."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from stream_peer.errors import BrokerUnavailableError
from stream_peer.serve.http.explain import WeightAnswers
from stream_peer.tools.explain.weight_account import Account
from stream_peer.tools.explain.weight_story.request import LogRead, WeightRequest
from tests.unit.serve.http.serving import Client, sources
from tests.unit.serve.http.serving import serving as serving_all
from tests.unit.tools.explain.weight_story.test_story import accounts_of


def read_season(request: WeightRequest, account: Account, go_on: Callable[[], None]) -> LogRead:
    """The log of a replayed season."""
    witness = accounts_of(account)
    go_on()
    return LogRead(request.feed in witness.feeds, witness.follower.experts, witness.feeds)


def serving(answers: WeightAnswers) -> AbstractAsyncContextManager[Client]:
    return serving_all(sources(answers=answers))


async def get(client: Client, path: str) -> tuple[int, Mapping[str, str], Any]:
    found = await client.get(path)
    return found.status, found.headers, found.json


async def test_the_same_story_is_served_as_json() -> None:
    async with serving(WeightAnswers(read_season)) as server:
        status, headers, body = await get(server, "/feeds/econ/experts/e1/explain?weight=select&questions=2&from=3")

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
        ("/feeds/econ/experts/e1/explain?from=soon", 400, "'soon' is neither a moment"),
        ("/feeds/econ/experts/e1/explain?from=5&to=4", 400, "from is after to"),
        ("/feeds/econ/experts/e1/explain?from=999999&to=2026-03-03", 400, "from is after to"),
        ("/feeds/econ/experts/e1/explain?from=3&from=5", 400, "from can be given once"),
        ("/feeds/econ/experts/e1/explain?weight=both", 400, "neither mix nor select"),
        ("/feeds/econ/experts/e1/explain?questions=-1", 400, "questions is '-1'"),
        ("/feeds/econ/experts/e1/explain?questions=%D9%A3", 400, "no number within 0..10000"),
        ("/feeds/econ/experts/e1/explain?since=3", 400, "no parameter 'since'"),
    ],
)
async def test_faults_are_problem_documents(path: str, status: int, detail: str) -> None:
    async with serving(WeightAnswers(read_season)) as server:
        found, headers, body = await get(server, path)

    assert (found, body["status"]) == (status, status)
    assert headers["Content-Type"].startswith("application/problem+json")
    assert detail in body["detail"]


async def test_a_broker_that_does_not_answer_is_told() -> None:
    def read(*_: Any) -> LogRead:
        msg = "No broker answers."
        raise BrokerUnavailableError(msg)

    async with serving(WeightAnswers(read)) as server:
        status, headers, body = await get(server, "/feeds/econ/experts/e1/explain")

    assert (status, headers["Retry-After"], body["detail"]) == (503, "5", "No broker answers.")


async def test_one_is_computed_at_a_time_and_the_next_when_it_is_done() -> None:
    entered, leave = threading.Event(), threading.Event()

    def read(request: WeightRequest, account: Account, go_on: Callable[[], None]) -> LogRead:
        entered.set()
        assert leave.wait(30)
        return read_season(request, account, go_on)

    async with serving(WeightAnswers(read)) as server:
        first = asyncio.create_task(get(server, "/feeds/econ/experts/e1/explain"))
        assert await asyncio.to_thread(entered.wait, 30)
        second = await get(server, "/feeds/econ/experts/e2/explain")
        leave.set()

        assert (second[0], second[1]["Retry-After"], second[2]["title"]) == (503, "5", "Busy")
        assert (await first)[0] == 200
        assert (await get(server, "/feeds/econ/experts/e2/explain"))[0] == 200


async def test_a_worker_that_stops_says_so_to_whoever_waits() -> None:
    entered = threading.Event()

    def read(_request: WeightRequest, _account: Account, go_on: Callable[[], None]) -> LogRead:
        entered.set()
        while True:
            go_on()

    async with serving(WeightAnswers(read)) as server:
        waiting = asyncio.create_task(get(server, "/feeds/econ/experts/e1/explain"))
        assert await asyncio.to_thread(entered.wait, 30)
        await server.server.on_stop()
        status, headers, body = await waiting

    assert (status, headers["Retry-After"]) == (503, "5")
    assert body["detail"] == "the worker that was asked is stopping; ask again"


async def test_a_log_that_is_too_long_is_given_up() -> None:
    ended = threading.Event()

    def read(_request: WeightRequest, _account: Account, go_on: Callable[[], None]) -> LogRead:
        while True:
            try:
                go_on()
            except Exception:
                ended.set()
                raise

    async with serving(WeightAnswers(read, patience_seconds=0.05)) as server:
        status, _, body = await get(server, "/feeds/econ/experts/e1/explain")

        assert (status, body["title"]) == (503, "Too much to read")
        assert "stream-peer explain" in body["detail"]
        assert await asyncio.to_thread(ended.wait, 30)
