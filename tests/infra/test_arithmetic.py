"""Which arithmetic formulas may use, so that the same log gives the same bits on every supported Python."""

import ast
from pathlib import Path

import pytest

NUMERICS = sorted((Path(__file__).parents[2] / "stream_peer" / "numerics").rglob("*.py"))


@pytest.mark.parametrize("module", NUMERICS, ids=lambda path: f"{path.parent.stem}.{path.stem}")
def test_formulas_do_not_sum_with_the_built_in_that_differs_between_versions(module: Path) -> None:
    """From 3.12 on ``sum`` compensates the rounding of floats; before, it does not."""
    calls = [node.func for node in ast.walk(ast.parse(module.read_text("utf-8"))) if isinstance(node, ast.Call)]

    assert [call.lineno for call in calls if isinstance(call, ast.Name) and call.id == "sum"] == []
