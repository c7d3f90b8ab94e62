"""Probes while a worker waits for its brokers: a thread answers, and then leaves the port to the HTTP server."""

import json
import socket
from collections.abc import Iterator

import pytest

from stream_peer.serve.http import EarlyProbes, bind, port_of
from stream_peer.settings.process import Http
from tests.integration.support.asking import ask
from tests.unit.serve.http.serving import serving


@pytest.fixture
def early() -> Iterator[EarlyProbes]:
    bound = bind(Http(port=0))
    with bound, EarlyProbes(bound) as made:
        yield made


def status(early: EarlyProbes, path: str) -> tuple[int, str]:
    code, body = ask(f"http://127.0.0.1:{port_of(early.bound)}{path}")
    return code, json.loads(body)["reason"]


@pytest.mark.parametrize(
    ("path", "code"),
    [("/healthz/live", 200), ("/healthz/startup", 200), ("/healthz/ready", 503), ("/feeds", 503), ("/", 503)],
)
def test_a_worker_that_waits_for_its_brokers_lives_and_is_not_ready(early: EarlyProbes, path: str, code: int) -> None:
    assert status(early, path) == (code, "it waits for its brokers, or starts")


async def test_the_http_server_takes_the_port_over(early: EarlyProbes) -> None:
    async with serving(early=early) as client:
        assert (await client.get("/healthz/ready")).status == 200


def test_a_connection_that_asks_nothing_holds_up_no_probe(early: EarlyProbes) -> None:
    with socket.create_connection(("127.0.0.1", port_of(early.bound))):
        assert status(early, "/healthz/live")[0] == 200
