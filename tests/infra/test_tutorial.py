"""The tutorial runs as it is printed, from the table to the picture, and its notebook is the same."""

import io
import json
from contextlib import redirect_stdout
from typing import Any

import matplotlib as mpl
import pytest

from docs.generator.notebook import NOTEBOOK, PAGE, cells
from tests.infra.support.tools import ROOT


def test_each_cell_prints_what_the_page_says_and_the_last_draws_every_expert(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    mpl.use("agg")
    names: dict[str, Any] = {}

    for code, said in cells((ROOT / PAGE).read_text(encoding="utf-8")):
        with redirect_stdout(io.StringIO()) as printed:
            exec(code, names)  # noqa: S102 - the page's own
        assert printed.getvalue() == said

    drawn = {line.get_label(): list(line.get_ydata())[-1] for line in names["axes"].get_lines()}
    assert drawn == {expert.id: expert.mix for expert in names["experts"]}


def test_the_notebook_has_the_cells_of_the_page() -> None:
    notebook = json.loads((ROOT / NOTEBOOK).read_text(encoding="utf-8"))
    code = ["".join(cell["source"]) + "\n" for cell in notebook["cells"] if cell["cell_type"] == "code"]

    assert code == [source for source, _ in cells((ROOT / PAGE).read_text(encoding="utf-8"))]
