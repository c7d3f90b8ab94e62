"""The settings document: checked as a whole, and resolved for every feed.

A document has ``defaults`` and ``feeds``; a feed's settings are the default ones, overlaid by ``defaults``, overlaid
by its own. Durations are text (``7d``, ``90s``, ``500ms``) or a number of seconds in a document, and milliseconds once
loaded.
"""

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple, get_args, get_origin

import msgspec

from stream_peer.errors import SettingFault, SettingsError, UnservedMethodError
from stream_peer.events.incoming import is_feed_name
from stream_peer.events.spelling import did_you_mean
from stream_peer.settings.feed.checks import contradictions, unused_settings, wrong_priors
from stream_peer.settings.feed.model import (
    DURATIONS,
    MEANING,
    METHOD_VERSIONS,
    ROUNDS,
    FeedSettings,
    ShadowSettings,
    parse_duration,
)

MOST_SHADOWS = 8
_SHADOW_NAME = re.compile(r"[A-Za-z0-9._-]{1,40}")
_OF_SHADOWS = ("name", "mixer", "stretch")

_Kind = Literal["rounds", "meaning", "else"]
"""What a feed setting changes: which rounds there are, what the sums mean, or nothing of what is forecast."""
_KINDS: dict[str, _Kind] = {
    **dict.fromkeys(FeedSettings.__struct_fields__, "else"),
    **dict.fromkeys(ROUNDS, "rounds"),
    **dict.fromkeys((*MEANING, "guard"), "meaning"),
}

_MOST_LISTED = 20  # names of settings in a message; a feed has more, nested settings have fewer


class FeedSettingsBook(NamedTuple):
    """A checked document: the settings of every feed, named or not."""

    default: FeedSettings
    feeds: Mapping[str, FeedSettings]
    hash: str
    reads: "Callable[[Mapping[str, Any]], FeedSettingsBook] | None" = None

    def of(self, feed: str) -> FeedSettings:
        """Settings of a feed: its own if it is named in the document, else the defaults."""
        return self.feeds.get(feed, self.default)

    def of_document(self, document: Mapping[str, Any]) -> "FeedSettingsBook":
        """The book of a document that comes later. A replay may have this one read it, to lay settings over it.

        Raises
        ------
        SettingsError
            Names every fault at once, each with its path.
        """
        return load_document(document) if self.reads is None else self.reads(document)


def load_document(
    document: Mapping[str, Any], origin: str = "settings document", *, in_replay: bool = False
) -> FeedSettingsBook:
    """Check a feed settings document and resolve it for every feed that it names.

    ``in_replay``: whether variants of the mathematics are welcome that a worker does not serve.

    Raises
    ------
    SettingsError
        Names every fault at once, each with its path.
    UnservedMethodError
        If a feed has a version of the method that this release does not serve.
    """
    faults: list[SettingFault] = []
    unknown = [str(name) for name in document if name not in ("defaults", "feeds")]
    faults.extend(SettingFault(name, origin, "not known here; a document has defaults and feeds") for name in unknown)
    defaults = _section(document.get("defaults"))
    feeds = _section(document.get("feeds"))
    if not isinstance(feeds, Mapping):
        raise SettingsError([*faults, SettingFault("feeds", origin, "must be a mapping of feed names")])
    default = _resolve("defaults", [defaults], origin, faults, in_replay=in_replay)
    resolved = {}
    for name, own in feeds.items():
        path = f"feeds.{name}"
        if not isinstance(name, str) or not is_feed_name(name):
            faults.append(SettingFault(path, origin, "a feed name has 1..100 letters, digits, . - _"))
        if isinstance(own, Mapping) and "skew" in own:
            faults.append(
                SettingFault(
                    f"{path}.skew", origin, "is of all feeds alike: a partition has one clock; set it under defaults"
                )
            )
        resolved[str(name)] = _resolve(path, [defaults, _section(own)], origin, faults, in_replay=in_replay)
    unserved = {settings.method_version for settings in (default, *resolved.values())}.difference(METHOD_VERSIONS)
    if unserved:  # before other faults: a later release may have words that are not known here
        raise UnservedMethodError(max(unserved), METHOD_VERSIONS)
    if faults:
        raise SettingsError(_once(faults))
    return FeedSettingsBook(default, resolved, document_hash(document))


def document_hash(document: Mapping[str, Any]) -> str:
    """Eight hexadecimal digits that name a document's content, independent of the order of its keys."""
    canonical = msgspec.json.encode({k: v for k, v in document.items() if v}, order="deterministic")
    return hashlib.blake2b(canonical, digest_size=4).hexdigest()


def stated_method(document: Mapping[str, Any]) -> int | None:
    """The version of the method that a document states for all feeds; None if it states none."""
    defaults = _section(document.get("defaults"))
    return defaults.get("method_version") if isinstance(defaults, Mapping) else None


def stated_methods(document: Mapping[str, Any]) -> list[int]:
    """The versions that a document states, for all feeds or for one."""
    feeds = _section(document.get("feeds"))
    sections = [document.get("defaults"), *(feeds.values() if isinstance(feeds, Mapping) else ())]
    found = (section.get("method_version") for section in sections if isinstance(section, Mapping))
    return [version for version in found if isinstance(version, int)]


def with_method(document: Mapping[str, Any], version: int) -> dict[str, Any]:
    """The document with a version of the method for all feeds, unless it states one, or has no place to state it."""
    defaults = _section(document.get("defaults"))
    if not isinstance(defaults, Mapping):
        return dict(document)
    return {**document, "defaults": {"method_version": version, **defaults}}


def _section(value: Any) -> Any:
    """Return a part of a document; a name without a value (``feeds:``) stands for an empty one."""
    return {} if value is None else value


def _resolve(path: str, layers: list[Any], origin: str, faults: list[SettingFault], *, in_replay: bool) -> FeedSettings:
    merged: dict[str, Any] = {}
    for layer in layers:
        if not isinstance(layer, Mapping):
            faults.append(SettingFault(path, origin, "must be a mapping of settings"))
            continue
        if layer.get("history"):  # the limits of the layers below are for live feeds
            merged = {name: value for name, value in merged.items() if name not in ("backdate_limit", "idle_after")}
        for name, value in layer.items():
            nested = isinstance(value, Mapping) and isinstance(merged.get(name), Mapping)
            merged[str(name)] = {**merged[name], **value} if nested else value
    settings = _convert(path, merged, origin, faults)
    faults.extend(
        SettingFault(f"{path}.{name}", origin, message)
        for name, message in (*contradictions(settings, in_replay=in_replay), *unused_settings(merged, settings))
    )
    return settings


def _convert(path: str, merged: dict[str, Any], origin: str, faults: list[SettingFault]) -> FeedSettings:
    """Convert setting by setting, so that every fault is found at once."""
    good: dict[str, Any] = {}
    fields = _types(FeedSettings)
    for name, value in merged.items():
        if name == "shadows":
            good[name] = _shadows(path, value, merged, origin, faults)
            continue
        try:
            plain = parse_duration(value) if name in DURATIONS and isinstance(value, str | float | int) else value
        except ValueError as error:
            faults.append(SettingFault(f"{path}.{name}", origin, str(error)))
            continue
        if not _note(faults, origin, _wrong_values(path, {name: plain}, FeedSettings)):
            good[name] = msgspec.convert(plain, fields[name], strict=False)
    if good.get("history"):
        good.setdefault("backdate_limit", None)
        good.setdefault("idle_after", None)
    return FeedSettings(**good)


def _note(faults: list[SettingFault], origin: str, wrong: Iterable[tuple[str, str]]) -> bool:
    """Add faults of one origin; whether there were any."""
    before = len(faults)
    faults.extend(SettingFault(where, origin, why) for where, why in wrong)
    return len(faults) > before


@cache  # it reads annotations, which takes most of the time that a document takes
def _types(kind: type[msgspec.Struct]) -> Mapping[str, Any]:
    """The types of a struct's fields."""
    return {field.name: field.type for field in msgspec.structs.fields(kind)}


def _wrong_values(path: str, value: object, kind: Any) -> Iterator[tuple[str, str]]:
    """What is wrong with the value of a setting, nested ones one by one: where, and why."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and isinstance(value, Mapping):
        fields = _types(kind)
        listed = f"; there are {', '.join(fields)}" if len(fields) <= _MOST_LISTED else ""
        for name, inner in value.items():
            if name in fields:
                yield from _wrong_values(f"{path}.{name}", inner, fields[name])
            else:
                yield f"{path}.{name}", f"no such setting{listed}{did_you_mean(str(name), fields)}"
    elif get_origin(kind) is Literal and value not in get_args(kind):
        words = get_args(kind)
        yield path, f"must be one of {', '.join(words)}, got {value!r}{did_you_mean(str(value), words)}"
    else:
        try:
            msgspec.convert(value, kind, strict=False)
        except msgspec.ValidationError as error:
            yield path, str(error)


def _shadows(
    path: str, value: object, merged: dict[str, Any], origin: str, faults: list[SettingFault]
) -> tuple[ShadowSettings, ...]:
    given, shadows = _over_live(value, merged), []
    faults.extend(SettingFault(f"{path}.{where}", origin, message) for where, message in given.faults)
    for place, plain in given.shadows:
        if _note(faults, origin, _wrong_values(f"{path}.shadows.{place}", plain, ShadowSettings)):
            continue
        shadow = msgspec.convert(plain, ShadowSettings, strict=False)
        shadows.append(shadow)
        if plain["mixer"] != merged.get("mixer"):  # else the fault is the feed's
            wrong = wrong_priors(shadow.mixer)
            faults.extend(SettingFault(f"{path}.shadows.{place}.mixer", origin, message) for message in wrong)
    return tuple(shadows)


def _once(faults: list[SettingFault]) -> list[SettingFault]:
    """A fault of the defaults shows once, not again for every feed that inherits it."""
    own = {(f.path.removeprefix("defaults."), f.message) for f in faults if f.path.startswith("defaults.")}
    return [f for f in faults if not f.path.startswith("feeds.") or (f.path.split(".", 2)[-1], f.message) not in own]


def is_shadow_name(name: object) -> bool:
    """Whether a shadow can be named so: by 1..40 letters, digits, . - _."""
    return isinstance(name, str) and _SHADOW_NAME.fullmatch(name) is not None


class _GivenShadows(NamedTuple):
    """The shadows of a document, complete but unchecked, with the place of each in its list; and what is wrong."""

    shadows: list[tuple[int, dict[str, Any]]]
    faults: list[tuple[str, str]]


def _over_live(given: object, live: Mapping[str, Any]) -> _GivenShadows:
    """Shadows as they are given, over the settings of the feed: what a shadow leaves out is as it is live."""
    if given is None:
        return _GivenShadows([], [])
    if not isinstance(given, Sequence) or isinstance(given, str):
        return _GivenShadows(
            [], [("shadows", "must be a list of shadows, each with a name and what it does otherwise")]
        )
    found, faults, names = _GivenShadows([], []), [], set[object]()
    if len(given) > MOST_SHADOWS:
        faults.append(("shadows", f"{len(given)} are given, a feed can have {MOST_SHADOWS}"))
    for place, shadow in enumerate(given[:MOST_SHADOWS]):
        path = f"shadows.{place}"
        wrong = [(f"{path}{part}", message) for part, message in _shadow_faults(shadow, names)]
        faults += wrong
        if not wrong:
            names.add(shadow["name"])
            found.shadows.append((place, _complete(shadow, live)))
    return found._replace(faults=faults)


def _complete(shadow: Mapping[str, Any], live: Mapping[str, Any]) -> dict[str, Any]:
    own, of_feed = shadow.get("mixer"), live.get("mixer")
    mixers = [mixer for mixer in (of_feed, own) if mixer is not None]
    nested = all(isinstance(mixer, Mapping) for mixer in mixers)
    mixer = {name: value for one in mixers for name, value in one.items()} if nested else own
    stretch = {"stretch": live["stretch"]} if live.get("stretch") is not None else {}
    return {**stretch, **shadow, "mixer": {} if mixer is None else mixer}


def _shadow_faults(shadow: object, names: Collection[object]) -> list[tuple[str, str]]:
    if not isinstance(shadow, Mapping):
        return [("", "must be a mapping with a name and what the shadow does otherwise: mixer, stretch")]
    name = shadow.get("name")
    faults = []
    if not is_shadow_name(name):
        faults.append((".name", "a shadow is named by 1..40 letters, digits, . - _"))
    elif name in names:
        faults.append((".name", f"another shadow is named {name}"))
    others = (str(part) for part in shadow if part not in _OF_SHADOWS)
    return [*faults, *((f".{part}", _refusal(part, name, _KINDS.get(part))) for part in others)]


def _refusal(part: str, name: object, kind: _Kind | None) -> str:
    """Why a shadow cannot have a setting."""
    if kind is None:
        return "not known here; a shadow has name, mixer and stretch"
    if kind == "else":
        return "does not change what is forecast; a shadow has name, mixer and stretch"
    what = "which rounds there are" if kind == "rounds" else "what the sums mean"
    source = "FILE" if kind == "rounds" else "FILE (or --from-log FEED)"
    return (
        f"changes {what}, and a shadow reads the sums of the live feed; compare it in one replay: "
        f"stream-peer replay {source} --shadow {name if isinstance(name, str) else 'NAME'}:{part}=VALUE"
    )
