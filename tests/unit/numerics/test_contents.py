"""What must be true of all formulas: where they are found, and what their docstrings say."""

import inspect
import pkgutil
import pydoc
import re
from collections import Counter
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, get_type_hints

import pytest

from stream_peer import numerics
from stream_peer.lab.formulas import (
    five_mixers,
    gradients,
    learners,
    reference_rules,
    regret_sums,
    three_references,
    two_groups,
)
from stream_peer.tools.report import pairs, skill

MODULES = [getattr(numerics, name) for name in numerics.__all__]
PUBLIC = [(module, name, getattr(module, name)) for module in MODULES for name in module.__all__]
BESIDE = (
    five_mixers,
    gradients,
    learners,
    reference_rules,
    regret_sums,
    three_references,
    two_groups,
    pairs,
    skill,
)
"""Where formulas stand that only a replay or a report computes."""

DESCRIBED = [
    *PUBLIC,
    *((module, name, getattr(module, name)) for module in BESIDE for name in module.__all__),
]
CLASSES = [(f"{module.__name__}.{name}", value) for module, name, value in DESCRIBED if inspect.isclass(value)]
FUNCTIONS = [(f"{module.__name__}.{name}", value) for module, name, value in DESCRIBED if inspect.isfunction(value)]


def by_name(named: tuple[str, Any]) -> Any:
    return pytest.param(named[1], id=named[0].removeprefix("stream_peer.numerics."))


def sections(value: Any) -> dict[str, str]:
    """Text of a numpy docstring by section; what stands before the first one has the key ``""``."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", inspect.getdoc(value) or "", flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def named(text: str, order: list[str]) -> set[str]:
    """Names that a section describes: ``one, two : float``, or ``first, … last : float`` for all between."""
    found = set(re.findall(r"\w+", " ".join(re.findall(r"^(\w.*?)(?: : .*)?$", text, flags=re.MULTILINE))))
    for first, last in re.findall(r"^(\w+), … (\w+)", text, flags=re.MULTILINE):
        found.update(order[order.index(first) : order.index(last)])
    return found


def parameters(function: Callable[..., Any]) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name not in {"self", "cls"}]


def returns_something(function: Callable[..., Any]) -> bool:
    return get_type_hints(function).get("return") is not type(None)


def own_methods(kind: type) -> Iterator[Callable[..., Any]]:
    for name, value in inspect.getmembers(kind, callable):
        if not name.startswith("_") and (getattr(value, "__module__", "") or "").startswith("stream_peer."):
            yield value


def test_every_module_has_its_place_in_the_table_of_contents() -> None:
    modules = {module.name for module in pkgutil.iter_modules(numerics.__path__)}
    questions = re.findall(r"^(\w+): .+\?$", numerics.__doc__ or "", flags=re.MULTILINE)

    assert modules == set(numerics.__all__)
    assert Counter(questions) == Counter(numerics.__all__)


def test_no_name_is_found_in_two_modules() -> None:
    found = Counter(name for _, name, _ in PUBLIC)

    assert [name for name, times in found.items() if times > 1] == []
    assert set(found).isdisjoint(numerics.__all__)


def test_help_on_the_package_is_a_table_of_contents() -> None:
    """All names below their module's question, and nothing else of them: a page to look at, not a book."""
    lines = pydoc.plain(pydoc.render_doc(numerics)).splitlines()
    places = {line.split(":")[0].strip(): number for number, line in enumerate(lines) if line.endswith("?")}
    listed = {}
    for module, start in places.items():
        below = lines[start + 1 : next(n for n in range(start + 1, len(lines)) if not lines[n].strip())]
        listed[module] = sorted(re.findall(r"\w+", " ".join(below)))

    assert listed == {name: sorted(getattr(numerics, name).__all__) for name in numerics.__all__}
    assert len(lines) <= 100
    assert not {"FUNCTIONS", "CLASSES"} & set(lines)


@pytest.mark.parametrize("function", [by_name(found) for found in FUNCTIONS])
def test_the_docstring_of_a_function_has_all_its_parts(function: Callable[..., Any]) -> None:
    parts = sections(function)
    described = named(parts.get("Parameters", ""), parameters(function))

    assert [name for name in parameters(function) if name not in described] == []
    assert "Returns" in parts or not returns_something(function)
    assert ">>> " in parts.get("Examples", "")


@pytest.mark.parametrize("kind", [by_name(found) for found in CLASSES])
def test_the_docstring_of_a_class_has_its_fields_and_its_methods_say_what_they_do(kind: type) -> None:
    parts = sections(kind)
    described = parts.get("Attributes", "") + parts.get("Parameters", "")
    fields = [] if issubclass(kind, Enum) or getattr(kind, "_is_protocol", False) else parameters(kind)

    assert parts[""].strip()
    assert [name for name in fields if name not in named(described, fields)] == []
    assert [method.__name__ for method in own_methods(kind) if not inspect.getdoc(method)] == []
