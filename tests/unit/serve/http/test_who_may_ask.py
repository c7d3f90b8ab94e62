"""Only those who know the token are answered, and only under a name of the server: no page of a stranger gets in."""

import os
import threading
from pathlib import Path

import pytest

from stream_peer.serve.http.middlewares import TokenFile
from stream_peer.serve.http.routes import ROUTES
from stream_peer.settings.process import Http
from tests.unit.serve.http.serving import serving

TOKEN = "s3cret-ü"


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    return file


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def test_all_paths_but_those_of_orchestrators_need_the_token(token_file: Path) -> None:
    paths = [route.path.replace("{", "").replace("}", "") for route in ROUTES]
    async with serving(settings=Http(port=0, token_file=token_file)) as client:
        without = {path: await client.get(path) for path in [*paths, "/nothing"]}
        known = await client.get("/feeds", headers=bearer(TOKEN))
        scrape = await client.get("/metrics", headers=bearer(TOKEN))

    assert {path for path, found in without.items() if found.status == 200} == {
        "/healthz/live",
        "/healthz/ready",
        "/healthz/startup",
    }
    for path, found in without.items():
        if not path.startswith("/healthz/"):
            assert (found.status, found.is_problem) == (401, True), path
            assert found.headers["WWW-Authenticate"] == 'Bearer realm="stream-peer"'
    assert (known.status, scrape.status) == (200, 200)


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Bearer s3cret", f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer x{TOKEN}"]
)
def test_anything_else_is_no_token(token_file: Path, header: str) -> None:
    gate = TokenFile(token_file)

    assert not gate.admits(header)
    assert not gate.admits(None)
    assert gate.admits(f"bearer  {TOKEN}")


def test_what_an_editor_writes_before_the_text_is_no_part_of_the_token(token_file: Path) -> None:
    token_file.write_text(TOKEN, encoding="utf-8-sig")

    assert TokenFile(token_file).admits(f"Bearer {TOKEN}")


async def test_bytes_that_are_no_text_are_no_token(token_file: Path) -> None:
    async with serving(settings=Http(port=0, token_file=token_file)) as client:
        found = await client.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \xff\xfe\r\n\r\n")

    assert found.status in (400, 401)
    assert found.is_problem


def test_a_pipe_lets_nobody_in_and_is_not_waited_for(token_file: Path) -> None:
    gate = TokenFile(token_file)
    assert gate.admits(f"Bearer {TOKEN}")

    token_file.unlink()
    os.mkfifo(token_file)
    writer = threading.Thread(target=token_file.write_text, args=(TOKEN,))  # waits for whoever reads
    writer.start()
    admitted = gate.admits(f"Bearer {TOKEN}")
    reader = os.open(token_file, os.O_RDONLY | os.O_NONBLOCK)
    writer.join()
    os.close(reader)

    assert not admitted


def test_a_token_is_changed_while_the_worker_runs_and_two_hold_meanwhile(token_file: Path) -> None:
    gate = TokenFile(token_file)
    assert gate.admits(f"Bearer {TOKEN}")

    token_file.write_text(f"{TOKEN}\n\n  new  \n")
    both = gate.admits(f"Bearer {TOKEN}"), gate.admits("Bearer new")
    token_file.with_name("next").write_text("new\n")
    os.replace(token_file.with_name("next"), token_file)

    assert both == (True, True)
    assert (gate.admits(f"Bearer {TOKEN}"), gate.admits("Bearer new")) == (False, True)


@pytest.mark.parametrize("content", ["", "\n \n", None])
def test_a_file_without_a_token_opens_no_door(token_file: Path, content: str | None) -> None:
    gate = TokenFile(token_file)
    assert gate.admits(f"Bearer {TOKEN}")

    if content is None:
        token_file.unlink()
    else:
        token_file.write_text(content)

    assert not gate.admits(f"Bearer {TOKEN}")
    assert not gate.admits("Bearer ")
    token_file.write_text(TOKEN)
    assert gate.admits(f"Bearer {TOKEN}")


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
