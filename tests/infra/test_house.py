"""The signs that `make house` prints are counted right, on a package of three files."""

from pathlib import Path

import pytest

from benchmarks import house

MODULES = {
    "stream_peer.a": "",
    "stream_peer.room": "",
    "stream_peer.room.one": "from stream_peer.room import two\nfrom stream_peer.room.two import x\n",
    "stream_peer.room.two": "from stream_peer.room.three import x\nfrom stream_peer.other.deep import y\n",
    "stream_peer.room.three": "from stream_peer.room.four import x\n",
    "stream_peer.room.four": "from stream_peer.room.three import z\n",
    "stream_peer.other.deep": "import stream_peer.room.one\n",
}


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('"""One.\n\nTwo.\n"""\n\nA = 1  # one\n# two\n"""What A is."""\n', 1),
        ('def f() -> str:\n    """Say it."""\n    return """a\n    b"""\n', 3),
        ("", 0),
    ],
)
def test_docstrings_comments_and_blank_lines_are_no_code(text: str, lines: int) -> None:
    assert house.code_lines(text) == lines


def test_a_chain_of_imports_stays_within_its_room_and_counts_a_circle_once() -> None:
    circle = "stream_peer.room.four = stream_peer.room.three"

    assert house.longest_chain(MODULES) == ("stream_peer.room.one", "stream_peer.room.two", circle)


def test_an_import_of_several_lines_counts_each() -> None:
    assert house.import_lines("import os\nfrom a import (\n    b,\n    c,\n)\nx = 1\n") == 5


def test_pages_that_programs_write_have_no_words(tmp_path: Path) -> None:
    for folder in ("reference", "measured"):
        (tmp_path / "docs" / folder).mkdir(parents=True)
        (tmp_path / "docs" / folder / "made.md").write_text("none of these\n", encoding="utf-8")
    (tmp_path / "README.md").write_text("three words here | - |\n", encoding="utf-8")
    (tmp_path / "docs" / "page.md").write_text("two words\n", encoding="utf-8")

    assert house.words_of_docs(tmp_path) == 5
    assert house.words_of_docs(tmp_path, generated=True) == 6
