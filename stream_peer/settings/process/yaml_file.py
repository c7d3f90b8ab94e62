"""Files of settings: YAML as version 1.2 reads it."""

import re
from pathlib import Path
from typing import Any

import yaml

from stream_peer.errors import SettingFault

_TAG = "tag:yaml.org,2002:"
_SURROGATE = re.compile("[\ud800-\udfff]")


def read_yaml(text: str) -> object:
    """A YAML document as YAML 1.2 reads it: only true and false are booleans, and times stay text.

    Raises
    ------
    yaml.YAMLError
        If it is none, names a key twice, contains itself, or holds what it says is a number and is none.
    """
    try:
        return yaml.load(text, Loader=_PlainLoader)  # noqa: S506 - a subclass of the safe loader
    except RecursionError:
        msg = "it is nested too deeply"
        raise yaml.YAMLError(msg) from None


class _PlainLoader(yaml.SafeLoader):
    """``guard: off`` is text, so are dates, ``010`` and ``1:30``; names are as written, and none may stand twice."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - its base's
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _fault("a name must be text", key)
            if key.value in seen:
                raise _fault(f"{key.value} stands twice", key)
            seen.add(key.value)
        self.flatten_mapping(node)
        for key, _ in node.value:
            key.tag = f"{_TAG}str"
        return super().construct_mapping(node, deep)

    def construct_object(self, node: Any, deep: bool = False) -> Any:  # noqa: ARG002, FBT001, FBT002 - its base's
        try:
            return super().construct_object(node, deep=True)  # deep: what contains itself is a fault
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise _fault(f"{str(node.value)[:40]!r} is no {node.tag.removeprefix(_TAG)}", node) from error

    def construct_scalar(self, node: Any) -> Any:
        text = super().construct_scalar(node)
        if not text.isascii() and _SURROGATE.search(text):
            raise _fault(f"{text[:40]!r} is no text that can be stored", node)
        return text


def _fault(problem: str, node: Any) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


_READ_OTHERWISE = ("bool", "timestamp", "int", "float")
_PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.removeprefix(_TAG) not in _READ_OTHERWISE]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _name, _pattern, _first in (
    ("bool", r"^(true|false)$", "tTfF"),
    ("int", r"^([-+]?(0|[1-9][0-9]*)|0x[0-9a-f]+)$", "-+0123456789"),
    ("float", r"^[-+]?((\.[0-9]+|[0-9]+\.[0-9]*)(e[-+]?[0-9]+)?|[0-9]+e[-+]?[0-9]+|\.inf)$|^\.nan$", "-+.0123456789"),
):
    _PlainLoader.add_implicit_resolver(f"{_TAG}{_name}", re.compile(_pattern, re.IGNORECASE), list(_first))


def read_yaml_file(file: Path, setting: str, faults: list[SettingFault]) -> object:
    """The document of a file that a setting names; None, and a fault of that setting, if it is none."""
    try:
        return read_yaml(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        message = f"is no YAML: {_where(error)}"
    faults.append(SettingFault(setting, f"file {file}", message))
    return None


def _where(error: Exception) -> str:
    """What is wrong with a document, and where."""
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    if mark is None:
        return str(error)
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem or error.context_mark}"  # type: ignore[attr-defined]
