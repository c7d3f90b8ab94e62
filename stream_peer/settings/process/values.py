"""From what was given to the value of a setting."""

import math
import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from stream_peer.errors import SettingFault
from stream_peer.events.spelling import did_you_mean
from stream_peer.settings.feed.model import parse_duration
from stream_peer.settings.process.keys import Secret
from stream_peer.settings.process.model import Leaf

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
