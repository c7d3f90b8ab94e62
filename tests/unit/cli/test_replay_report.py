import re
import sys
from pathlib import Path

import pytest

from tests.unit.cli.support import run
from tests.unit.tools.replay.file_lines import season

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "season.jsonl"
    path.write_bytes(b"\n".join(season()))
    return path


def test_the_report_of_a_replay_knows_settings_shadows_and_why_weights_are_as_they_are(
    capsys: Capture, file: Path, tmp_path: Path
) -> None:
    report = tmp_path / "report.html"
    words = ("--report", str(report), "--set", "min_experts=2", "--shadow", "slow:mixer.peer_rate=0.1")

    ended = run(capsys, "replay", str(file), *words, "--feed-partitions", "3")

    page = report.read_text(encoding="utf-8")
    assert ended.code == 0
    assert f"report: {report}" in ended.out
    assert "<code>min_experts</code></th><td><code>2</code></td><td><code>3</code>" in page
    assert re.search(r"<h3>Shadows</h3>.*?<th scope=\"row\">slow</th>", page, re.DOTALL)
    assert len(re.findall(r"<h4>e\d</h4><p>Between 2 Mar 2026 and ", page)) == 3


def test_one_who_cannot_draw_learns_it_before_the_replay(
    capsys: Capture, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    ended = run(capsys, "replay", str(file), "--report", str(tmp_path / "report.html"))

    assert ended.code != 0
    assert ended.out == ""
    assert "pip install 'stream-peer[report]'" in ended.err
