"""The settings file: YAML as version 1.2 reads it."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from stream_peer.errors import SettingFault
from stream_peer.settings.values import Given, Layer

DOCUMENT = ("defaults", "feeds")


def read_yaml(text: str) -> object:
    """A YAML document as YAML 1.2 reads it: only true and false are booleans, and times stay text.

    Raises
    ------
    yaml.YAMLError
        If it is none, or names a key twice.
    """
    return yaml.load(text, Loader=_PlainLoader)  # noqa: S506 - a subclass of the safe loader


class _PlainLoader(yaml.SafeLoader):
    """``guard: off`` is text, a date is text, and a key that stands twice is a fault."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - its base's
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value} stands twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


_PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":bool", ":timestamp"))]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_PlainLoader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(true|false)$", re.IGNORECASE), list("tTfF"))


def read_file(file: Path | None, faults: list[SettingFault]) -> tuple[Layer, dict[str, Any]]:
    """The process settings of the file by dotted path, and its feed settings."""
    if file is None:
        return {}, {}
    origin = f"file {file}"
    try:
        content = read_yaml(file.read_text(encoding="utf-8"))
    except OSError as error:
        faults.append(SettingFault("config", origin, f"cannot be read: {error.strerror}"))
        return {}, {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        faults.append(SettingFault("config", origin, f"is no YAML: {_yaml_fault(error)}"))
        return {}, {}
    content = _with_text_keys(content or {})
    if not isinstance(content, dict):
        faults.append(SettingFault("config", origin, "must be a mapping of settings"))
        return {}, {}
    document = {name: content.pop(name) for name in DOCUMENT if name in content}
    return {path: Given(value, origin) for path, value in _flat(content, "")}, document


def _yaml_fault(error: Exception) -> str:
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    if mark is None:
        return str(error)
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem or error.context_mark}"  # type: ignore[attr-defined]


def _with_text_keys(content: object) -> object:
    if isinstance(content, dict):
        return {str(key): _with_text_keys(value) for key, value in content.items()}
    return content


def _flat(content: Mapping[str, object], before: str) -> Iterator[tuple[str, object]]:
    for name, value in content.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value
