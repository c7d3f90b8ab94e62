"""Reading the rules as they lie in their files: alerts, recorded series, and what their expressions ask for."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import promql_parser
import yaml

from tests.infra.support.tools import ROOT

RULES = ROOT / "helm" / "stream-peer" / "rules"
FILES = (RULES / "recording.yaml", RULES / "alerts.yaml")

Rule = Mapping[str, Any]


def rules(files: tuple[Path, ...] = FILES) -> list[Rule]:
    """All rules of all groups."""
    documents = [yaml.safe_load(file.read_text(encoding="utf-8")) for file in files]
    return [rule for document in documents for group in document["groups"] for rule in group["rules"]]


def alerts() -> dict[str, Rule]:
    """Alerts by name."""
    return {rule["alert"]: rule for rule in rules() if "alert" in rule}


def recorded() -> dict[str, Rule]:
    """Recording rules by the name of what they record."""
    return {rule["record"]: rule for rule in rules() if "record" in rule}


def selectors(expression: str) -> Iterator[Any]:
    """Every selector of an expression, with its ``name`` and ``matchers.matchers`` (each a name, op and value)."""
    yield from _below(promql_parser.parse(expression))


def _below(node: Any) -> Iterator[Any]:
    if isinstance(node, promql_parser.VectorSelector):
        yield node
    for name in ("lhs", "rhs", "expr", "vector_selector", "args"):
        below = getattr(node, name, None) or ()
        for one in below if isinstance(below, list | tuple) else (below,):
            yield from _below(one)
