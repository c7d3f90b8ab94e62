"""Whoever needs a part of a feed takes the part: no object of the feed stage offers what another one has."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from stream_peer import feeds

FOLDER = Path(feeds.__file__).parent
OF_THE_STAGE = {"FeedStage.settings_hash", "FeedStage.hand_overs_due", "FeedStage.handed_over"}
"""What the worker asks of a stage, see `log.stage`: it knows no parts of it."""
NAMED = {"Method.loss_unit", "VoteDependence.z"}
"""Numbers of a part, under the name that they have in the whole."""


def hands_on(function: ast.FunctionDef) -> bool:
    """Whether a method only names what a part of its object has, or calls that with the arguments that it is given."""
    body = [node for node in function.body if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))]
    found = body[0].value if len(body) == 1 and isinstance(body[0], ast.Return | ast.Expr) else None
    if isinstance(found, ast.YieldFrom):
        found = found.value
    if isinstance(found, ast.Call):
        given = [argument.arg for argument in function.args.args[1:]]
        found = found.func if [ast.unparse(argument) for argument in found.args] == given else None
    return found is not None and bool(re.fullmatch(r"self(\.\w+){2,}", ast.unparse(found)))


def forwarding() -> Iterator[str]:
    for file in FOLDER.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                functions = (each for each in node.body if isinstance(each, ast.FunctionDef))
                yield from (f"{node.name}.{function.name}" for function in functions if hands_on(function))


def test_no_object_of_the_feed_stage_forwards_the_methods_of_another() -> None:
    assert set(forwarding()) == OF_THE_STAGE | NAMED
