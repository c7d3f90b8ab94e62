"""File, environment and flags become one frozen ``Settings``, once, at start; each fault is noted with its path."""

import math
import re
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from stream_peer.errors import SettingFault, SettingsError
from stream_peer.events.spelling import did_you_mean
from stream_peer.settings.feed.document import FeedSettingsBook, load_document
from stream_peer.settings.feed.model import parse_duration
from stream_peer.settings.process.checks import (
    EMBEDDED_PARTITIONS,
    gateway_contradictions,
    process_contradictions,
    registry_contradictions,
    security_contradictions,
)
from stream_peer.settings.process.model import (
    ENVIRONMENT_PREFIX,
    Leaf,
    Partitions,
    Secret,
    Settings,
    flag_of,
    is_block,
    leaves,
)
from stream_peer.settings.process.yaml_file import read_yaml_file

_SIZES = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
_SIZE = re.compile(r"^\s*([0-9]+(?:\.[0-9]+)?)\s*([KMG]?I?B?)\s*$", re.IGNORECASE)
_NUMBER = re.compile(r"^\s*[0-9]+(?:\.[0-9]+)?\s*$")
_FOUND_TYPE = re.compile(r", got `\w+`$")
_HOST = r"(?:(?:[a-z0-9_-]+\.)*[a-z0-9_-]+\.?|\[[0-9a-f:.]+\])"
_ADDRESS = re.compile(rf"(?!.*[?#\\])https?://{_HOST}(?::[0-9]+)?(?:/[!-~]*)?", re.IGNORECASE | re.ASCII)
_BOUND = re.compile(r"^Expected `(?:int|float)` (<=|>=|<|>) ([0-9.]+)$")


class SourcedValue(NamedTuple):
    """What a source says about a setting, and which source that is."""

    value: object
    origin: str


Layer = dict[str, SourcedValue]
"""What one source says, by dotted path."""


def converted(leaf: Leaf, found: SourcedValue, faults: list[SettingFault]) -> object:
    """The value of a setting, or None and a fault more."""
    try:
        plain = _READERS.get(leaf.reads, _as_it_is)(found.value)
        return msgspec.convert(plain, leaf.type, strict=False, dec_hook=_decode)
    except (ValueError, msgspec.ValidationError) as error:
        faults.append(SettingFault(leaf.path, found.origin, _sentence(leaf, found.value, str(error))))
        return None


def _sentence(leaf: Leaf, value: object, fault: str) -> str:
    """What is wrong, as the person who wrote the value would say it; a secret is not repeated."""
    if leaf.choices:
        fault = f"must be one of {', '.join(leaf.choices)}"
    fault = _FOUND_TYPE.sub("", fault)
    bound = _BOUND.match(fault)
    if bound:
        fault = f"must be {bound.group(1)} {bound.group(2)}{'s' if leaf.reads == 'duration' else ''}"
    hidden = leaf.reads == "secret" or repr(value) in fault
    return fault if hidden else f"{fault}, got {value!r}{did_you_mean(str(value), leaf.choices)}"


def _as_it_is(value: object) -> object:
    return value


def _read_duration(value: object) -> object:
    """Seconds of a duration."""
    if isinstance(value, str):
        return float(value) if _NUMBER.match(value) else parse_duration(value) / 1000
    if isinstance(value, bool) or (isinstance(value, float) and not math.isfinite(value)):
        msg = f"{value!r} is no duration such as 45s, 500ms"
        raise ValueError(msg)
    return value


def _read_size(value: object) -> object:
    """Bytes of a size: ``64MB`` (10^6), ``64MiB`` (2^20) or a number."""
    if not isinstance(value, str):
        return value
    found = _SIZE.match(value)
    if not found or found.group(2).upper() not in _SIZES:
        msg = f"{value!r} is no size such as 64MB, 500KB, 1GiB"
        raise ValueError(msg)
    return round(float(found.group(1)) * _SIZES[found.group(2).upper()])


def _read_path(value: object) -> object:
    """The path of a file that can be read."""
    try:
        if isinstance(value, str):
            Path(value).open("rb").close()
    except OSError as error:
        msg = f"cannot be read ({error.strerror})"
        raise ValueError(msg) from None
    return value


def _read_url(value: object) -> object:
    """An address of a server, without the slash at its end."""
    if not isinstance(value, str):
        return value
    try:
        is_address = bool(_ADDRESS.fullmatch(value)) and urlsplit(value).port != 0
    except ValueError:
        is_address = False
    if not is_address:
        msg = "must be the URL of a server, such as http://worker-0.example.org:8080, with nothing behind its path"
        raise ValueError(msg)
    return value.rstrip("/")


_READERS = {"duration": _read_duration, "size": _read_size, "path": _read_path, "url": _read_url}


def _decode(kind: type, value: object) -> object:
    if kind in (Secret, Path) and isinstance(value, str):
        return kind(value)
    msg = f"must be text, not {type(value).__name__} (quote it)"
    raise ValueError(msg)


DOCUMENT = ("defaults", "feeds")


RESERVED_VARIABLES = ("STREAM_PEER_CONFIG", "STREAM_PEER_FAULT", "STREAM_PEER_TEST_", "STREAM_PEER_DATA")
"""No settings: where the file is, and what only tests use."""

# What Kubernetes puts into the environment for a service named stream-peer.
_SERVICE_LINK = re.compile(r"_SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)$|_PORT(_[0-9]+_(TCP|UDP|SCTP)(_[A-Z]+)?)?$")


class Loaded(NamedTuple):
    """The settings, where each came from (by dotted path), and the feed settings resolved."""

    settings: Settings
    origins: Mapping[str, str]
    book: FeedSettingsBook


def load(
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, str] | None = None,
    *,
    in_replay: bool = False,
) -> Loaded:
    """Merge flags over environment over file over defaults, and remember where each value came from.

    Parameters
    ----------
    file : Path or None
        YAML (or JSON) with the names of ``Settings``, and the feed settings under ``defaults`` and ``feeds``.
    environment : mapping of str
        ``STREAM_PEER_…`` variables; others are ignored, and so are empty ones.
    flags : mapping of str
        Dotted paths and texts.
    in_replay : bool
        Whether feed settings are welcome that only a replay computes (``method.…``).

    Raises
    ------
    SettingsError
        Names every fault at once, each with its path and its origin: one restart fixes them.
    """
    known, faults = leaves(), list[SettingFault]()
    content, document = read_file(file, faults)
    layers = (
        _known_only(content, known, faults),
        _known_only(_from_environment(environment or {}, known), known, faults),
        _known_only(
            {path: SourcedValue(v, f"flag {flag_of(path)}") for path, v in (flags or {}).items()}, known, faults
        ),
    )
    given: Layer = {}
    for layer in layers:
        given.update(_open_secret_files(layer, known, faults))
    values = {path: converted(known[path], found, faults) for path, found in given.items()}
    faulty = {fault.path.removesuffix("_file") if fault.path not in known else fault.path for fault in faults}
    values = {path: value for path, value in values.items() if path not in faulty}
    _suit_embedded_broker(values, given)
    origins = {path: given[path].origin if path in given else "default" for path in known}
    settings = _build(Settings, "", {**values, "document": document})
    of_blocks = (
        gateway_contradictions(settings.gateway),
        registry_contradictions(settings.registry),
        security_contradictions(settings.security),
    )
    for paths, message in chain(process_contradictions(settings), *of_blocks):
        if faulty.isdisjoint(paths):
            faults.append(SettingFault(paths[0], origins[paths[0]], message))
    book = _load_book(document, str(file), faults, in_replay=in_replay)
    if faults:
        raise SettingsError(faults)
    return Loaded(settings, origins, book)


def read_file(file: Path | None, faults: list[SettingFault]) -> tuple[Layer, dict[str, Any]]:
    """The process settings of the file by dotted path, and its feed settings."""
    if file is None:
        return {}, {}
    origin = f"file {file}"
    content = read_yaml_file(file, "config", faults)
    if content is None:
        return {}, {}
    if not isinstance(content, dict):
        faults.append(SettingFault("config", origin, "must be a mapping of settings"))
        return {}, {}
    document = {name: content.pop(name) for name in DOCUMENT if name in content}
    return {path: SourcedValue(value, origin) for path, value in _flat(content, "")}, document


def _flat(content: Mapping[str, object], before: str) -> Iterator[tuple[str, object]]:
    for name, value in content.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _from_environment(environment: Mapping[str, str], known: Mapping[str, Leaf]) -> Layer:
    layer: Layer = {}
    for name, text in environment.items():
        if not name.startswith(ENVIRONMENT_PREFIX) or not text or name.startswith(RESERVED_VARIABLES):
            continue
        path = name.removeprefix(ENVIRONMENT_PREFIX).lower().replace("__", ".")
        if path in known or not _SERVICE_LINK.search(name):
            layer[path] = SourcedValue(text, f"environment {name}")
    return layer


def _known_only(layer: Layer, known: Mapping[str, Leaf], faults: list[SettingFault]) -> Layer:
    """Without what is no setting: a misspelt name would otherwise be a setting that silently does nothing."""
    names = {*known, *(f"{path}_file" for path, leaf in known.items() if leaf.reads == "secret")}
    for path in [path for path in layer if path not in names]:
        found = layer[path]
        if any(name.startswith(f"{path}.") for name in names):
            if found.value is None:
                continue
            message = "is a block of settings: " + ", ".join(sorted(_names_in(path, names)))
        elif path.split(".")[0] in DOCUMENT:
            message = "feed settings are given in the file, under defaults and feeds"
        else:
            message = f"no such setting{did_you_mean(path, names)}"
        faults.append(SettingFault(path, found.origin, message))
    return {path: found for path, found in layer.items() if path in names}


def _names_in(block: str, names: set[str]) -> Iterator[str]:
    return (name.removeprefix(f"{block}.") for name in names if name.startswith(f"{block}."))


def _open_secret_files(layer: Layer, known: Mapping[str, Leaf], faults: list[SettingFault]) -> Layer:
    """The layer with ``x_file`` replaced by ``x``, the content of that file without the line's end."""
    opened = {path: found for path, found in layer.items() if path in known}
    for path in [path for path in layer if path not in opened]:
        secret, found = path.removesuffix("_file"), layer[path]
        if secret in layer:
            faults.append(SettingFault(path, found.origin, f"{secret} is given as well ({layer[secret].origin})"))
            continue
        try:
            text = Path(str(found.value)).read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, ValueError) as error:
            faults.append(SettingFault(path, found.origin, f"cannot read {found.value}: {_reason(error)}"))
            continue
        opened[secret] = SourcedValue(text, f"{found.origin} ({found.value})")
    return opened


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    return str(error.strerror) if isinstance(error, OSError) else str(error)


def _suit_embedded_broker(values: dict[str, object], given: Layer) -> None:
    """What the embedded broker cannot do otherwise, unless it was asked for (then it is a contradiction)."""
    if values.get("broker") != "embedded":
        return
    derived = {"compression": "none"}
    counts = {f"partitions.{name}": EMBEDDED_PARTITIONS for name in Partitions.__struct_fields__}
    for path, value in {**derived, **counts}.items():
        if path not in given:
            given[path], values[path] = SourcedValue(value, "broker embedded"), value


def _build(struct: type[Any], before: str, values: Mapping[str, object]) -> Any:
    """A settings block from values by dotted path."""
    fields: dict[str, object] = {}
    for field in msgspec.structs.fields(struct):
        path = f"{before}{field.name}"
        if is_block(field.type):
            fields[field.name] = _build(field.type, f"{path}.", values)
        elif path in values:
            fields[field.name] = values[path]
    return struct(**fields)


def _load_book(
    document: dict[str, Any], origin: str, faults: list[SettingFault], *, in_replay: bool
) -> FeedSettingsBook:
    try:
        return load_document(document, f"file {origin}", in_replay=in_replay)
    except SettingsError as error:
        faults.extend(error.faults)
        return load_document({})
