"""A server answers only to its own names: a stranger's page cannot lead a browser to it."""

import pytest

from stream_peer.settings.process import Http
from tests.unit.serve.http.serving import serving

OURS = Http(port=0, advertise="http://Worker-0.example:8080", hosts="forecasts.example, peer.forecasting.svc")
PATHS = ["/", "/feeds", "/feeds/econ", "/version", "/openapi.json"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil", "a b", ""]
)
async def test_a_request_for_the_name_of_a_stranger_is_refused(path: str, host: str) -> None:
    async with serving(settings=OURS) as client:
        found = await client.get(path, headers={"Host": host})

    assert found.status == 421
    assert found.is_problem
    assert "http.hosts" in found.json["detail"]


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:8080",
        "127.0.0.1:1",
        "10.1.2.3:8080",
        "[::1]:8080",
        "worker-0.example:8080",
        "forecasts.example",
        "PEER.forecasting.svc:8080",
    ],
)
async def test_a_request_for_a_name_of_its_own_or_an_address_is_answered(host: str) -> None:
    async with serving(settings=OURS) as client:
        assert (await client.get("/feeds", headers={"Host": host})).status == 200


@pytest.mark.parametrize("path", ["/metrics", "/healthz/live", "/healthz/ready", "/healthz/startup"])
async def test_probes_and_scrapes_are_answered_whatever_name_they_ask_for(path: str) -> None:
    async with serving(settings=OURS) as client:
        assert (await client.get(path, headers={"Host": "evil.example"})).status == 200


async def test_a_star_answers_to_every_name() -> None:
    async with serving(settings=Http(port=0, hosts="*")) as client:
        assert (await client.get("/feeds", headers={"Host": "any.example"})).status == 200


async def test_a_client_that_names_no_host_is_no_browser_and_is_answered() -> None:
    async with serving(settings=OURS) as client:
        assert (await client.raw(b"GET /version HTTP/1.0\r\n\r\n")).status == 200
