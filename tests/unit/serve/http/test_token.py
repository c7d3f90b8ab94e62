"""Who may ask, if only some may."""

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
