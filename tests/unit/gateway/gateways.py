"""The real server over brokers that a test decides, and a client that posts."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from aiohttp import web
from msgspec.structs import replace

from stream_peer.errors import BrokerUnavailableError, StreamPeerError
from stream_peer.gateway.brokers import Brokers, Sending
from stream_peer.gateway.server import Posts, application, check_gateway
from stream_peer.kafka.client.security import server_context
from stream_peer.kafka.client.write import SignedRecord
from stream_peer.serve.http.server import Runner
from stream_peer.settings.process import Gateway, Http, Settings, read_producers
from tests.unit.serve.http.serving import Answer

PRODUCERS: dict[str, dict[str, Any]] = {
    "house": {"experts": ["house-*"], "feeds": ["econ"]},
    "platform": {"may_ask": True, "may_resolve": True},
}
TOKENS = {name: f"the token of {name}".replace(" ", "-") for name in PRODUCERS}
FORECAST = {
    "type": "forecast",
    "question_id": "q",
    "expert_id": "house-1",
    "probability": 0.4,
    "at": "2026-03-01T12:00:00Z",
    "feed": "econ",
}


class Taking(Brokers):
    """Brokers that take all, or fail, as a test says it."""

    def __init__(self, fault: StreamPeerError | None = None, *, is_away: bool = False) -> None:
        self.records: list[SignedRecord] = []
        self._failing = fault
        self._is_away = is_away
        self.asked = asyncio.Event()
        self.held: asyncio.Future[None] | None = None

    def ready(self) -> tuple[bool, str]:
        return not self._is_away, "no broker answers" if self._is_away else ""

    def send(self, records: Sequence[SignedRecord], sending: Sending) -> None:
        if self._is_away:
            raise BrokerUnavailableError("no broker answers")
        self.records += records
        self.asked.set()
        sending.begin()
        if self.held is None:
            sending.settle(self._failing)
        else:
            self.held.add_done_callback(lambda _: sending.settle(None))


def files(directory: Path, **gateway: Any) -> Settings:
    """Settings with producers and tokens in a directory."""
    for name in PRODUCERS:
        (directory / f"{name}.key").write_text(f"the secret key of {name}")
    rights = {name: {"key_file": f"{name}.key", **allowed} for name, allowed in PRODUCERS.items()}
    (directory / "producers.yaml").write_text(yaml.safe_dump({"producers": rights}))
    (directory / "tokens").write_text("".join(f"{name} {token}\n" for name, token in TOKENS.items()))
    chosen = Gateway(**{"tokens_file": directory / "tokens", **gateway})
    return Settings(http=Http(port=0), producers_file=directory / "producers.yaml", gateway=chosen)


class Client:
    """Posts to a gateway."""

    def __init__(self, url: str, session: aiohttp.ClientSession, posts: Posts) -> None:
        self._url, self._session = url, session
        self.posts = posts

    async def ask(self, path: str, method: str = "GET", **options: Any) -> Answer:
        async with self._session.request(method, self._url + path, **options) as response:
            return Answer(response.status, response.headers, await response.read())

    async def post(
        self, *events: object, token: str | None = TOKENS["house"], lines: bool = False, **headers: str
    ) -> Answer:
        """Post an event, or several lines; text and bytes are posted as they are."""
        texts = [
            e if isinstance(e, bytes) else str(e).encode() if isinstance(e, str) else json.dumps(e).encode()
            for e in events
        ]
        kind = "application/x-ndjson" if lines else "application/json"
        named = {"Content-Type": kind, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if token is not None:
            named["Authorization"] = f"Bearer {token}"
        return await self.ask("/events", "POST", data=b"\n".join(texts), headers=named)


@asynccontextmanager
async def gateway(
    settings: Settings, brokers: Brokers, client_tls: ssl.SSLContext | None = None
) -> AsyncIterator[Client]:
    """A gateway that runs on a port of its own."""
    posts = Posts(settings, check_gateway(settings, read_producers(settings)), brokers)
    runner = Runner(application(settings, posts, brokers), 1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=server_context(settings.gateway)).start()
        port = runner.addresses[0][1]
        url = f"http://127.0.0.1:{port}" if client_tls is None else f"https://localhost:{port}"
        connector = aiohttp.TCPConnector() if client_tls is None else aiohttp.TCPConnector(ssl=client_tls)
        async with aiohttp.ClientSession(connector=connector) as session:
            yield Client(url, session, posts)
    finally:
        await runner.cleanup()


def with_limits(settings: Settings, **limits: int) -> Settings:
    """The settings with other limits."""
    return replace(settings, gateway=replace(settings.gateway, **limits))
