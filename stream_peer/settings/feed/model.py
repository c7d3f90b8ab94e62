"""Feed settings: what changes a feed's meaning or reading.

They travel as data, so that every worker applies them at the same place of the log.

A document has ``defaults`` and ``feeds``; a feed's settings are the built-in ones, overlaid by ``defaults``,
overlaid by its own. Durations are text (``7d``, ``90s``, ``500ms``) or a number of seconds in a document, and
milliseconds once loaded.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

import msgspec

from stream_peer.errors import SettingFault, SettingsError
from stream_peer.events.incoming import is_feed_name
from stream_peer.events.near_names import did_you_mean
from stream_peer.events.times import Milliseconds
from stream_peer.settings.feed.method import (
    BUILT_IN,
    MethodSettings,
    changed_method,
    method_contradictions,
    mixes,
    only_in_replay,
)
from stream_peer.settings.feed.shadows import Kind, over_live

_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000, "y": 31_536_000_000}
_DURATION = re.compile(r"^\s*([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|h|d|w|y)\s*$")

_LONGEST = 10_000 * _UNITS["y"]  # beyond all dates, and small enough for every stored form

Span = Annotated[int, msgspec.Meta(ge=0, le=_LONGEST)]
PositiveSpan = Annotated[int, msgspec.Meta(gt=0, le=_LONGEST)]
Number = Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)]
Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
PositiveRate = Annotated[float, msgspec.Meta(gt=0.0, le=100.0)]


def parse_duration(value: str | float) -> Milliseconds:
    """Milliseconds of a duration: ``7d``, ``24h``, ``5m``, ``60s``, ``500ms``, ``2y`` (365 days), or seconds.

    Raises
    ------
    ValueError
        If it is none of these.

    Examples
    --------
    >>> parse_duration("7d"), parse_duration("1.5s"), parse_duration(60)
    (604800000, 1500, 60000)
    """
    if isinstance(value, str):
        found = _DURATION.match(value)
        if not found:
            msg = f"{value!r} is no duration such as 7d, 24h, 5m, 60s, 500ms"
            raise ValueError(msg)
        return _milliseconds(float(found.group(1)) * _UNITS[found.group(2)])
    if isinstance(value, bool):
        msg = f"{value!r} is no duration such as 7d, 24h, 5m, 60s, 500ms"
        raise ValueError(msg)  # noqa: TRY004 - a value at fault like the others
    return _milliseconds(value * 1000)


def _milliseconds(amount: float) -> Milliseconds:
    if not -_LONGEST <= amount <= _LONGEST:
        msg = f"a duration may be at most {_LONGEST // _UNITS['y']:,} years"
        raise ValueError(msg)
    return round(amount)


class MixerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Priors, shares and rates of the mixers. The four priors sum to 1."""

    prior_mean: Share = 0.40
    prior_peer: Share = 0.35
    prior_truth_slow: Share = 0.15
    prior_truth_fast: Share = 0.10
    uniform_share: Share = 0.0
    peer_rate: PositiveRate = 24.0
    truth_rate: PositiveRate = 24.0
    nominal_error_rate: Annotated[float, msgspec.Meta(ge=0.0, lt=0.5)] = 0.35


class TrustSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of the trust states."""

    warm_up_questions: Annotated[float, msgspec.Meta(ge=0.0, le=1e9)] = 200.0
    dependence_z: Annotated[float, msgspec.Meta(gt=0.0, le=1000.0)] = 3.0
    measured_error_rate: Annotated[float, msgspec.Meta(gt=0.0, le=1.0)] = 0.3
    rank_correlation: Annotated[float, msgspec.Meta(gt=-1.0, lt=1.0)] = 0.2
    acknowledged: Literal["low-evidence", "dependent", "contradicted", "uninformative"] | None = None


class ShadowSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A variant of the mixers that runs beside the live ones. What is left out is as it is live."""

    name: str
    mixer: MixerSettings = MixerSettings()
    stretch: bool = True

    @property
    def id(self) -> int:
        """A number for name and settings: another one if any of them is another. It fits into eight bytes, signed.

        Examples
        --------
        >>> ShadowSettings(name="eager").id == ShadowSettings(name="eager", stretch=False).id
        False
        """
        content = msgspec.json.encode(self, order="deterministic")
        return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little", signed=True)


class FeedSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings of one feed, durations in milliseconds.

    Question stage: ``round_every`` to ``history``. Meaning (a change needs a refold): ``preset`` to ``method``.
    Reading: ``mixer`` to ``shadows``. Ledger: the last three.
    """

    round_every: PositiveSpan | None = 7 * _UNITS["d"]
    quorum: Number | None = None
    grace: Span = 60 * _UNITS["s"]
    max_open: PositiveSpan = 2 * _UNITS["y"]
    history_for: Span = 30 * _UNITS["d"]
    backdate_limit: Span | None = 24 * _UNITS["h"]
    late_forecasts: Literal["move", "refuse"] = "move"
    forecast_for: PositiveSpan | None = None
    skew: Span = 5 * _UNITS["m"]
    horizon: PositiveSpan = 10 * _UNITS["y"]
    idle_after: Span | None = 60 * _UNITS["s"]
    history: bool = False

    preset: Literal["robust", "paper"] = "robust"
    loss: Literal["squared", "log", "spherical"] = "squared"
    vote_rule: Literal["half", "own-median", "auto"] = "auto"
    min_experts: Annotated[int, msgspec.Meta(ge=2, le=1_000_000_000)] = 3
    memory: Number | None = None
    seed: Annotated[str, msgspec.Meta(max_length=64)] = ""
    method: MethodSettings = MethodSettings()

    mixer: MixerSettings = MixerSettings()
    stretch: bool = True
    guard: Literal["off", "on"] = "off"
    trust: TrustSettings = TrustSettings()
    confidence: Annotated[float, msgspec.Meta(ge=0.5, lt=1.0)] = 0.95
    publish_every: Span = 1 * _UNITS["s"]
    top_experts: Annotated[int, msgspec.Meta(ge=0, le=100)] = 20
    shadows: tuple[ShadowSettings, ...] = ()

    ledger_for: PositiveSpan = 3 * _UNITS["y"]
    retract_for: PositiveSpan = 180 * _UNITS["d"]
    ledger_max: Number = 1_000_000

    def meaning(self) -> tuple[object, ...]:
        """What may not change for a feed with rounds without a refold."""
        return tuple(getattr(self, name) for name in MEANING)

    def changed_meaning(self) -> list[str]:
        """What of it is not as built in, as ``name=value``, nested settings one by one: ``method.learner=hedge``.

        Examples
        --------
        >>> FeedSettings(loss="log", method=MethodSettings(learner="ada-hedge")).changed_meaning()
        ['loss=log', 'method.learner=ada-hedge']
        """
        plain, built_in = (dict(zip(MEANING, one.meaning(), strict=True)) for one in (self, FeedSettings()))
        changed = {name: value for name, value in plain.items() if value != built_in[name] and name != "method"}
        changed |= {f"method.{name}": value for name, value in changed_method(self.method).items()}
        return [f"{name}={value}" for name, value in changed.items()]


_QUESTION_SPANS = ("round_every", "grace", "max_open", "history_for", "backdate_limit", "skew", "horizon", "idle_after")
DURATIONS = frozenset((*_QUESTION_SPANS, "forecast_for", "publish_every", "ledger_for", "retract_for"))
MEANING = ("preset", "loss", "vote_rule", "min_experts", "memory", "seed", "method")
_NAMES = FeedSettings.__struct_fields__
ROUNDS = frozenset(_NAMES[: _NAMES.index(MEANING[0])])
"""Settings of the question stage: which rounds there are."""

_KINDS: dict[str, Kind] = {
    **dict.fromkeys(_NAMES, "else"),
    **dict.fromkeys(ROUNDS, "rounds"),
    **dict.fromkeys((*MEANING, "guard"), "meaning"),
}

_CLASSES_NEED = 3
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
    if faults:
        raise SettingsError(_once(faults))
    return FeedSettingsBook(default, resolved, document_hash(document))


def document_hash(document: Mapping[str, Any]) -> str:
    """Eight hexadecimal digits that name a document's content, independent of the order of its keys."""
    canonical = msgspec.json.encode({k: v for k, v in document.items() if v}, order="deterministic")
    return hashlib.blake2b(canonical, digest_size=4).hexdigest()


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
        for name, message in _contradictions(settings, in_replay=in_replay)
    )
    return settings


def _convert(path: str, merged: dict[str, Any], origin: str, faults: list[SettingFault]) -> FeedSettings:
    """Convert setting by setting, so that every fault is found at once."""
    good: dict[str, Any] = {}
    fields = {field.name: field.type for field in msgspec.structs.fields(FeedSettings)}
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


def _wrong_values(path: str, value: object, kind: Any) -> Iterator[tuple[str, str]]:
    """What is wrong with the value of a setting, nested ones one by one: where, and why."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and isinstance(value, Mapping):
        fields = {field.name: field.type for field in msgspec.structs.fields(kind)}
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
    given, shadows = over_live(value, merged, _KINDS), []
    faults.extend(SettingFault(f"{path}.{where}", origin, message) for where, message in given.faults)
    for place, plain in given.shadows:
        if _note(faults, origin, _wrong_values(f"{path}.shadows.{place}", plain, ShadowSettings)):
            continue
        shadow = msgspec.convert(plain, ShadowSettings, strict=False)
        shadows.append(shadow)
        if plain["mixer"] != merged.get("mixer"):  # else the fault is the feed's
            wrong = _wrong_priors(shadow.mixer)
            faults.extend(SettingFault(f"{path}.shadows.{place}.mixer", origin, message) for message in wrong)
    return tuple(shadows)


def _contradictions(settings: FeedSettings, *, in_replay: bool) -> list[tuple[str, str]]:
    faults = [] if in_replay else only_in_replay(settings)
    if settings.guard == "on" and (settings.preset == "paper" or settings.method != BUILT_IN):
        faults.append(("guard", "guards reference answers as they are built in, no variants of them"))
    named = {name for name, _ in faults}
    faults += [fault for fault in method_contradictions(settings) if fault[0] not in named]
    if settings.vote_rule == "own-median" and settings.min_experts < _CLASSES_NEED:
        message = (
            f"own-median reads an error rate for each outcome off three voters a round at least; "
            f"min_experts is {settings.min_experts}"
        )
        faults.append(("vote_rule", message))
    if settings.shadows and not mixes(settings):
        faults.append(("shadows", "nothing is mixed but by the selection weights; a shadow varies the mixer auto"))
    return [*faults, *(("mixer", message) for message in _wrong_priors(settings.mixer))]


def _wrong_priors(mixer: MixerSettings) -> list[str]:
    total = mixer.prior_mean + mixer.prior_peer + mixer.prior_truth_slow + mixer.prior_truth_fast
    return [f"the four priors sum to {total:g}, not 1"] if abs(total - 1.0) > 1e-9 else []


def _once(faults: list[SettingFault]) -> list[SettingFault]:
    """A fault of the defaults shows once, not again for every feed that inherits it."""
    own = {(f.path.removeprefix("defaults."), f.message) for f in faults if f.path.startswith("defaults.")}
    return [f for f in faults if not f.path.startswith("feeds.") or (f.path.split(".", 2)[-1], f.message) not in own]
