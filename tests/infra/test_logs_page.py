"""The page about the log names what the program says, and nothing else."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PAGE = "docs/reference/logs.md"
LEVELS = {"debug": "debug", "info": "info", "warning": "warning", "error": "error", "exception": "error"}
LEVELS["critical"] = "critical"
WRITTEN_BY_THE_HANDLER = "repeats_left_out"
LEAST = 12


class Said(NamedTuple):
    """An event name in a call of a logger, and its level."""

    event: str
    level: str


def calls(repository: Path) -> Iterator[tuple[str, ast.Call]]:
    """Every call of a module's logger, and where it stands."""
    for path in sorted((repository / "stream_peer").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LEVELS:
                logger = node.func.value
                if isinstance(logger, ast.Name) and logger.id == "log":
                    yield f"{path.relative_to(repository)}:{node.lineno}", node


def said(repository: Path) -> set[Said]:
    found = set()
    for _, call in calls(repository):
        assert isinstance(call.func, ast.Attribute)
        (event, *_) = call.args
        assert isinstance(event, ast.Constant)
        found.add(Said(str(event.value), LEVELS[call.func.attr]))
    return found


def rows(repository: Path, heading: str) -> list[list[str]]:
    """Cells of the table under a heading."""
    text = (repository / PAGE).read_text(encoding="utf-8")
    section = text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


def test_an_event_is_a_name_that_is_written_out_and_of_one_form(repository: Path) -> None:
    odd = {
        place: ast.unparse(call)
        for place, call in calls(repository)
        if not (call.args and isinstance(call.args[0], ast.Constant))
        or not re.fullmatch(r"[a-z]+(_[a-z]+)+", str(call.args[0].value))
    }

    assert odd == {}


def test_all_loggers_are_called_log_so_that_none_is_overlooked(repository: Path) -> None:
    for path in (repository / "stream_peer").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for line in text.splitlines():
            if "structlog.get_logger(" in line:
                assert line.strip() == "log = structlog.get_logger(__name__)", path


def test_an_event_has_one_level(repository: Path) -> None:
    events = [one.event for one in said(repository)]

    assert sorted({event for event in events if events.count(event) > 1}) == []


def test_the_page_lists_every_warning_and_error_with_what_to_do_and_no_other(repository: Path) -> None:
    loud = {one for one in said(repository) if one.level not in ("debug", "info")}
    listed = {Said(cells[0].strip("`"), cells[1]) for cells in rows(repository, "Warnings and errors")}

    assert listed - {Said(WRITTEN_BY_THE_HANDLER, "warning")} == loud
    assert f'"{WRITTEN_BY_THE_HANDLER}"' in (repository / "stream_peer/serve/logs.py").read_text(encoding="utf-8")
    assert len(loud) >= LEAST
    assert all(len(cells) == 4 and all(cells) for cells in rows(repository, "Warnings and errors"))


def test_the_page_lists_every_note_and_no_other(repository: Path) -> None:
    listed = {name for cells in rows(repository, "Notes") for name in re.findall(r"`(\w+)`", cells[0])}

    assert listed == {one.event for one in said(repository) if one.level == "info"}


def test_fields_of_the_same_meaning_have_the_same_name(repository: Path) -> None:
    """Those by which lines are put together, and none of what else they are called in the program."""
    other_names = {"tp", "question_id", "expert_id", "applied", "topic_name", "why", "error"}
    used = {keyword.arg for _, call in calls(repository) for keyword in call.keywords}

    assert used & other_names == set()
    assert {"topic", "partition", "offset", "feed", "question", "reason"} <= used
