import asyncio
import io
import json
import re
import socket
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from stream_peer.errors import BrokerUnavailableError, TopicsError
from stream_peer.kafka.client import control_events
from stream_peer.kafka.client.admin import KafkaAdmin
from stream_peer.kafka.client.control_events import Applied
from stream_peer.kafka.client.topic_plan import worker_rights
from stream_peer.kafka.worker import worker
from stream_peer.serve import logs
from stream_peer.settings.process import Settings
from tests.unit.cli.support import run

Capture = pytest.CaptureFixture[str]
KEY = b"0123456789abcdef"
EVERYWHERE = "0.0.0.0"  # noqa: S104 - for the length of a test


class Ran:
    """A worker that notes what it was given and stops at once."""

    def __init__(self) -> None:
        self.settings: Settings | None = None
        self.keys = worker.Keys()
        self.code = 0

    def __call__(
        self,
        settings: Settings,
        observer: Any,
        keys: worker.Keys,
        services: Iterable[Any],
        *,
        health: Any,
        owners: Any,
        fault: Callable[[str], None],
    ) -> int:
        assert observer
        assert len(list(services)) == 3
        assert asyncio.run(owners.of("any feed")).reason
        assert health.ready() == (False, "starting")
        fault("nowhere")
        self.settings, self.keys = settings, keys
        return self.code


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Ran:
    found = Ran()
    monkeypatch.setattr(worker, "run", found)
    monkeypatch.setattr(KafkaAdmin, "check", lambda *_: {})
    return found


@pytest.fixture(autouse=True)
def any_free_port_and_a_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STREAM_PEER_HTTP__PORT", "0")
    (tmp_path / "signing-key").write_bytes(KEY + b"\n")
    monkeypatch.setenv("STREAM_PEER_SIGNING_KEY_FILE", str(tmp_path / "signing-key"))


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[dict[str, Any]]]:
    """What the command logged."""
    out = io.StringIO()
    configure = logs.configure
    monkeypatch.setattr(logs, "configure", lambda log, secrets: configure(log, secrets=secrets, stream=out))
    return lambda: [json.loads(line) for line in out.getvalue().splitlines()]


def applied(monkeypatch: pytest.MonkeyPatch, found: Applied | Exception | None) -> None:
    def newest(_: Settings) -> Applied | None:
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(control_events, "newest_document", newest)


def test_a_worker_gets_its_settings_and_the_seed_of_its_draws(
    ran: Ran, capsys: Capture, log: object, tmp_path: Path
) -> None:
    (tmp_path / "seed").write_text("seed")

    ended = run(capsys, "worker", "--secret-file", str(tmp_path / "seed"), "--stage", "feed")

    assert ended.code == 0
    assert ran.keys == worker.Keys(b"seed", (KEY,))
    assert ran.settings is not None
    assert ran.settings.stage == "feed"


def test_the_exit_code_is_the_workers(ran: Ran, capsys: Capture, log: Callable[[], list[dict[str, Any]]]) -> None:
    ran.code = 69

    assert run(capsys, "worker").code == 69
    assert [(line["event"], line.get("code")) for line in log()] == [("worker_starts", None), ("worker_stopped", 69)]


def test_topics_that_are_wrong_end_it_before_it_starts(
    ran: Ran, capsys: Capture, log: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: KafkaAdmin, __: object) -> None:
        raise TopicsError("The topics are wrong.")

    monkeypatch.setattr(KafkaAdmin, "check", refuse)

    assert run(capsys, "worker") == (78, "", "stream-peer: The topics are wrong.\n")
    assert ran.settings is None


@pytest.mark.parametrize(
    ("found", "event"),
    [
        (None, "feed_settings_differ_from_file"),
        (Applied({}, "d905e156", 0, 0), "feed_settings_differ_from_file"),
        (BrokerUnavailableError("gone"), "feed_settings_not_compared"),
    ],
)
def test_a_file_whose_feed_settings_are_not_applied_is_said_so(
    ran: Ran,
    capsys: Capture,
    log: Callable[[], list[dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    found: Applied | Exception | None,
    event: str,
) -> None:
    applied(monkeypatch, found)
    (tmp_path / "s.yaml").write_text("defaults: {grace: 1s}")

    ended = run(capsys, "worker", "-c", str(tmp_path / "s.yaml"))

    assert ended.code == 0
    assert event in [line["event"] for line in log()]


def test_applied_feed_settings_need_no_word(
    ran: Ran,
    capsys: Capture,
    log: Callable[[], list[dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    (tmp_path / "s.yaml").write_text("defaults: {grace: 1s}")
    applied(monkeypatch, Applied({}, "2e39cb3e", 0, 0))
    first = run(capsys, "worker", "-c", str(tmp_path / "s.yaml"))
    in_file = next(line["in_file"] for line in log() if line["event"] == "feed_settings_differ_from_file")
    applied(monkeypatch, Applied({}, in_file, 0, 0))

    second = run(capsys, "worker", "-c", str(tmp_path / "s.yaml"))

    assert (first.code, second.code) == (0, 0)
    assert [line["event"] for line in log()].count("feed_settings_differ_from_file") == 1


def test_an_armed_fault_is_announced(
    ran: Ran, capsys: Capture, log: Callable[[], list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAM_PEER_FAULT", "between-entries-and-head:3")

    run(capsys, "worker")

    assert {"worker_will_kill_itself"} <= {line["event"] for line in log()}


def test_the_rights_of_its_stage_are_asked_for_before_it_starts(
    ran: Ran, capsys: Capture, log: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def check(_: object, needed: object) -> dict[str, str]:
        asked.append(needed)
        return {}

    monkeypatch.setattr(KafkaAdmin, "check", check)

    run(capsys, "worker", "--stage", "question")

    assert asked == [worker_rights(Settings(stage="question"))]


def test_an_address_that_cannot_be_bound_is_a_wrong_setting(ran: Ran, capsys: Capture, log: object) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = run(capsys, "worker", "--http-port", str(port))

    assert ended.code == 78
    assert f"http.port (flag --http-port): cannot listen on 127.0.0.1:{port} (Address already in use)" in ended.err
    assert ran.settings is None


@pytest.mark.parametrize("host", ["a..b", "a b", "x" * 70 + ".example"])
def test_a_host_that_is_no_name_is_a_wrong_setting(ran: Ran, capsys: Capture, log: object, host: str) -> None:
    ended = run(capsys, "worker", "--http-host", host)

    assert ended.code == 78
    assert "http.host (flag --http-host): cannot listen on " in ended.err


@pytest.mark.parametrize(
    ("flags", "advertised"),
    [
        ([], r"http://127\.0\.0\.1:[1-9]\d+"),
        (["--http-host", EVERYWHERE], rf"http://{re.escape(socket.gethostname())}:[1-9]\d+"),
        (["--http-host", "localhost"], r"http://localhost:[1-9]\d+"),
        (["--http-host", EVERYWHERE, "--http-advertise", "https://w0.example.org/"], r"https://w0\.example\.org"),
    ],
)
def test_the_group_is_told_where_the_worker_can_be_asked(
    ran: Ran, capsys: Capture, log: object, flags: list[str], advertised: str
) -> None:
    assert run(capsys, "worker", *flags).code == 0

    assert ran.settings is not None
    assert re.fullmatch(advertised, str(ran.settings.http.advertise))
