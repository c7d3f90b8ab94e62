import re
import sys
from collections import deque
from io import StringIO
from pathlib import Path

import click
import pytest
from rich.console import Console

from stream_peer.cli.demo import _SMALL
from stream_peer.errors import BrokerUnavailableError, StreamPeerError, TopicsError
from stream_peer.settings.process import load
from stream_peer.tools.demo import worker as demo_worker
from stream_peer.tools.demo.run import Demonstration, Wishes, check_outcome, verdict_lines
from stream_peer.tools.demo.worker import DemoWorker
from stream_peer.tools.replay.history import BestExpert, Scores
from tests.unit.cli.support import run

READY = """
import json, signal, sys, time
print("a plain line", flush=True)
print(json.dumps({"event": "worker_ready", "http": "http://127.0.0.1:4711"}), flush=True)
signal.sigwait({signal.SIGTERM})
"""


def worker(script: str) -> DemoWorker:
    made = DemoWorker([], {})
    made.command = [sys.executable, "-c", script]
    return made


def wait(demo: DemoWorker) -> None:
    process = demo._process
    assert process is not None
    process.wait(30)


def test_real_and_bootstrap_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    ended = run(capsys, "demo", "--real", "--bootstrap", "localhost:9092")
    assert ended.code == 2
    assert "use one of them" in ended.err


@pytest.mark.parametrize("other", ["--real", "--keep"])
def test_feeding_a_deployment_makes_none(capsys: pytest.CaptureFixture[str], other: str) -> None:
    ended = run(capsys, "demo", "--send-only", other)
    assert ended.code == 2
    assert "--send-only sends events to a deployment that is there" in ended.err


def test_feeding_a_deployment_says_at_once_that_it_waits_for_a_broker(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAM_PEER_BROKER_PATIENCE", "600ms")
    ended = run(capsys, "demo", "--send-only", "--bootstrap", "127.0.0.1:1")
    assert ended.code == 69
    assert ended.err.startswith("No broker at 127.0.0.1:1 yet")


def test_a_report_needs_a_directory_that_is_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    ended = run(capsys, "demo", "--report", str(tmp_path / "missing" / "report.html"))
    assert ended.code == 2
    assert "there is no directory" in ended.err


def test_without_the_extra_the_command_to_install_it_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    ended = run(capsys, "demo")
    assert ended.code == 78
    assert "pip install 'stream-peer[demo]'" in ended.err


def test_a_broker_that_is_not_there_is_one_sentence_and_exit_code_69(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = run(capsys, "demo", "--bootstrap", "127.0.0.1:1", "--broker-patience", "100ms")
    assert ended.code == 69
    assert ended.err.count("\n") == 1
    assert "127.0.0.1:1" in ended.err


def test_the_verdict_names_mix_mean_median_and_the_best_expert() -> None:
    best = BestExpert("weak-15", loss=0.125, questions=575, mix_there=0.116)
    lines = verdict_lines(Scores(587, mix=0.117, stretched=0.109, mean=0.149, median=0.15, best=best))
    assert [line.split()[0] for line in lines[1:]] == ["mix", "mix,", "mean", "median", "best"]
    assert "weak-15" in lines[-1]
    assert "587 questions" in lines[0]


def test_an_empty_topic_or_an_unexpected_dead_letter_is_a_failure() -> None:
    reasons = ["not-json", "outcome-unknown", "probability-range"]
    check_outcome({"weights": 3, "feed-log": 5}, reasons)
    with pytest.raises(StreamPeerError, match="nothing arrived on weights"):
        check_outcome({"weights": 0, "feed-log": 5}, reasons)
    with pytest.raises(StreamPeerError, match="4 events were refused, 3 are malformed"):
        check_outcome({"weights": 3}, [*reasons, "id-length"])


def test_a_worker_is_ready_when_it_says_so() -> None:
    with worker(READY) as demo:
        deque(demo.wait_ready(), maxlen=0)
        assert demo.url() == "http://127.0.0.1:4711"
        assert "a plain line" in demo.log.read_text()


def what_a_kept_demo_says(tmp_path: Path, flags: dict[str, str]) -> str:
    """Up to the moment at which its worker ends."""
    said = StringIO()
    with worker("") as demo:
        wait(demo)
        settings = load(None, {}, flags).settings
        stays = Demonstration(settings, demo, Console(file=said), Wishes(1.0, tmp_path / "report.html", keep=True))
        with pytest.raises(StreamPeerError):
            stays._stay("http://127.0.0.1:4711")
    return said.getvalue()


def test_a_kept_demo_names_the_flags_with_which_commands_know_its_partitions(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    said = what_a_kept_demo_says(tmp_path, _SMALL)
    (flags,) = re.findall("Topics: .* need (--.*)", said)
    plan = run(capsys, "topics", "plan", "--offline", *flags.split()).out

    planned = re.findall(r"^([a-z-]+) +(\d+) ", plan, re.MULTILINE)
    assert {count for name, count in planned if not name.startswith("stream-peer")} == {"4"}
    assert "Topics:" not in what_a_kept_demo_says(tmp_path, {})


def test_a_kept_demo_tells_commands_that_its_broker_is_an_embedded_one(tmp_path: Path) -> None:
    (watch,) = re.findall("Watch: +(.*)", what_a_kept_demo_says(tmp_path, {"broker": "embedded"}))

    assert watch.endswith(" --broker embedded")
    assert "--broker" not in what_a_kept_demo_says(tmp_path, {})


@pytest.mark.parametrize(("code", "kind"), [(69, BrokerUnavailableError), (78, TopicsError), (70, StreamPeerError)])
def test_a_worker_that_ended_hands_on_its_exit_code_and_last_word(code: int, kind: type[StreamPeerError]) -> None:
    script = f"import sys; print('stream-peer: it went wrong', file=sys.stderr); sys.exit({code})"
    with worker(script) as demo:
        wait(demo)
        with pytest.raises(kind, match=f"exit code {code}: stream-peer: it went wrong") as raised:
            demo.check()
        assert raised.value.exit_code == code


def test_a_worker_that_never_gets_ready_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_worker, "READY_SECONDS", -1.0)
    never = READY.replace("worker_ready", "worker_starts")
    with worker(never) as demo, pytest.raises(StreamPeerError, match="was not ready within"):
        next(demo.wait_ready())


def test_a_worker_that_does_not_stop_cleanly_is_a_failure() -> None:
    script = READY.replace('print("a plain', 'signal.signal(15, lambda *_: sys.exit(3)); print("a plain')
    with worker(script.replace("signal.sigwait({signal.SIGTERM})", "signal.pause()")) as demo:
        deque(demo.wait_ready(), maxlen=0)
        with pytest.raises(StreamPeerError, match="exit code 3"):
            demo.stop()


def test_a_worker_that_stops_when_told_is_no_failure() -> None:
    script = READY.replace('print("a plain', 'signal.signal(15, lambda *_: sys.exit(0)); print("a plain')
    with worker(script.replace("signal.sigwait({signal.SIGTERM})", "signal.pause()")) as demo:
        deque(demo.wait_ready(), maxlen=0)
        demo.stop()


def test_the_command_stands_in_the_overview() -> None:
    from stream_peer.cli.group import cli

    command = cli.get_command(click.Context(cli), "demo")
    assert command is not None
    assert {"--real", "--keep", "--pace", "--report", "--bootstrap"} <= {o for p in command.params for o in p.opts}
