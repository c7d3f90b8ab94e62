import http.server
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from socket import create_server
from typing import NamedTuple

import pytest

from tests.unit.cli.support import run

Capture = pytest.CaptureFixture[str]
Serve = Callable[..., "Answering"]


class Answering(NamedTuple):
    """A port on which somebody answers, and the paths that were asked for."""

    port: int
    asked: list[str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Answer every request on a free port with a status and a body."""
    with ExitStack() as stack:

        def start(status: int, body: str) -> Answering:
            asked: list[str] = []

            class Handler(http.server.BaseHTTPRequestHandler):
                def do_GET(self) -> None:
                    asked.append(self.path)
                    self.send_response(status)
                    self.end_headers()
                    self.wfile.write(body.encode())

                def log_message(self, *_: object) -> None:
                    """Say nothing."""

            server = stack.enter_context(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler))
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
            stack.callback(server.shutdown)
            return Answering(server.server_port, asked)

        yield start


OK = (200, json.dumps({"status": "ok"}))


@pytest.mark.parametrize(
    ("flags", "path", "word"),
    [([], "ready", "ready"), (["--live"], "live", "live"), (["--started"], "startup", "started")],
)
def test_a_worker_that_says_yes_is_a_sentence_and_exit_code_0(
    capsys: Capture, serve: Serve, flags: list[str], path: str, word: str
) -> None:
    worker = serve(*OK)

    ended = run(capsys, "health", *flags, "--http-port", str(worker.port))

    assert ended == (0, f"The worker at 127.0.0.1:{worker.port} is {word}.\n", "")
    assert worker.asked == [f"/healthz/{path}"]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"status": "unavailable", "reason": "partition 3 recovers"}, "partition 3 recovers"),
        ({"type": "about:blank", "status": 503, "detail": "partition 3 recovers."}, "partition 3 recovers"),
        ({"status": "unavailable"}, "it answered 503 Service Unavailable"),
        (["odd"], "it answered 503 Service Unavailable"),
    ],
)
def test_a_worker_that_says_no_is_its_reason_on_stderr_and_exit_code_1(
    capsys: Capture, serve: Serve, body: object, why: str
) -> None:
    worker = serve(503, json.dumps(body))

    ended = run(capsys, "health", "--http-port", str(worker.port))

    assert ended == (1, "", f"The worker at 127.0.0.1:{worker.port} is not ready: {why}.\n")


def test_another_server_on_the_port_is_no_healthy_worker(capsys: Capture, serve: Serve) -> None:
    ended = run(capsys, "health", "--http-port", str(serve(404, "<html>").port))

    assert ended.code == 1
    assert ended.err.endswith("is not ready: it answered 404 Not Found.\n")


def test_a_worker_that_is_not_there_is_a_sentence_and_exit_code_1(capsys: Capture) -> None:
    with create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]

    ended = run(capsys, "health", "--http-port", str(port))

    assert ended == (1, "", f"No worker answers at 127.0.0.1:{port}: Connection refused.\n")


def test_a_worker_that_hangs_is_not_waited_for_longer_than_the_timeout(capsys: Capture) -> None:
    with create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]

        ended = run(capsys, "health", "--http-port", str(port), "--timeout", "0.05")

    assert ended == (1, "", f"The worker at 127.0.0.1:{port} did not answer within 0.05 s.\n")


def test_the_port_is_the_one_that_the_worker_has_from_file_or_environment(
    capsys: Capture, serve: Serve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    worker, file = serve(*OK), tmp_path / "settings.yaml"
    file.write_text(f"http: {{host: 0.0.0.0, port: {worker.port}}}\n")

    assert run(capsys, "health", "--config", str(file)).code == 0
    monkeypatch.setenv("STREAM_PEER_HTTP__PORT", str(worker.port))
    assert run(capsys, "health").code == 0


def test_a_proxy_of_the_environment_is_not_asked(
    capsys: Capture, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")

    assert run(capsys, "health", "--http-port", str(serve(*OK).port)).code == 0


def test_port_0_cannot_be_asked(capsys: Capture) -> None:
    ended = run(capsys, "health", "--http-port", "0")

    assert ended.code == 78
    assert "http.port (flag --http-port): 0 lets the worker take any free port" in ended.err


def test_one_question_at_a_time(capsys: Capture) -> None:
    assert run(capsys, "health", "--live", "--started").code == 2


@pytest.mark.parametrize("host", ["a..b", "a\r\nb", "x" * 70 + ".example"])
def test_a_host_that_is_no_name_is_a_sentence_too(capsys: Capture, host: str) -> None:
    ended = run(capsys, "health", "--http-host", host)

    assert ended.code == 1
    assert ended.err.startswith("No worker answers at ")
