"""File, environment and flags become one frozen ``Settings``, once, at start."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from stream_peer.errors import SettingFault, SettingsError
from stream_peer.events.spelling import did_you_mean
from stream_peer.settings.feed.document import FeedSettingsBook, load_document
from stream_peer.settings.process.checks import (
    EMBEDDED_PARTITIONS,
    process_contradictions,
    security_contradictions,
)
from stream_peer.settings.process.keys import read_keys
from stream_peer.settings.process.model import ENVIRONMENT_PREFIX, Leaf, Partitions, Settings, flag_of, is_block, leaves
from stream_peer.settings.process.values import Layer, SourcedValue, converted
from stream_peer.settings.process.yaml_file import DOCUMENT, read_file

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
    for paths, message in (*process_contradictions(settings), *security_contradictions(settings.security)):
        if faulty.isdisjoint(paths):
            faults.append(SettingFault(paths[0], origins[paths[0]], message))
    book = _load_book(document, str(file), faults, in_replay=in_replay)
    if faults:
        raise SettingsError(faults)
    return Loaded(settings, origins, book)


MAKE_A_KEY = "`openssl rand -hex 32 > signing-key` makes one; give the same file to all workers and tools"


def read_secret(settings: Settings) -> bytes:
    """The content of ``secret_file``, which seeds the draws; empty without one.

    Raises
    ------
    SettingsError
        If it cannot be read, or holds nothing.
    """
    if settings.secret_file is None:
        return b""
    try:
        secret = settings.secret_file.read_bytes().strip()
    except OSError as error:
        raise SettingsError([SettingFault("secret_file", str(settings.secret_file), str(error.strerror))]) from None
    if not secret:
        raise SettingsError([SettingFault("secret_file", str(settings.secret_file), "is empty")])
    return secret


def read_signing_keys(settings: Settings) -> tuple[bytes, ...]:
    """The keys of ``signing_key_file``, one a line; none without such a file.

    Raises
    ------
    SettingsError
        If it cannot be read, holds no key, or one that can be guessed.
    """
    file = settings.signing_key_file
    if file is None:
        return ()
    try:
        return read_keys(file, MAKE_A_KEY)
    except ValueError as error:
        raise SettingsError([SettingFault("signing_key_file", str(file), str(error))]) from None


def required_signing_keys(settings: Settings) -> tuple[bytes, ...]:
    """The same for a process that needs keys; an embedded broker, which nobody else reaches, needs no file.

    Raises
    ------
    SettingsError
        As well if no file is named.
    """
    keys = read_signing_keys(settings)
    if keys:
        return keys
    if settings.broker == "embedded":
        return (b"",)
    message = f"names no file, and the service must sign what it writes to forecast-events: {MAKE_A_KEY}"
    raise SettingsError([SettingFault("signing_key_file", "default", message)])


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
