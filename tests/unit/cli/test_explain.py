"""``stream-peer explain``: a sentence first, then terms that add up; and what it says when it is used wrongly."""

import json
import math
from pathlib import Path

import pytest

from stream_peer.tools.explain import weight
from stream_peer.tools.explain.weight_timeline import WeightProbe
from tests.unit.cli.support import run
from tests.unit.tools.explain.test_weight import kept
from tests.unit.tools.replay.file_lines import season

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "season.jsonl"
    path.write_bytes(b"\n".join(season()))
    return path


def test_a_sentence_comes_first_and_then_what_each_cause_did(capsys: Capture, file: Path) -> None:
    ended = run(capsys, "explain", "econ", "e4", str(file), "--questions", "3")

    assert ended.code == 0
    assert ended.out.startswith("Between 2 Mar 2026 and ")
    assert "What moved its share of the mixed forecast, in points (hundredths of all weight)" in ended.out
    assert "Its forecasts against the other experts' (36 questions: " in ended.out
    assert "37 questions more" in ended.out
    assert "its own forecasts in all" in ended.out
    assert max(map(len, ended.out.splitlines())) <= 100
    assert ended.err == ""


def test_as_json_every_term_is_there_and_they_add_up(capsys: Capture, file: Path) -> None:
    ended = run(capsys, "explain", "econ", "e1", str(file), "--weight", "select", "--questions", "1000", "--json")

    story = json.loads(ended.out)
    terms = [term["change"] for one in (*story["questions"], story["rest"]) for term in one["terms"]]
    assert math.fsum(terms) == pytest.approx(story["difference"], abs=1e-9)
    assert story["until"]["weight"] - story["since"]["weight"] == story["difference"]
    assert {"boundary", "cause", "change"} == set(story["questions"][0]["terms"][0])


def test_options_of_files_count(capsys: Capture, file: Path) -> None:
    text = ("explain", "all", "e1", str(file), "--feed-as", "all", "--json")

    plain, unknown, daily = (
        json.loads(run(capsys, *text, *more).out) for more in ((), ("--reveal", "0"), ("--set", "round_every=6h"))
    )

    assert "truth" in [one["cause"] for one in plain["causes"]]
    assert "truth" not in [one["cause"] for one in unknown["causes"]]
    assert daily["until"]["revision"] > plain["until"]["revision"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("econ", "E1"), "there is no expert 'E1' in feed econ; did you mean e1"),
        (("eco", "e1"), "there is no feed 'eco'; did you mean econ?"),
        (("../econ", "e1"), "is no name of a feed"),
        (("econ", "e1", "--from", "soon"), "'soon' is neither a moment"),
        (("econ", "e1", "--from", "7", "--to", "6"), "--from is after --to"),
        (("econ", "e1", "--from", "999999", "--to", "2026-03-03"), "--from is after --to"),
        (("econ", "e1", "--from", "2026-04-01", "--to", "2"), "--from is after --to"),
        (("econ", "e1", "--from", "0001-01-01T00:00+23:59", "--to", "0001-01-02"), "e1 had no weight"),
        (("econ", "e1", "--to", "2020-01-01"), "e1 had no weight in feed econ by then"),
        (("econ", "e1", "--weight", "both"), "'both' is not one of"),
    ],
)
def test_faults_are_told_in_a_sentence(capsys: Capture, file: Path, arguments: tuple[str, ...], said: str) -> None:
    ended = run(capsys, "explain", *arguments[:2], str(file), *arguments[2:])

    assert ended.code == 2
    assert said in ended.err
    assert "Traceback" not in ended.err


def test_a_file_that_is_not_there_is_named(capsys: Capture, tmp_path: Path) -> None:
    ended = run(capsys, "explain", "econ", "e1", str(tmp_path / "nothing.jsonl"))

    assert ended.code == 2
    assert "nothing.jsonl" in ended.err


def test_what_is_for_files_is_refused_without_them(capsys: Capture) -> None:
    ended = run(capsys, "explain", "econ", "e1", "--set", "round_every=1d", "--feed-as", "econ")

    assert ended.code == 2
    assert "--feed-as and --set are for files, and none is named" in ended.err


def test_without_files_the_log_is_read(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(probe: WeightProbe, *_: object) -> int:
        kept(probe)
        return 0

    monkeypatch.setattr(weight, "read_for", read)

    found, unknown = run(capsys, "explain", "econ", "e2"), run(capsys, "explain", "econ", "nobody")

    assert found.code == 0
    assert "e2's share of the mixed forecast" in found.out
    assert unknown.code == 2
    assert "there is no expert 'nobody'" in unknown.err


def test_no_broker_is_told_with_its_own_exit_code(capsys: Capture) -> None:
    ended = run(capsys, "explain", "econ", "e1", "--bootstrap", "127.0.0.1:1", "--broker-patience", "0.1")

    assert ended.code == 69
    assert "127.0.0.1:1" in ended.err
