"""What a newcomer sees first, run as a newcomer runs it."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

import pytest

from stream_peer.events import topics
from stream_peer.tools.demo.feed import FEED, MALFORMED, SETTINGS
from tests.integration.support.client import KafkaClient
from tests.integration.support.service import service

LIMIT = 300.0


class Demo(NamedTuple):
    """A demo that has ended."""

    code: int
    text: str
    report: str

    def number(self, pattern: str) -> float:
        """The number that the pattern captures."""
        found = re.search(pattern, self.text)
        assert found, f"{pattern} is not in:\n{self.text}"
        return float(found.group(1).replace(",", ""))


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("STREAM_PEER_")}


def run_demo(directory: Path, *flags: str) -> Demo:
    report = directory / "report.html"
    command = [sys.executable, "-m", "stream_peer", "demo", "--pace", "4", "--report", str(report), *flags]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=LIMIT, check=False)
    return Demo(done.returncode, done.stdout + done.stderr, report.read_text() if report.exists() else "")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    return run_demo(tmp_path_factory.mktemp("demo"))


def check(demo: Demo) -> None:
    """What must be true of every demo, on whatever broker."""
    assert demo.code == 0, demo.text
    equal = demo.number(r"equal weights: ([0-9.]+)")
    assert demo.number(r"random expert's weight: ([0-9.]+)") < equal / 2
    assert demo.number(r"\n  mix +([0-9.]+)") < demo.number(r"\n  mean +([0-9.]+)")
    for topic in set(topics.ALL) - set(topics.KEYED_BY_GROUP):
        assert demo.number(rf"[ ,]{topic} ([0-9,]+)") > 0, topic
    assert "3 of 3 (not-json, outcome-unknown, probability-range)" in demo.text


@pytest.mark.slow
def test_the_demo_succeeds_and_its_mix_beats_the_mean(demo: Demo) -> None:
    check(demo)


@pytest.mark.slow
def test_without_a_terminal_the_demo_prints_plain_lines(demo: Demo) -> None:
    assert "\x1b" not in demo.text
    assert "Traceback" not in demo.text
    assert re.search(r"^Done: 30,305 of 30,305 events", demo.text, re.MULTILINE)


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if name in {"src", "href"}]
        assert tag not in {"link", "img", "iframe"}


@pytest.mark.slow
def test_the_report_is_one_page_that_needs_nothing_else(demo: Demo) -> None:
    links = _Links()
    links.feed(demo.report)
    assert [link for link in links.found if not link.startswith("#")] == []
    assert demo.report.count("<svg") >= 16  # each curve for wide windows and for narrow ones
    for heading in ("Trust over time", "Weights over time", "Certificate", "Calibration", "Agreement of experts"):
        assert f">{heading}</h3>" in demo.report
    for word in ("weak-15", "copy-of-weak-19", "probability-range"):
        assert word in demo.report


@pytest.mark.slow
@pytest.mark.real_kafka
def test_on_a_given_kafka_the_demo_keeps_to_its_own_topics_and_removes_them(kafka: KafkaClient, tmp_path: Path) -> None:
    before = kafka.topics()

    check(run_demo(tmp_path, "--bootstrap", kafka.bootstrap))

    left = {topic for topic in kafka.topics() - before if topic.startswith("demo-")}
    assert left == set()


@pytest.mark.slow
@pytest.mark.real_kafka
def test_its_events_can_be_fed_to_workers_that_run_already_once(
    kafka: KafkaClient, repository: Path, tmp_path: Path
) -> None:
    send_only = ("demo", "--send-only", "--pace", "1")
    with service(kafka, tmp_path, feeds={"other": {"round_every": "45m"}}) as own:
        own.set_up()
        refused = own.command(*send_only)
        own.apply({FEED: SETTINGS["feeds"][FEED]})
        first = own.run(*send_only)
        own.settle()
        again = own.run(*send_only)
        example = [sys.executable, "examples/read_weights.py", kafka.bootstrap, FEED, "weak-15=0.8", "random=0.1"]
        env = {**environment(), "STREAM_PEER_PREFIX": own.settings.prefix, "PYTHONPATH": str(repository / "client")}
        mixed = subprocess.run(example, cwd=repository, env=env, capture_output=True, text=True, timeout=60, check=True)
        weights, letters, forecasts = own.weights(FEED), own.dead_letters(), own.read(topics.FORECAST_EVENTS)

    assert refused.returncode == 78
    assert f"feeds.{FEED}.round_every (applied last): the demo's events need 45m" in refused.stderr
    assert "30,305 of 30,305 events are sent." in first
    assert again == f"The feed {FEED} has weights already: its events were sent before, and are not sent again.\n"
    assert weights["questions"] > 800
    assert len(letters) == MALFORMED
    assert sum(message.value.startswith(b'{"type":"tick"') for message in forecasts if message.value) == 4
    said = re.fullmatch(r"mixed (0\.\d+), stretched [01]\.\d+ \(status [\w-]+, revision (\d+)\)\n", mixed.stdout)
    assert said, mixed.stdout
    assert float(said[1]) > 0.7
    assert int(said[2]) == weights["revision"]
