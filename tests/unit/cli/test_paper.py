import errno
import json
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import numpy as np
import pytest

from stream_peer.cli import options
from stream_peer.cli.paper import claims_summary
from stream_peer.lab.paper import run as running
from stream_peer.lab.paper.results import Result, Size, as_json
from tests.unit.cli.support import run
from tests.unit.lab.paper.samples import SEED, sample_result

Capture = pytest.CaptureFixture[str]
Claim = Callable[[np.random.Generator, Size], Result]


def made_up(number: int, *, missed: bool = False) -> Claim:
    def claim(rng: np.random.Generator, size: Size) -> Result:
        return sample_result(number, missed=missed)._replace(finding=f"{size.value}: {rng.integers(10**6)}")

    return claim


@pytest.fixture
def claims(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "CLAIMS", {1: made_up(1), 2: made_up(2)})


@pytest.fixture
def one_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "CLAIMS", {1: made_up(1), 2: made_up(2, missed=True)})


@pytest.mark.usefixtures("claims")
def test_paper_writes_a_page_and_numbers_and_says_where(capsys: Capture, tmp_path: Path) -> None:
    out = tmp_path / "new" / "report"

    ended = run(capsys, "paper", "--quick", "--out", str(out), "--processes", "1")

    assert ended.code == 0
    assert "4 of 4 numbers lie in their bands" in ended.out
    assert ended.out.endswith(f"report: {out / 'index.html'}\n")
    assert (out / "index.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    numbers = json.loads((out / "results.json").read_text(encoding="utf-8"))
    assert (numbers["size"], numbers["seed"], numbers["met"]) == ("quick", 2020, True)


@pytest.mark.usefixtures("one_missed")
def test_a_missed_band_is_named_and_makes_the_exit_code_1(capsys: Capture, tmp_path: Path) -> None:
    ended = run(capsys, "paper", "--out", str(tmp_path), "--processes", "1")

    assert ended.code == 1
    assert "MISSED violations: measured 3, band exactly 0 (by theory)" in ended.out
    assert "3 of 4 numbers lie in their bands" in ended.out
    assert 'class="missed"' in (tmp_path / "index.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("claims")
def test_equal_seeds_give_equal_files_and_other_seeds_others(capsys: Capture, tmp_path: Path) -> None:
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        run(capsys, "paper", "--seed", seed, "--out", str(tmp_path / name), "--processes", "1")

    first, again, other = ((tmp_path / name / "results.json").read_bytes() for name in "abc")
    assert first == again
    assert first != other


def test_without_matplotlib_it_says_so_before_it_simulates(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    ended = run(capsys, "paper", "--out", str(tmp_path / "out"))

    assert ended.code == 78
    assert "pip install 'stream-peer[report]'" in ended.err
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written_is_named(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")

    ended = run(capsys, "paper", "--out", str(tmp_path / "file" / "report"))

    assert ended.code == 2
    assert "report" in ended.err


@pytest.mark.parametrize("option", ["--out", "--images"])
def test_a_directory_in_which_no_file_can_be_made_is_refused_before_anything_is_simulated(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    def full(dir: Path) -> IO[bytes]:
        if dir.name == "full":
            raise OSError(errno.ENOSPC, "No space left on device")
        return TemporaryFile(dir=dir)

    monkeypatch.setattr(options, "TemporaryFile", full)
    monkeypatch.setattr(running, "CLAIMS", {})
    places = {"--out": tmp_path / "out", "--images": tmp_path / "images", option: tmp_path / "full"}

    ended = run(capsys, "paper", *(str(word) for place in places.items() for word in place))

    assert ended.code == 2
    assert "full: No space left on device" in " ".join(ended.err.split())
    assert ended.out == ""


@pytest.mark.usefixtures("claims")
@pytest.mark.parametrize("name", ["out/index.html", "out/results.json", "images/one.svg"])
def test_a_file_that_cannot_be_written_is_named(capsys: Capture, tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir(parents=True)
    places = "--out", str(tmp_path / "out"), "--images", str(tmp_path / "images")

    ended = run(capsys, "paper", *places, "--processes", "1")

    assert ended.code == 2
    assert f"{tmp_path / name}': Is a directory" in ended.err


def test_help_says_what_is_simulated_and_how_long_it_takes(capsys: Capture) -> None:
    ended = run(capsys, "paper", "--help")

    assert ended.code == 0
    for word in ("--quick", "within a minute", "quarter of an hour", "exit code is 1", "stream-peer paper --quick"):
        assert word in " ".join(ended.out.split())


def test_the_summary_has_a_line_for_each_claim_with_a_number_beside_its_expectation() -> None:
    text = claims_summary([sample_result(1), sample_result(2, missed=True)])

    assert "1  Sub-linear & more: 2 met" in text
    assert "e.g. slope<of>regret: expected 0.5, measured 0.480" in text
    assert "2  Sub-linear & more: 1 of 2 missed" in text


@pytest.mark.usefixtures("claims")
def test_images_are_pictures_that_stand_by_themselves(capsys: Capture, tmp_path: Path) -> None:
    images = tmp_path / "images"

    ended = run(capsys, "paper", "--out", str(tmp_path), "--images", str(images), "--processes", "1")

    assert f"images: {images}" in ended.out
    assert sorted(path.name for path in images.iterdir()) == ["one.svg", "two.svg"]
    picture = (images / "one.svg").read_text(encoding="utf-8")
    assert picture.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    for words in ("Regret", "questions T", "summed loss", "expected", "bound"):
        assert f">{words}</text>" in picture
    assert "var(" not in picture


@pytest.mark.slow
def test_commands_of_the_docs_meet_every_band_and_numbers_do_not_depend_on_processes(
    capsys: Capture, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (repository / "docs" / "paper.md").read_text(encoding="utf-8")
    commands = [
        shlex.split(line)
        for block in re.findall(r"```console\n(.*?)```", page, re.DOTALL)
        for line in block.splitlines()
    ]
    monkeypatch.chdir(tmp_path)

    for program, *arguments in commands:
        assert program == "stream-peer"
        ended = run(capsys, *arguments, "--processes", "2")
        assert ended.code == 0, ended.out
    written = json.loads((tmp_path / "paper-report" / "results.json").read_text(encoding="utf-8"))["claims"]
    assert [claim["number"] for claim in written] == list(running.CLAIMS)
    in_this_process = [running.rerun(number, Size.QUICK, SEED).result for number in (5, 7)]
    claims = as_json(in_this_process, size=Size.QUICK, seed=SEED)["claims"]
    assert [claim for claim in written if claim["number"] in (5, 7)] == json.loads(json.dumps(claims))
    made = {path.name for path in (tmp_path / "paper-images").iterdir()}
    shown = set(re.findall(r"\(images/([\w.-]+)\)", (repository / "docs" / "paper.md").read_text(encoding="utf-8")))
    assert shown
    assert shown <= made
