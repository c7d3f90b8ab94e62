import socket
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from stream_peer import __version__
from stream_peer.adapters.http import HttpServer
from stream_peer.adapters.prometheus import Metrics
from stream_peer.errors import SettingsError
from stream_peer.settings import Http


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


@pytest.fixture
def patient() -> Patient:
    return Patient()


@pytest.fixture
async def server(patient: Patient) -> AsyncIterator[HttpServer]:
    server = HttpServer(Http(port=0), Metrics(), patient)
    await server.on_start()
    yield server
    await server.on_stop()


async def get(server: HttpServer, path: str) -> tuple[int, str, Any]:
    async with aiohttp.ClientSession() as session, session.get(server.url + path) as response:
        kind = response.content_type
        return response.status, kind, await (response.json() if kind == "application/json" else response.text())


@pytest.mark.parametrize("probe", ["live", "ready", "startup"])
async def test_a_probe_answers_200_or_503_with_the_reason(server: HttpServer, patient: Patient, probe: str) -> None:
    assert await get(server, f"/healthz/{probe}") == (200, "application/json", {"status": "ok"})

    patient.answers[probe] = (False, "recovers 2 of 4 partitions")

    expected = {"status": "unavailable", "reason": "recovers 2 of 4 partitions"}
    assert await get(server, f"/healthz/{probe}") == (503, "application/json", expected)


async def test_metrics_are_served_in_the_text_format(server: HttpServer) -> None:
    status, kind, text = await get(server, "/metrics")
    assert (status, kind) == (200, "text/plain")
    assert "stream_peer_build_info{" in text


async def test_the_version_is_told(server: HttpServer) -> None:
    status, _, body = await get(server, "/version")
    assert (status, body["version"]) == (200, __version__)


async def test_an_unknown_path_is_not_found(server: HttpServer) -> None:
    assert (await get(server, "/feeds/../../etc/passwd"))[0] == 404


async def test_only_the_loopback_address_is_bound_by_default(server: HttpServer) -> None:
    assert server.url.startswith("http://127.0.0.1:")
    assert not server.url.endswith(":0")


async def test_an_address_that_is_taken_is_named(patient: Patient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server = HttpServer(Http(port=port), Metrics(), patient)
        with pytest.raises(SettingsError, match=f"cannot listen on 127.0.0.1:{port}"):
            await server.on_start()
        await server.on_stop()


async def test_an_ipv6_address_has_brackets_in_its_url(patient: Patient) -> None:
    assert HttpServer(Http(host="::1", port=80), Metrics(), patient).url == "http://[::1]:80"
