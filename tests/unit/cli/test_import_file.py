"""``stream-peer import-file`` and ``stream-peer whatif``: files of other formats, as a user imports them."""

import gzip
import json
import sys
from pathlib import Path

import pytest

from tests.unit.cli.support import run

Capture = pytest.CaptureFixture[str]
HEADER = "question,expert,probability,time,outcome\n"


@pytest.fixture
def samples(repository: Path) -> Path:
    return repository / "examples" / "formats"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "f.csv"
    path.write_text(HEADER + "q,a,0.7,2025-03-01,yes\nq,b,70,2025-03-01,yes\n")
    return path


def test_events_are_written_and_what_was_used_is_said(capsys: Capture, file: Path, tmp_path: Path) -> None:
    to, refused = tmp_path / "events.jsonl", tmp_path / "refused.jsonl"

    ended = run(capsys, "import-file", "csv", str(file), "--feed", "econ", "--to", str(to), "--refused", str(refused))

    assert ended.code == 0
    assert "2 rows read: 1 forecast of 1 expert for 1 question, 1 with an outcome" in ended.out
    assert "1 probability-range, the first f.csv:3: probability is '70', not within 0..1 (percent?" in ended.out
    assert f"2 events → {to}" in ended.out
    events = [json.loads(line) for line in to.read_text().splitlines()]
    assert [(event["type"], event["feed"]) for event in events] == [("forecast", "econ"), ("resolution", "econ")]
    assert json.loads(refused.read_text())["place"] == "f.csv:3"


def test_events_are_packed_if_the_name_says_so_and_replay_reads_them(
    capsys: Capture, samples: Path, tmp_path: Path
) -> None:
    to = tmp_path / "events.jsonl.gz"

    imported = run(capsys, "import-file", "llm-panel", str(samples / "llm-panel"), "--to", str(to))
    replayed = run(capsys, "replay", str(to))

    assert (imported.code, replayed.code) == (0, 0)
    assert gzip.decompress(to.read_bytes()).count(b"\n") == 310
    assert "310 events up to 2025-05-21T14:00:00Z\n\nfeed imported: " in replayed.out


def test_whatif_says_what_would_have_been_known_when_and_writes_a_report(
    capsys: Capture, samples: Path, tmp_path: Path
) -> None:
    report = tmp_path / "report.html"

    ended = run(capsys, "whatif", "csv", str(samples / "csv"), "--report", str(report), "--set", "round_every=null")

    assert ended.code == 0
    assert "403 rows read: 402 forecasts" in ended.out
    assert "Brier score  mix 0." in ended.out
    assert "what would have been known when\n  2025-01-" in ended.out
    assert f"report: {report}" in ended.out
    assert "48 questions scored" in report.read_text(encoding="utf-8")


def test_whatif_replays_what_import_file_writes(capsys: Capture, samples: Path, tmp_path: Path) -> None:
    to, report = tmp_path / "events.jsonl", tmp_path / "report.html"
    run(capsys, "import-file", "gjopen", str(samples / "gjopen"), "--to", str(to))

    apart = run(capsys, "replay", str(to)).out
    at_once = run(capsys, "whatif", "gjopen", str(samples / "gjopen"), "--report", str(report)).out

    assert apart.partition("\n\n")[2].strip() in at_once


def test_whatif_names_the_feed_by_one_flag_only(capsys: Capture, file: Path) -> None:
    ended = run(capsys, "whatif", "csv", str(file), "--feed", "a", "--feed-as", "b")

    assert (ended.code, "--feed-as" in ended.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (["csv", "FILE"], 2, "--to FILE, --to-topic, or both"),
        (["xls", "FILE", "--to", "OUT"], 2, "'xls' is not one of"),
        (["csv", "--to", "OUT"], 2, "Missing argument 'FILE…'"),
        (["csv", "nothing.csv", "--to", "OUT"], 2, "nothing.csv cannot be read: there is no such file"),
        (["csv", "FILE", "--to", "nowhere/out"], 2, "there is no directory"),
        (["csv", "FILE", "--to", "OUT", "--feed", "a b"], 2, "'a b' is no name of a feed"),
        (["csv", "FILE", "--to", "OUT", "--column", "who=x"], 2, "'who=x' is no ROLE=COLUMN; roles are question,"),
        (["csv", "FILE", "--to", "OUT", "--column", "time=x"], 2, "no file has the column 'x', named for the time"),
        (["csv", "FILE", "--to", "OUT", "--threshold", "3"], 2, "--threshold is for hubverse, not for csv"),
        (["manifold", "FILE", "--to", "OUT"], 2, "f.csv: none of them is the dump of contracts"),
        (["kalshi", "FILE", "--to", "OUT"], 2, "f.csv has neither markets nor candlesticks"),
        (["csv", "BAD", "--to", "OUT"], 65, "nothing in BAD can be used as csv: the first row refused is bad.csv:2"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence_and_no_file_is_left(
    capsys: Capture, file: Path, tmp_path: Path, arguments: list[str], code: int, why: str
) -> None:
    bad, out = tmp_path / "bad.csv", tmp_path / "out.jsonl"
    bad.write_text(HEADER + "q,a,7,2025-03-01,yes\n")
    places = {"FILE": str(file), "BAD": str(bad), "OUT": str(out)}

    ended = run(capsys, "import-file", *(places.get(word, word) for word in arguments))

    assert ended.code == code
    assert why.replace("BAD", str(bad)) in ended.err
    assert sorted(tmp_path.iterdir()) == [bad, file]


def test_a_missing_library_is_named_with_exit_code_78(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, samples: Path, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    ended = run(capsys, "import-file", "parquet", str(samples / "parquet"), "--to", str(tmp_path / "out"))

    assert ended.code == 78
    assert "pip install 'stream-peer[import]'" in ended.err


def test_no_broker_is_exit_code_69(capsys: Capture, file: Path) -> None:
    nobody = ["--bootstrap", "127.0.0.1:1", "--patience", "1s"]

    ended = run(capsys, "import-file", "csv", str(file), "--to-topic", *nobody)

    assert ended.code == 69


def test_a_deployment_that_knows_producers_is_told_which_one_signs(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, file: Path, tmp_path: Path
) -> None:
    (tmp_path / "house.key").write_text("a key of more than 16 bytes")
    (tmp_path / "producers.yaml").write_text("producers: {house: {key_file: house.key, may_ask: true}}")
    send = ["import-file", "csv", str(file), "--to-topic", "--bootstrap", "127.0.0.1:1", "--patience", "1s"]

    unknown = run(capsys, *send, "--producer", "house")
    monkeypatch.setenv("STREAM_PEER_PRODUCERS_FILE", str(tmp_path / "producers.yaml"))
    unnamed, other, named = (run(capsys, *send, *more) for more in ([], ["--producer", "x"], ["--producer", "house"]))

    assert [ended.code for ended in (unknown, unnamed, other, named)] == [2, 2, 2, 69]
    assert "--producer needs producers_file" in unknown.err
    assert "producers_file is set: name a --producer" in unnamed.err
    assert "producers_file names no producer 'x'" in other.err
