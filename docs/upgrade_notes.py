"""What an upgrade from the former release changes, read from what both have committed: ``make release`` adds it.

``python -m docs.upgrade_notes [TAG]`` compares with the newest tag before this commit, or with that one.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SCHEMAS = "stream_peer/events/schemas/"
TABLES = {
    "docs/generated/settings.md": "setting of a process",
    "docs/generated/feed-settings.md": "feed setting",
    "docs/generated/topics.md": "topic",
    "docs/generated/routes.md": "route",
    "docs/reference/metrics.md": "metric",
}
NUMBERS = {
    ("stream_peer/feeds/store.py", "SCHEMA"): "Feeds are rebuilt from the feed-log: their state has another form.",
    ("stream_peer/questions/store.py", "SCHEMA"): "Questions' state has another form; it is read and written again.",
    (
        "stream_peer/settings/feed/model.py",
        "METHOD_VERSIONS",
    ): "The versions of the method are others: see the changes.",
}
Tree = Callable[[str], Mapping[str, str]]
"""Texts of the files below a path, by path."""


def notes(version: str, former: str, before: Tree, after: Tree) -> str:
    """The page; ``former`` is empty where there was no release."""
    if not former:
        return f"# Upgrade to {version}\n\nThere is no former release: nothing is upgraded.\n"
    found = [*_messages(before(SCHEMAS), after(SCHEMAS)), *_names(before, after), *_numbers(before, after)]
    lines = [f"- {line}" for line in found] or ["No message, setting, topic, route, metric or stored state is another."]
    return "\n".join([f"# Upgrade from {former} to {version}", "", *lines, ""])


def _messages(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    old, new = ({Path(path).stem: _fields(json.loads(text)) for path, text in tree.items()} for tree in (before, after))
    yield from _gone_and_new("message", old, new)
    for name in sorted(old.keys() & new.keys()):
        yield from (f"message `{name}`: {line}" for line in _gone_and_new("field", old[name], new[name]))
        for field in sorted(old[name].keys() & new[name].keys()):
            if old[name][field] != new[name][field]:
                yield f"message `{name}`: field `{field}` was {old[name][field]}, is {new[name][field]}"


def _fields(schema: Mapping[str, Any]) -> dict[str, str]:
    """Each field's type, and whether a message must have it; those of parts with the part's name before."""
    parts = {"": schema, **{f"{name}.": part for name, part in schema.get("$defs", {}).items()}}
    return {
        f"{prefix}{name}": f"{_type(field)}, {'required' if name in part.get('required', ()) else 'optional'}"
        for prefix, part in parts.items()
        for name, field in part.get("properties", {}).items()
    }


def _type(field: Mapping[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(map(_type, field["anyOf"]))
    name = str(field.get("type") or field.get("$ref", "any").rpartition("/")[2])
    return f"{name} of {_type(field['items'])}" if "items" in field else name


def _names(before: Tree, after: Tree) -> Iterator[str]:
    for path, kind in TABLES.items():
        old, new = (_rows(tree(path).get(path, "")) for tree in (before, after))
        yield from _gone_and_new(kind, old, new)
        if "setting" in kind:
            changed = (name for name in sorted(old.keys() & new.keys()) if old[name] != new[name])
            yield from (f"{kind} `{name}`: default was {old[name]}, is {new[name]}" for name in changed)


def _rows(table: str) -> dict[str, str]:
    """The name in each row, with its default where the table has that column."""
    header, *rows = [
        re.split(r" (?<!\\)\| ", f" {line} ")[1:] for line in table.splitlines() if line.startswith("|")
    ] or [[]]
    at = header.index("default") if "default" in header else 0
    return {cells[0].strip("`"): cells[at] for cells in rows if cells[0].startswith("`")}


def _gone_and_new(kind: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"{kind} `{name}` is gone" for name in sorted(old.keys() - new.keys()))
    yield from (f"{kind} `{name}` is new" for name in sorted(new.keys() - old.keys()))


def _numbers(before: Tree, after: Tree) -> Iterator[str]:
    for (path, name), consequence in NUMBERS.items():
        old, new = (
            re.findall(rf"^{name}\b.*? = (.+)$", tree(path).get(path, ""), re.MULTILINE) for tree in (before, after)
        )
        if old != new:
            yield consequence


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def tree_of(commit: str) -> Tree:
    """Files as a commit has them."""

    def read(path: str) -> Mapping[str, str]:
        listed = _git("ls-tree", "-r", "--name-only", commit, path).splitlines()
        return {name: _git("show", f"{commit}:{name}") for name in listed}

    return read


def main() -> None:
    """Print the page."""
    version = re.findall(r'__version__ = "(.+)"', (ROOT / "stream_peer" / "__init__.py").read_text(encoding="utf-8"))[0]
    former = (sys.argv[1:] or [_git("describe", "--tags", "--abbrev=0", "HEAD^")])[0]
    sys.stdout.write(notes(version, former, tree_of(former), tree_of("HEAD")))


if __name__ == "__main__":
    main()
