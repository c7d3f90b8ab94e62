"""One name, one thing: who reads a name anywhere in the package knows which class or function is meant."""

import ast
from collections import defaultdict
from pathlib import Path

import stream_peer

PACKAGE = Path(stream_peer.__file__).parent
CLASSES = {
    "Arrival",
    "BusyExpert",
    "Check",
    "Entry",
    "Finding",
    "Given",
    "Head",
    "Health",
    "History",
    "Lag",
    "Limits",
    "Line",
    "Look",
    "LookAlike",
    "NewExperts",
    "Origin",
    "Place",
    "Plan",
    "Played",
    "Point",
    "Progress",
    "Published",
    "Record",
    "Revealed",
    "Row",
    "Said",
    "Seen",
    "Size",
    "Source",
    "Table",
    "UnknownField",
    "Unused",
    "Written",
}
"""Names that two classes have so far: take them from here as they get names of their own, and put no new ones in."""

FUNCTIONS = {
    "answer",
    "apply_command",
    "check",
    "check_command",
    "check_size",
    "compared",
    "contradiction",
    "contradictions",
    "decode_entry",
    "decode_head",
    "guarded",
    "heading",
    "joined",
    "last_moment",
    "legend",
    "line",
    "main",
    "merged",
    "moment",
    "near",
    "paint",
    "play",
    "render",
    "said",
    "summary",
    "table",
    "tell",
    "verdict",
}
"""The same of functions; some, such as `main` and `summary`, say what they are only together with their module."""


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

    assert {name: files for name, files in twice.items() if name not in CLASSES | FUNCTIONS} == {}
