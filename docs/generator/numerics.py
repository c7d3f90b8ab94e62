"""The page of all public names of `stream_peer.numerics`, and the table of contents in that package's docstring.

Both follow from the docstrings, so that they cannot drift.
"""

import ast
import importlib
import inspect
import pkgutil
import re
import textwrap
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

from docs.generator.tables import first_sentence, table
from stream_peer import numerics

PAGE = "docs/reference/numerics.md"
PACKAGE = "stream_peer/numerics/__init__.py"
INDENT = "    "
LONGEST_SIGNATURE = 150
HEAD = """# Formulas

All public names of `stream_peer.numerics`, made from the docstrings. The docstring of each has its formula, shapes,
ranges, errors and an example with numbers: `help(numerics.losses)` in Python shows them. *Source* is where the formula
stands in Liu and Helmbold, *Online Learning Using Only Peer Prediction*, if no other authors are named; *errata* are
the numbers under which what is wrong there is listed.
"""

_QUESTION = re.compile(r"^([a-z]\w*): (.+\?)\n((?: {4}.+\n)*)", re.MULTILINE)
_AUTHOR = r"(?:(?:de|van|der) )*[A-Z][\w-]+"
_NUMBERS = r"\d+(?:(?:, | and | to )\d+)*"
_SOURCE = re.compile(
    rf"(?:Theorem|Lemma|(?i:eq\.|equation))s? {_NUMBERS}"
    r'|(?:[Ss]ections?|[Aa]ppendix) "[^"]+"(?: and "[^"]+")*'
    rf"|{_AUTHOR}(?:, {_AUTHOR})*(?: & {_AUTHOR})? \d{{4}}\b"
)
_ERRATUM = re.compile(r"Errat(?:um|a) (E\d+(?:(?:, | and | to )E\d+)*)")


def files(root: Path) -> dict[str, str]:
    """Both files: path in the repository and content."""
    return {PAGE: _page(), PACKAGE: _with_contents((root / PACKAGE).read_text(encoding="utf-8"))}


def _page() -> str:
    """All public names of `stream_peer.numerics`, by module, in the order of its table of contents."""
    parts = [HEAD]
    for module, question in _contents(numerics):
        parts.append(f"\n## {module.__name__.rsplit('.', 1)[-1]}\n\n{question}\n")
        for home, names in _homes(module).items():
            if home is not module:
                parts.append(f"\n### {home.__name__.removeprefix('stream_peer.numerics.')}\n\n{_said(home)}.\n")
            rows = [row for name, below in names.items() for row in _rows(name, getattr(home, name), below)]
            parts.append("\n" + table(("name", "what it is", "source", "errata"), rows))
    return "".join(parts)


def _contents(package: ModuleType) -> list[tuple[ModuleType, str]]:
    """The modules of the package with their questions, as its docstring lists them."""
    listed = [(name, question) for name, question, _ in _QUESTION.findall(package.__doc__ or "")]
    assert sorted(name for name, _ in listed) == sorted(package.__all__), "docstring and __all__ name other modules"
    return [(getattr(package, name), question) for name, question in listed]


def _with_contents(text: str) -> str:
    """The package's source with the public names of each module below its question."""

    def with_names(line: re.Match[str]) -> str:
        homes = _homes(getattr(numerics, line[1]))
        names = ", ".join(name for found in homes.values() for name in found)
        return (
            f"{line[1]}: {line[2]}\n"
            + textwrap.fill(names, 120, initial_indent=INDENT, subsequent_indent=INDENT)
            + "\n"
        )

    return _QUESTION.sub(with_names, text)


def _homes(module: ModuleType) -> dict[ModuleType, dict[str, str]]:
    """Where the public names of a module or package are defined, each with the text below it if it is a constant."""
    inside = [f"{module.__name__}.{found.name}" for found in pkgutil.iter_modules(getattr(module, "__path__", []))]
    homes = {home: _defined(home) for home in map(importlib.import_module, inside or [module.__name__])}
    public = {
        home: {name: text for name, text in names.items() if name in module.__all__} for home, names in homes.items()
    }
    missing = set(module.__all__).difference(*public.values())
    assert not missing, f"{module.__name__} exports what none of its modules defines: {missing}"
    return {home: names for home, names in public.items() if names}


def _defined(module: ModuleType) -> dict[str, str]:
    """Names that a module defines, in its order, with the text that stands below an assignment."""
    body = ast.parse(inspect.getsource(module)).body
    names: dict[str, str] = {}
    for line, below in zip(body, [*body[1:], None], strict=True):
        if isinstance(line, ast.FunctionDef | ast.ClassDef):
            names[line.name] = ""
        elif isinstance(line, ast.Assign | ast.AnnAssign):
            target = line.targets[0] if isinstance(line, ast.Assign) else line.target
            text = below.value if isinstance(below, ast.Expr) else None
            names[ast.unparse(target)] = text.value if isinstance(text, ast.Constant) else ""
    return names


def _rows(name: str, value: Any, below: str) -> list[tuple[str, ...]]:
    if inspect.isfunction(value):
        return [_row(name + _signature(value), value)]
    if inspect.isclass(value):
        made_by_caller = not issubclass(value, Enum) and not getattr(value, "_is_protocol", False)
        methods = [
            _row(f"{name}.{method}{_signature(function)}", function)
            for method, function in inspect.getmembers(value, callable)
            if not method.startswith("_") and (getattr(function, "__module__", "") or "").startswith("stream_peer.")
        ]
        return [_row(name + (_signature(value) if made_by_caller else ""), value), *methods]
    shown = f"`{name} = {value:.6g}`" if isinstance(value, float) else f"`{name}`"
    return [(shown, first_sentence(below) or _kind(value), "", "")]


def _kind(value: object) -> str:
    kind = type(value)
    return _said(kind) if kind.__module__.startswith("stream_peer.") else "a type"


def _row(shown: str, value: Any) -> tuple[str, ...]:
    text = " ".join((inspect.getdoc(value) or "").split())
    return f"`{shown}`", _said(value), "; ".join(dict.fromkeys(_SOURCE.findall(text))), _errata(text)


def _errata(text: str) -> str:
    numbers: set[int] = set()
    for named in _ERRATUM.findall(text):
        for first, last in re.findall(r"E(\d+)(?: to E(\d+))?", named):
            numbers.update(range(int(first), int(last or first) + 1))
    return ", ".join(f"E{number}" for number in sorted(numbers))


def _signature(value: Any) -> str:
    """Parameters and defaults, without the types that the docstring describes better."""
    found = inspect.signature(value)
    bare = [
        parameter.replace(annotation=parameter.empty, default=_Shown(parameter.default))
        if parameter.default is not parameter.empty
        else parameter.replace(annotation=parameter.empty)
        for parameter in found.parameters.values()
        if parameter.name != "self"
    ]
    shown = str(inspect.Signature(bare))
    return shown if len(shown) <= LONGEST_SIGNATURE else "(...)"


class _Shown:
    """A default that is shown by its public name, if it has one."""

    def __init__(self, value: object) -> None:
        names = [name for name, known in vars(numerics.losses).items() if known is value and name.isupper()]
        if isinstance(value, Enum):
            names = [f"{type(value).__name__}.{value.name}"]
        self.name = names[0] if names else repr(value)

    def __repr__(self) -> str:
        return self.name


def _said(value: object) -> str:
    return first_sentence(inspect.getdoc(value) or "")
