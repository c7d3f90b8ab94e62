"""Selectors and calls of PromQL expressions, for rules about them."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import promql_parser

from helm.dashboards.reading import substituted, variables

_INNER = ("expr", "lhs", "rhs", "param", "vector_selector")
_EXAMPLE = variables("1m", 300, {})


class Selector(NamedTuple):
    """Series that an expression names: a metric, values of labels by (label, operator), and the call it stands in."""

    metric: str
    labels: Mapping[tuple[str, str], str]
    call: str


def selectors(expression: str) -> list[Selector]:
    """All selectors of an expression, in which variables may stand.

    Raises
    ------
    ValueError
        If it cannot be parsed.
    """
    return list(_selectors(promql_parser.parse(substituted(expression, _EXAMPLE)), ""))


def _selectors(node: Any, call: str) -> Iterator[Selector]:
    if isinstance(node, promql_parser.VectorSelector):
        labels = {(one.name, str(one.op).removeprefix("MatchOp.")): one.value for one in node.matchers.matchers}
        yield Selector(node.name or "", labels, call)
        return
    inner_call = node.func.name if isinstance(node, promql_parser.Call) else call
    for inner in _inner(node):
        yield from _selectors(inner, inner_call)


def _inner(node: Any) -> Iterator[Any]:
    found = [getattr(node, name, None) for name in _INNER]
    for one in (*found, *getattr(node, "args", ())):
        if isinstance(one, promql_parser.Expr):
            yield one
