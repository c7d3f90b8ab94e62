"""The page that tells the story (docs/paper.md) against the code, the tests and the pictures that it names."""

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import stream_peer.lab.formulas
import tests.reference
from stream_peer import numerics

ROW = re.compile(r"^\| E(\d+) \|(.*)\|$", re.MULTILINE)
LARGEST_PICTURE = 300_000


@pytest.fixture(scope="module")
def text(repository: Path) -> str:
    return (repository / "docs" / "paper.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def rows(text: str) -> dict[int, list[str]]:
    return {int(number): re.split(r"(?<!\\)\|", row) for number, row in ROW.findall(text)}


def formulas() -> set[str]:
    """Names of what the service, its lab and the tests compute."""
    packages = [numerics, stream_peer.lab.formulas, tests.reference]
    modules = [
        importlib.import_module(found.name)
        for package in packages
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    return {name for module in [*packages, *modules] for name in vars(module)}


def test_every_erratum_stands_there_once_and_in_the_text_before_the_table(
    text: str, rows: dict[int, list[str]]
) -> None:
    assert list(rows) == list(range(1, 25))
    story = text.split("## Errata")[0]
    assert [number for number in rows if not re.search(rf"\bE{number}\b", story)] == []


def test_every_erratum_has_where_printed_right_and_code(rows: dict[int, list[str]]) -> None:
    assert {number: len(cells) for number, cells in rows.items() if len(cells) != 4} == {}
    assert [number for number, cells in rows.items() if not all(cell.strip() for cell in cells)] == []


def test_every_erratum_has_a_test_that_bears_its_number(repository: Path, rows: dict[int, list[str]]) -> None:
    tests = "\n".join(path.read_text(encoding="utf-8") for path in (repository / "tests").rglob("test_*.py"))

    assert [number for number in rows if not re.search(rf"def test_e{number}_", tests)] == []


def test_functions_that_it_names_are_formulas(rows: dict[int, list[str]]) -> None:
    named = {name for cells in rows.values() for name in re.findall(r"`(\w+)`", cells[3])} - {"balanced"}

    assert len(named) > 25
    assert named - formulas() == set()


def test_pictures_that_it_shows_are_there_small_and_refer_to_nothing(repository: Path, text: str) -> None:
    shown = set(re.findall(r"\]\((images/[\w-]+\.svg)\)", text))
    pictures = {f"images/{path.name}": path for path in (repository / "docs" / "images").glob("*.svg")}

    assert shown == set(pictures)
    assert {name for name, path in pictures.items() if path.stat().st_size > LARGEST_PICTURE} == set()
    for path in pictures.values():
        picture = path.read_text(encoding="utf-8")
        assert re.findall(r"href=\"(?!#)|url\((?!#)|var\(", picture) == []
