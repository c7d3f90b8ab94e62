"""The real server over sources that a test decides, and a client that tells all of an answer."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from stream_peer.events.outputs import MixedGroup, Weights, encode_output
from stream_peer.log.owners import Here, Home, Owner, QuestionRecords, Unknown
from stream_peer.serve.feed_records import FeedRecords
from stream_peer.serve.http import About, EarlyProbes, HttpServer, Sources
from stream_peer.serve.http.explain import ExplainAnswers, ExplainTool
from stream_peer.serve.metrics import Metrics
from stream_peer.settings.process import Http, Settings
from tests.feed_histories import folded, log_of, round_of
from tests.feed_outputs import rates_of, weights

FEED, QUESTION = "econ", "will it?"


class Patient:
    """Health that a test decides."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[bool, str]] = {}

    def live(self) -> tuple[bool, str]:
        return self.answers.get("live", (True, ""))

    def ready(self) -> tuple[bool, str]:
        return self.answers.get("ready", (True, ""))

    def started(self) -> tuple[bool, str]:
        return self.answers.get("startup", (True, ""))


class Followed:
    """What was published, as a test says it."""

    def __init__(self, *published: Weights, not_ready_reason: str = "") -> None:
        self.records = FeedRecords()
        self.not_ready_reason = not_ready_reason
        for each in published:
            self.publish(each)

    def publish(self, newest: Weights) -> None:
        key = newest.feed.encode()
        self.records.add_weights(key, encode_output(newest))
        self.records.add_error_rates(key, encode_output(rates_of(newest)))


class Group:
    """Owners of feeds, as a test says it."""

    def __init__(self, **owners: Owner) -> None:
        self.owners = owners

    async def of(self, feed: str) -> Owner:
        return self.owners.get(feed, Here(home()))


class Broken:
    """A stage that fails."""

    def has_feed(self, feed: str) -> bool:
        raise RuntimeError(feed)

    def question_records(self, feed: str, question_id: str) -> QuestionRecords | None:
        raise RuntimeError(question_id)

    def groups(self, feed: str) -> list[str]:
        raise RuntimeError(feed)

    def group_record(self, feed: str, group: str) -> MixedGroup | None:
        raise RuntimeError(group)


def home() -> Home:
    """A stage with a question that was scored, and two groups of questions."""
    said = {"a": 0.9, "b": 0.6, "c": 0.2, "d": 0.3, "e": 0.8}
    parts = {"chair::=Ada": (0.6, 0.5, 0.7), "chair::=Bo": (0.4, 0.5, 0.6), "cpi::<=2": (0.1, 0.2, 0.3)}
    rounds = [round_of(part, dict(zip("abc", row, strict=True)), feed=FEED) for part, row in parts.items()]
    stage, _ = folded(log_of([round_of(QUESTION, said, feed=FEED), *rounds]))
    return stage


def sources(
    *,
    health: Patient | None = None,
    following: Followed | None = None,
    owners: Group | None = None,
    answers: ExplainAnswers | None = None,
    metrics: Metrics | None = None,
) -> Sources:
    """What a server asks; by default two feeds were published, and all feeds are this worker's own."""
    return Sources(
        metrics or Metrics(),
        health or Patient(),
        following or Followed(weights(7, "a", "b", "c"), weights(3, feed="sport")),
        owners or Group(),
        answers or ExplainAnswers(ExplainTool(("false",), Settings(), b"")),
        About("worker-0", "0a1b2c3d"),
    )


class Answer(NamedTuple):
    """An answer as it came."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def is_problem(self) -> bool:
        """Whether it is a whole problem document that agrees with its status."""
        kind = self.headers["Content-Type"].startswith("application/problem+json")
        told = set(self.json) == {"type", "title", "status", "detail"} and self.json["status"] == self.status
        return kind and told and bool(self.json["detail"])


class Client:
    """Asks a server."""

    def __init__(self, server: HttpServer, session: aiohttp.ClientSession) -> None:
        self.server = server
        self._session = session

    async def get(self, path: str, method: str = "GET", **options: Any) -> Answer:
        """Ask for a path as it is written; redirects are not followed."""
        url = URL(self.server.url + path, encoded=True)
        async with self._session.request(method, url, allow_redirects=False, **options) as response:
            return Answer(response.status, response.headers, await response.read())

    async def raw(self, request: bytes) -> Answer:
        """Send bytes, and read what comes until the server closes, or has answered."""
        place = urlsplit(self.server.url)
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        try:
            writer.write(request)
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
            status, *lines = head.decode().splitlines()
            headers = dict(line.split(": ", 1) for line in lines if line)
            body = await asyncio.wait_for(reader.readexactly(int(headers.get("Content-Length", 0))), 30)
            return Answer(int(status.split()[1]), headers, body)
        finally:
            await ended(writer)


async def ended(writer: asyncio.StreamWriter) -> None:
    """End a connection at once, also if the server has not read all that was written."""
    writer.transport.abort()
    with suppress(ConnectionError):
        await writer.wait_closed()


@asynccontextmanager
async def serving(
    found: Sources | None = None, settings: Http | None = None, early: EarlyProbes | None = None
) -> AsyncIterator[Client]:
    """A server that runs, on a port of its own, or where others answered before it."""
    server = HttpServer(settings or Http(port=0), found or sources(), None if early is None else early.bound, early)
    await server.on_start()
    try:
        async with aiohttp.ClientSession() as session:
            yield Client(server, session)
    finally:
        await server.on_stop()


__all__ = ["FEED", "QUESTION", "Broken", "Followed", "Group", "Patient", "Unknown", "ended", "serving", "sources"]
