import json
from pathlib import Path

import jsonschema
import pytest

from tests.unit.cli.support import run

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    written = tmp_path / "settings.yaml"
    written.write_text(
        "prefix: acme-\nsecurity: {protocol: sasl_ssl, username: u, password: hunter2}\n"
        "defaults: {grace: 5s}\nfeeds: {econ: {quorum: 5}}\n"
    )
    return written


def test_show_prints_values_with_their_origin_and_no_secret(capsys: Capture, file: Path) -> None:
    ended = run(capsys, "settings", "show", "-c", str(file), "--id", "mine")

    lines = {line.split()[0]: line.split()[1:] for line in ended.out.splitlines() if line.strip()}
    assert ended.code == 0
    assert lines["prefix"] == ["acme-", "file", str(file)]
    assert lines["id"] == ["mine", "flag", "--id"]
    assert lines["security.password"][0] == "***"
    assert lines["defaults.grace"] == ["5s", "file", str(file)]
    assert lines["feeds.econ.quorum"] == ["5", "file", str(file)]
    assert "hunter2" not in ended.out


def test_show_can_be_read_by_machines(capsys: Capture, file: Path) -> None:
    shown = json.loads(run(capsys, "settings", "show", "--json", "-c", str(file)).out)

    assert shown["prefix"] == {"value": "acme-", "origin": f"file {file}"}
    assert shown["session"] == {"value": "45s", "origin": "default"}


def test_show_can_leave_out_defaults(capsys: Capture, file: Path) -> None:
    out = run(capsys, "settings", "show", "--changed", "-c", str(file)).out

    assert "prefix" in out
    assert "broker_patience" not in out


def test_check_accepts_what_is_right(capsys: Capture, file: Path) -> None:
    ended = run(capsys, "settings", "check", "-c", str(file))

    assert ended.code == 0
    assert ended.out.startswith("The settings are right.")


def test_check_names_every_fault(capsys: Capture, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("sesion: 3s\nhttp: {port: 99999}\ndefaults: {vote_rule: quarter}\n")

    ended = run(capsys, "settings", "check", "-c", str(wrong))

    assert ended.code == 78
    assert ended.out == ""
    assert len(ended.err.splitlines()) == 4


@pytest.mark.parametrize("command", [("settings", "check"), ("settings", "apply"), ("worker",)])
def test_variants_that_only_a_replay_computes_end_a_command_of_the_service(
    capsys: Capture, tmp_path: Path, command: tuple[str, ...]
) -> None:
    file = tmp_path / "variant.yaml"
    file.write_text("defaults: {loss: spherical}\nfeeds: {econ: {method: {learner: ada-hedge}}}\n")

    ended = run(capsys, *command, "-c", str(file))

    assert (ended.code, ended.out) == (78, "")
    assert "defaults.loss" in ended.err
    assert "feeds.econ.method.learner" in ended.err
    assert "compare other values with stream-peer replay --set" in ended.err


def test_the_preset_paper_is_served(capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "paper.yaml"
    file.write_text("feeds: {econ: {preset: paper}}\n")

    assert run(capsys, "settings", "check", "-c", str(file)).code == 0


def test_the_schema_is_one(capsys: Capture) -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(run(capsys, "settings", "schema").out))


def test_applying_without_a_file_is_wrong_usage(capsys: Capture) -> None:
    assert "--config FILE" in run(capsys, "settings", "apply").err


def test_truth_values_are_shown_as_the_file_writes_them(capsys: Capture) -> None:
    out = run(capsys, "settings", "show").out

    assert "False" not in out
    assert "True" not in out


def test_the_overview_of_a_group_cuts_no_sentence(capsys: Capture) -> None:
    for group in ("settings", "topics"):
        assert "...\n" not in run(capsys, group, "--help").out.partition("Commands:")[2]


def test_check_names_every_fault_of_the_producers_and_the_hash_of_right_ones(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"0123456789abcdef")
    right, wrong = tmp_path / "right.yaml", tmp_path / "wrong.yaml"
    right.write_text("producers: {a: {key_file: key, experts: [ann]}}")
    wrong.write_text("others: perhaps\nproducers: {a: {key_file: none, experts: ann}}")

    good = run(capsys, "settings", "check", "--producers-file", str(right))
    bad = run(capsys, "settings", "check", "--producers-file", str(wrong))

    assert (good.code, bad.code) == (0, 78)
    assert "Producers " in good.out
    assert "by name: 1." in good.out
    assert all(path in bad.err for path in ("others", "producers.a.key_file", "producers.a.experts"))
