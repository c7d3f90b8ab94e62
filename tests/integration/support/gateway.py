"""``stream-peer gateway`` beside a deployment, and a platform that posts until all is acknowledged."""

import asyncio
import contextlib
import http.client
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from tests.integration.support.service import Service, Worker

TOKEN = "the-token-of-the-platform"
RIGHTS: Mapping[str, Any] = {"experts": ["*"], "may_ask": True, "may_resolve": True}
_AT_ONCE = 32
_PATIENCE = 120.0


def producer_files(directory: Path) -> str:
    """The file of one producer, the platform, with its key; and its token beside it."""
    (directory / "platform.key").write_text("the secret key of the platform")
    (directory / "tokens").write_text(f"platform {TOKEN}\n")
    file = directory / "producers.yaml"
    file.write_text(yaml.safe_dump({"producers": {"platform": {"key_file": "platform.key", **RIGHTS}}}))
    return str(file)


def gateway_environment(run: Service) -> dict[str, str]:
    """Of a gateway of a deployment, whose directory has the ``producer_files``."""
    files = {"PRODUCERS_FILE": "producers.yaml", "GATEWAY__TOKENS_FILE": "tokens"}
    return {**run.environment(), **{f"STREAM_PEER_{name}": str(run.directory / file) for name, file in files.items()}}


def start_gateway(run: Service, **environment: str) -> Worker:
    """Start a gateway of a deployment, or start it again, on a port of its own."""
    command = [sys.executable, "-m", "stream_peer", "gateway"]
    return Worker(command, {**gateway_environment(run), **environment}, run.directory / "gateway.log")


class Platform:
    """Posts events, each with a key of its own, and posts again with the same key what was not acknowledged.

    Parameters
    ----------
    gateway : callable
        The gateway to post to, which may be another one each time.
    """

    def __init__(self, gateway: Callable[[], Worker]) -> None:
        self._gateway = gateway
        self.acknowledged = 0
        self.repeated = 0

    def post(self, events: Iterable[Mapping[str, Any]], named: str, seen: Callable[[int], None] | None = None) -> None:
        """Post events one by one; ``seen`` is told how many are acknowledged."""
        asyncio.run(self._post(list(events), named, seen or (lambda _: None)))

    async def _post(self, events: Sequence[Mapping[str, Any]], named: str, seen: Callable[[int], None]) -> None:
        left = iter(enumerate(events))

        async def some(session: aiohttp.ClientSession) -> None:
            for number, event in left:
                while not await self._once(session, event, f"{named}-{number}"):
                    self.repeated += 1
                self.acknowledged += 1
                seen(self.acknowledged)

        async with asyncio.timeout(_PATIENCE), aiohttp.ClientSession() as session:
            await asyncio.gather(*(some(session) for _ in range(_AT_ONCE)))

    async def _once(self, session: aiohttp.ClientSession, event: Mapping[str, Any], key: str) -> bool:
        url = f"http://127.0.0.1:{self._gateway().port}/events"
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", "Idempotency-Key": key}
        try:
            async with session.post(url, data=json.dumps(event), headers=headers) as answer:
                told = await answer.text()
                assert answer.status in (202, 429, 503), told
                wait = float(answer.headers.get("Retry-After", 0))
        except aiohttp.ClientError:
            await asyncio.sleep(0.05)  # as a platform does
            return False
        if wait:
            await asyncio.sleep(min(wait, 0.2))
        return answer.status == 202


def post_once(
    gateway: Worker, body: str, key: str, kind: str = "application/json"
) -> tuple[int, Mapping[str, str], dict[str, Any]]:
    """Status, headers and content of the answer to one post."""
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": kind, "Idempotency-Key": key}
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=30)
    with contextlib.closing(connection):
        connection.request("POST", "/events", body, headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.headers), json.loads(answer.read())
