"""What every command and page does with ids that would take over a terminal or a page: all is spelt out."""

import ast
import io
import json
import logging
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec
import pytest
import structlog

import stream_peer
from stream_peer.cli import cli, tail
from stream_peer.events.spelling import spelt, spelt_lines
from stream_peer.serve import logs, terminal
from stream_peer.serve.pages.parts import escape
from stream_peer.settings.process.model import Log
from stream_peer.tools.demo import live_table
from tests.feed_outputs import expert, weights
from tests.unit.cli.support import run

Capture = pytest.CaptureFixture[str]

CLEARS = "\x1b[2J\x1b]0;owned\x07ann"
C1 = "\x9b2Jbob"
TURNS = "\u202egnp.\u2066cyd\u200f"
FORGES = "dan\nforged 0.999"
LONG = "e" * 200
IDS = (CLEARS, C1, TURNS, FORGES, LONG)
ACTING = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def check(text: str) -> None:
    """Nothing that a terminal or a browser acts upon, and no row that nobody wrote."""
    acting = [character for character in text if unicodedata.category(character) in ACTING and character not in "\n\t"]
    assert acting == []
    assert [line for line in text.splitlines() if line.lstrip().startswith("forged")] == []


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name)


COMMANDS = list(commands(cli))


def test_every_character_that_acts_is_spelt_out_and_no_other() -> None:
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        acts = unicodedata.category(character) in ACTING
        assert not acts or spelt(character) != character
        assert spelt(character) == character or acts or unicodedata.category(character) == "Cn"
    assert spelt_lines("two\nlines\tof\x1b text") == "two\nlines\tof\\u001b text"


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("name", [CLEARS, C1, TURNS, LONG], ids=["clears", "c1", "turns", "long"])
def test_every_command_spells_out_what_it_is_given(path: tuple[str, ...], name: str, capsys: Capture) -> None:
    for arguments in ([name] * 5, ["--bootstrap", name, name, name, name, name, name], [f"--{name}"]):
        ended = run(capsys, *path, *arguments)

        assert ended.code not in (0, 70)
        check(ended.out + ended.err)


@pytest.fixture
def season(tmp_path: Path) -> Path:
    """A file of which experts and questions have hostile ids."""
    lines: list[dict[str, object]] = []
    for day in range(1, 13):
        question = f"q{day}{IDS[day % 4]}"
        at = f"2026-03-{day:02d}T00:00:00Z"
        lines.append(
            {
                "type": "question",
                "question_id": question,
                "feed": "econ",
                "opens_at": at,
                "closes_at": f"2026-03-{day:02d}T12:00:00Z",
            }
        )
        for place, who in enumerate(IDS):
            probability = 0.3 + 0.1 * ((day + place) % 5)
            lines.append(
                {
                    "type": "forecast",
                    "question_id": question,
                    "expert_id": who,
                    "probability": probability,
                    "at": f"2026-03-{day:02d}T01:00:00Z",
                }
            )
        lines.append({"type": "forecast", "question_id": question, "expert_id": CLEARS, "probability": 55, "at": at})
        lines.append(
            {"type": "resolution", "question_id": question, "outcome": day % 2, "at": f"2026-03-{day:02d}T20:00:00Z"}
        )
    file = tmp_path / "season.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    return file


def test_replay_and_its_stories_spell_out_ids(season: Path, tmp_path: Path, capsys: Capture) -> None:
    report = tmp_path / "report.html"
    for arguments in (
        ["replay", str(season), "--report", str(report)],
        ["replay", str(season), "--explain", f"q1{IDS[1]}"],
        ["replay", str(season), "--explain"],
        ["explain", "econ", CLEARS, str(season)],
        ["explain", "econ", FORGES, str(season)],
    ):
        ended = run(capsys, *arguments)

        assert ended.code == 0, ended.err
        assert "ann" in ended.out or "bob" in ended.out or "dan" in ended.out
        check(ended.out + ended.err)
    check(report.read_text(encoding="utf-8").replace("miscali\u00adbration", "miscalibration"))


def test_json_is_spelt_out_and_means_the_same(season: Path, capsys: Capture) -> None:
    ended = run(capsys, "explain", "econ", TURNS, str(season), "--json")

    check(ended.out)
    assert json.loads(ended.out)["expert"] == TURNS


def test_weights_that_are_watched_are_spelt_out(monkeypatch: pytest.MonkeyPatch) -> None:
    experts = [msgspec.structs.replace(expert(name), mix=0.2) for name in IDS]
    found = msgspec.structs.replace(weights(7), experts=experts, status_reasons=[CLEARS])
    glance = live_table.Glance("Sending", 5, 10, 1.0, {}, 3, 0, found, 2, 0.1, 0.2)
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)

    console = terminal.console()
    console.print(tail.weights_table(found, 20))
    console.print(live_table.live_table(glance))
    console.print(f"unspelt {CLEARS}", markup=False)
    check(tail.weights_line(found) + live_table.status_line(glance) + out.getvalue())

    assert "\\u001b[2J" in out.getvalue()


def test_the_log_of_a_person_is_spelt_out(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    logs.configure(Log(format="console"), stream=out)
    try:
        structlog.get_logger("stream_peer").warning("looks-alike", expert=CLEARS, other=FORGES)
        logging.getLogger("a.library").warning("what %s said", C1)
    finally:
        logs.configure(Log(), stream=sys.stderr)

    assert "looks-alike" in out.getvalue()
    check(out.getvalue())


def test_pages_escape_by_one_function_and_terminals_are_made_by_one() -> None:
    root = Path(stream_peer.__file__).parent
    consoles, escapes = set(), set()
    for file in root.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Console":
                consoles.add(file.name)
            if isinstance(node, ast.Import | ast.ImportFrom) and "html" in (
                getattr(node, "module", ""),
                *(a.name for a in node.names),
            ):
                escapes.add(f"{file.parent.name}/{file.name}")

    assert consoles == set()
    assert escapes == {"pages/parts.py"}
    assert escape(TURNS) == "\\u202egnp.\\u2066cyd\\u200f"
