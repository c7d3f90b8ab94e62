"""Files with secrets: the deployment's secret, signing keys, and the producers with what each may say."""

import codecs
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from stream_peer.errors import SettingFault, SettingsError
from stream_peer.events.spelling import did_you_mean
from stream_peer.log.producers import Producer, Producers
from stream_peer.settings.process.model import Settings
from stream_peer.settings.process.yaml_file import read_yaml_file

MIN_KEY_BYTES = 16
"""Of a line: a shorter one can be guessed."""


def read_keys(file: Path, advice: str) -> tuple[bytes, ...]:
    """The keys of a file, one a line; blanks around them and empty lines do not count.

    Raises
    ------
    ValueError
        If it cannot be read, holds no key, or one that is too short; with ``advice``, and without any key.
    """
    try:
        content = file.read_bytes().removeprefix(codecs.BOM_UTF8)  # which some editors write unasked
    except FileNotFoundError as error:
        msg = f"{error.strerror}: {advice}"
        raise ValueError(msg) from None
    except OSError as error:
        raise ValueError(error.strerror) from None
    keys = tuple(key for line in content.splitlines() if (key := line.strip()))
    if not keys:
        msg = f"is empty: {advice}"
        raise ValueError(msg)
    short = next((number for number, key in enumerate(keys, 1) if len(key) < MIN_KEY_BYTES), None)
    if short is not None:
        msg = f"key {short} has less than {MIN_KEY_BYTES} bytes: {advice}"
        raise ValueError(msg)
    return keys


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


_Pattern = Annotated[str, msgspec.Meta(min_length=1)]
_Patterns = Annotated[list[_Pattern], msgspec.Meta(min_length=1)]
_NAME = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9._-]{1,100}\Z")]
_FILE: dict[str, Any] = {"others": Literal["refuse", "accept"], "producers": dict[str, Any]}
_PRODUCER: dict[str, Any] = {
    "key_file": _Pattern,
    "experts": _Patterns,
    "feeds": _Patterns,
    "may_ask": bool,
    "may_resolve": bool,
}


def read_producers(settings: Settings) -> Producers | None:
    """The producers of ``producers_file`` with their keys; None if that is not set: everybody may say everything.

    Raises
    ------
    SettingsError
        Names every fault of the file and of the key files at once.
    """
    if settings.producers_file is None:
        return None
    reader = _Reader(settings.producers_file)
    producers = reader.read()
    if reader.faults:
        raise SettingsError(reader.faults)
    return producers


class _Reader:
    """Reads one file of producers and notes each fault with its path."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.faults: list[SettingFault] = []

    def read(self) -> Producers:
        found = read_yaml_file(self._file, "producers_file", self.faults)
        content = self._fields("", {} if found is None and self.faults else found, _FILE)
        named = content.get("producers", {})
        if not named and not self.faults:
            self._fault("producers", "names no producer, so that nothing would be accepted")
        producers = [self._producer(name, fields) for name, fields in named.items()]
        self._check_keys_differ(producers)
        return Producers(producers, content.get("others", "refuse"))

    def _producer(self, name: str, given: object) -> Producer:
        path = f"producers.{name}"
        self._converted(path, name, _NAME, "is no name: take 1..100 letters, digits, dots, hyphens or underscores")
        fields = self._fields(f"{path}.", given, _PRODUCER)
        if isinstance(given, Mapping) and "key_file" not in given:
            self._fault(f"{path}.key_file", "is missing: name a file with a key a line")
        keys = self._keys(f"{path}.key_file", fields.pop("key_file", None))
        if isinstance(given, Mapping) and not any(given.get(right) for right in ("experts", "may_ask", "may_resolve")):
            self._fault(path, "may say nothing: give it experts, may_ask or may_resolve")
        lists = {field: tuple(value) for field, value in fields.items() if isinstance(value, list)}
        return Producer(name=name, keys=keys, **{**fields, **lists})

    def _keys(self, path: str, key_file: str | None) -> tuple[bytes, ...]:
        if key_file is None:
            return ()
        file = self._file.parent / key_file  # an absolute path stays as it is
        try:
            return read_keys(file, f"`openssl rand -hex 32 > {file.name}` makes one")
        except ValueError as error:
            self._fault(path, f"{file}: {error}")
            return ()

    def _check_keys_differ(self, producers: Iterable[Producer]) -> None:
        """Two producers with one key could speak in each other's name."""
        owners: dict[bytes, str] = {}
        for producer in producers:
            shared = {owners.setdefault(key, producer.name) for key in producer.keys} - {producer.name}
            if shared:
                self._fault(f"producers.{producer.name}.key_file", f"holds a key of producer {min(shared)} as well")

    def _fields(self, before: str, given: object, types: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a mapping that are right."""
        if not isinstance(given, Mapping):
            self._fault(before.rstrip(".") or "producers_file", f"must be a mapping of {', '.join(types)}")
            return {}
        right = {}
        for name, value in given.items():
            if name not in types:
                advice = did_you_mean(str(name), types) or f"; there are {', '.join(types)}"
                self._fault(f"{before}{name}", f"no such setting{advice}")
                continue
            found = self._converted(f"{before}{name}", value, types[name])
            if found is not None:
                right[name] = found
        return right

    def _converted(self, path: str, value: object, kind: Any, message: str = "") -> Any:
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            self._fault(path, f"{message or error}, got {value!r}"[:300])
            return None

    def _fault(self, path: str, message: str) -> None:
        self.faults.append(SettingFault(path, f"file {self._file}", message))
