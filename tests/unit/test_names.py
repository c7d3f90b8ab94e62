"""One name, one thing: who reads a name anywhere in the package knows which class or function is meant."""

import ast
from collections import defaultdict
from pathlib import Path

import stream_peer

PACKAGE = Path(stream_peer.__file__).parent
TOGETHER_WITH_THEIR_MODULE = {"main", "play"}
"""Names that several modules have: they say what they are only together with the module."""


def public_names() -> dict[str, set[str]]:
    """The files in which a public class or function of this name stands at module level."""
    found = defaultdict(set)
    for file in PACKAGE.rglob("*.py"):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name[0] != "_":
                found[node.name].add(str(file.relative_to(PACKAGE)))
    return found


def test_a_public_name_at_module_level_is_used_once_in_the_package() -> None:
    twice = {name: sorted(files) for name, files in public_names().items() if len(files) > 1}

    assert twice.keys() == TOGETHER_WITH_THEIR_MODULE, twice
