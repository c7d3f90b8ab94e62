"""Reading dashboards as they lie in their files: panels, queries, and what stands in for variables."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

DIRECTORY = Path(__file__).parents[1] / "stream-peer" / "dashboards"
ALL = ".+"
"""What a variable of labels stands for when everything is chosen."""

_VARIABLE = re.compile(r"\$\{(\w+)(?::\w+)?\}|\$(\w+)")


class Query(NamedTuple):
    """A target of a panel. An instant query asks for the end of the time range, another for all of it."""

    ref: str
    expression: str
    legend: str
    instant: bool


def dashboards(directory: Path = DIRECTORY) -> list[dict[str, Any]]:
    """All dashboards of a directory, sorted by name."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(directory.glob("*.json"))]


def panels(dashboard: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Panels that ask something, those of closed rows as well; not the rows."""
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            yield from panels({"panels": panel.get("panels") or []})
        elif panel.get("targets"):
            yield panel


def queries(panel: Mapping[str, Any]) -> list[Query]:
    """What a panel asks."""
    return [
        Query(one["refId"], one["expr"], one.get("legendFormat", ""), bool(one.get("instant")))
        for one in panel["targets"]
    ]


POINTS = 240
"""So many points a graph asks for."""


def variables(rate_interval: str, span: float, chosen: Mapping[str, str]) -> dict[str, str]:
    """What stands for each variable; ``span``: seconds shown, ``chosen``: job, instance or feed if not all."""
    return {
        "job": ALL,
        "instance": ALL,
        "feed": ALL,
        "expert": ALL,
        "datasource": "prometheus",
        "__rate_interval": rate_interval,
        "__interval": f"{max(1, round(span / POINTS))}s",
        "__range": f"{max(1, round(span))}s",
        "__range_s": str(max(1, round(span))),
        **chosen,
    }


def substituted(text: str, values: Mapping[str, str]) -> str:
    """A text with its variables exchanged.

    Raises
    ------
    KeyError
        If it has a variable that nothing stands for.
    """
    return _VARIABLE.sub(lambda found: values[found.group(1) or found.group(2)], text)
