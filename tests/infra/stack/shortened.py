"""Rules with their times shortened, so that what takes an hour is seen within minutes."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000, "y": 31_536_000_000}
_PART = re.compile(r"(\d+)(ms|[smhdwy])")
_IN_EXPRESSIONS = re.compile(r"(?<=\[)[0-9a-z]+(?=[\]:])|(?<=[smhdwy]:)[0-9a-z]+(?=\])|(?<=offset )[0-9a-z]+")


def shortened(rules: Mapping[str, Any], factor: float) -> dict[str, Any]:
    """A rules file, as YAML gives it, in which ``for``, windows and offsets are ``factor`` times shorter.

    Nothing else differs: thresholds, labels, texts and the rules themselves are the same.

    Examples
    --------
    >>> rule = {"alert": "Late", "expr": "rate(late_total[10m]) > 0", "for": "1h"}
    >>> shortened({"groups": [{"name": "all", "rules": [rule]}]}, 30)["groups"][0]["rules"]
    [{'alert': 'Late', 'expr': 'rate(late_total[20s]) > 0', 'for': '2m'}]
    """
    groups = [{**group, "rules": [_rule(rule, factor) for rule in group["rules"]]} for group in rules["groups"]]
    return {**rules, "groups": groups}


def windows(expression: str) -> Iterator[str]:
    """The windows, steps and offsets of an expression."""
    yield from _IN_EXPRESSIONS.findall(expression)


def shorter(duration: str, factor: float) -> str:
    """A duration in Prometheus' words, divided; at least a millisecond, unless it is none.

    Examples
    --------
    >>> shorter("10m", 30), shorter("1d", 30), shorter("5s", 30), shorter("0s", 30)
    ('20s', '48m', '167ms', '0s')
    """
    milliseconds = sum(int(number) * _UNITS[unit] for number, unit in _PART.findall(duration))
    left = max(1, round(milliseconds / factor)) if milliseconds else 0
    for unit in ("d", "h", "m", "s"):
        if left % _UNITS[unit] == 0 and (left or unit == "s"):
            return f"{left // _UNITS[unit]}{unit}"
    return f"{left}ms"


def _rule(rule: Mapping[str, Any], factor: float) -> dict[str, Any]:
    changed = {"expr": _IN_EXPRESSIONS.sub(lambda found: shorter(found.group(), factor), rule["expr"])}
    if "for" in rule:
        changed["for"] = shorter(rule["for"], factor)
    return {**rule, **changed}
