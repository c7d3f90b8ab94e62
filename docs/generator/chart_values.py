"""The table of all values in the chart's README: what values.yaml says, in another shape."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

from docs.generator.tables import table

CHART = "helm/stream-peer"
VALUES = f"{CHART}/values.yaml"
README = f"{CHART}/README.md"
BEGIN = "<!-- values: made by docs/generate.py from the comments of values.yaml -->\n"
END = "<!-- end of values -->\n"
_SAYS = "# -- "


class Value(NamedTuple):
    """A value of the chart: its dotted path, the kind of thing it is, its default, and what values.yaml says of it."""

    path: str
    kind: str
    default: str
    about: str


def files(root: Path) -> dict[str, str]:
    """The README with the table as it follows from the values."""
    before, _, rest = (root / README).read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    found = values((root / VALUES).read_text(encoding="utf-8"))
    rows = [(f"`{value.path}`", value.kind, f"`{value.default}`", value.about) for value in found]
    return {README: f"{before}{BEGIN}{table(('value', 'type', 'default', 'what it says'), rows)}{END}{after}"}


def values(text: str) -> list[Value]:
    """Every value that bears a comment ``# -- …``, in their order.

    Raises
    ------
    ValueError
        If a value has no such comment, and neither has the block that it is in.
    """
    return list(_values(yaml.compose(text, yaml.SafeLoader), text.splitlines(), ""))


def _values(block: yaml.MappingNode, lines: list[str], before: str) -> Iterator[Value]:
    for key, value in block.value:
        path, comment = before + key.value, lines[key.start_mark.line - 1].strip()
        if comment.startswith(_SAYS):
            default = yaml.SafeLoader("").construct_document(value)
            yield Value(path, _kind(value), _shown(default), comment.removeprefix(_SAYS))
        elif isinstance(value, yaml.MappingNode) and value.value:
            yield from _values(value, lines, f"{path}.")
        else:
            msg = f"{VALUES} does not say what {path} is: put a line `{_SAYS}…` above it"
            raise ValueError(msg)


def _kind(node: yaml.Node) -> str:
    kinds = {"str": "string", "seq": "list", "map": "object", "bool": "boolean", "int": "integer"}
    return kinds[node.tag.rpartition(":")[2]]


def _shown(default: object) -> str:
    text = json.dumps(default, separators=(", ", ": "))
    return text if isinstance(default, list | dict) else text.strip('"') if default else text
