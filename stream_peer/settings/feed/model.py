"""Feed settings: their fields, ranges and defaults.

The service runs the default method; ``stream-peer replay --set method.NAME=VALUE`` runs the others, to compare.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from stream_peer.events.times import Milliseconds

Rate = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Positive = Annotated[float, msgspec.Meta(gt=0.0, le=1000.0)]


METHOD_VERSIONS = (1, 2)
"""Versions of the method that this release serves: that of the release before, and its own."""
NEWEST_METHOD = METHOD_VERSIONS[-1]
UNSTATED_METHOD = 1
"""The version where none is stated: a document, a log or a state of a release that had only this one."""


class MethodSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which reference answers, error rates, learner and mixer a feed uses.

    With another reference, error rate or pricing than the default, the vote rule ``auto`` is ``half``.
    """

    reference: Literal["majority", "weighted", "mean", "product"] = "majority"
    against: Literal["others", "everybody", "group-a", "other-group"] = "others"
    groups: Literal["fixed", "redrawn"] = "fixed"
    flip_probability: Annotated[float, msgspec.Meta(ge=0.0, lt=0.5)] = 0.0
    error_rate: Literal[
        "moments",
        "class-moments",
        "two-groups",
        "equal-groups",
        "three-references",
        "three-class-references",
        "outcomes",
        "known",
    ] = "moments"
    known_zero: Rate | None = None
    known_one: Rate | None = None
    learner: Literal[
        "ada-normal-hedge",
        "hedge",
        "any-time-hedge",
        "ada-hedge",
        "fixed-share",
        "follow-the-leader",
        "top-committee",
    ] = "ada-normal-hedge"
    learning_rate: Positive | None = None
    share: Annotated[float, msgspec.Meta(ge=1e-6, lt=1.0)] = 0.002
    committee: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 5
    pricing: Literal["newest", "frozen"] = "newest"
    mixer: Literal["auto", "select", "gradient-hedge", "gradient-normal-hedge", "outcomes", "hybrid", "five"] = "auto"


BUILT_IN = MethodSettings()


def changed_settings(settings: "MethodSettings | MixerSettings") -> dict[str, object]:
    """What differs from the default, by name."""
    values, default = msgspec.structs.asdict(settings), type(settings)()
    return {name: value for name, value in values.items() if value != getattr(default, name)}


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
    trust_prior: Literal["on", "off"] = "on"


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
        plain = msgspec.to_builtins(self)
        if self.mixer.trust_prior == MixerSettings().trust_prior:
            del plain["mixer"]["trust_prior"]  # shadows of before there was this setting keep their numbers
        content = msgspec.json.encode(plain)
        return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little", signed=True)


class FeedSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings of one feed, durations in milliseconds.

    Question stage: ``round_every`` to ``history``. Meaning (a change needs a rebuild): ``preset`` to ``method``.
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
    method_version: Annotated[int, msgspec.Meta(ge=1)] = UNSTATED_METHOD

    mixer: MixerSettings = MixerSettings()
    stretch: bool = True
    guard: Literal["auto", "off", "on"] = "auto"
    trust: TrustSettings = TrustSettings()
    confidence: Annotated[float, msgspec.Meta(ge=0.5, lt=1.0)] = 0.95
    publish_every: Span = 1 * _UNITS["s"]
    top_experts: Annotated[int, msgspec.Meta(ge=0, le=100)] = 20
    shadows: tuple[ShadowSettings, ...] = ()

    ledger_for: PositiveSpan = 3 * _UNITS["y"]
    retract_for: PositiveSpan = 180 * _UNITS["d"]
    ledger_max: Number = 1_000_000

    def meaning(self) -> tuple[object, ...]:
        """What may not change for a feed with rounds without a rebuild."""
        return tuple(getattr(self, name) for name in MEANING)

    def stored_meaning(self) -> dict[str, Any]:
        """The meaning by name, as stored. Version 1 is left out: state from before there were versions has none."""
        plain = {name: msgspec.to_builtins(getattr(self, name)) for name in MEANING}
        return {name: value for name, value in plain.items() if (name, value) != ("method_version", UNSTATED_METHOD)}

    def changed_meaning(self) -> list[str]:
        """What differs from the default, as ``name=value``, nested settings one by one: ``method.learner=hedge``.

        Examples
        --------
        >>> variant = FeedSettings(loss="log", method=MethodSettings(learner="ada-hedge"), method_version=NEWEST_METHOD)
        >>> variant.changed_meaning()
        ['loss=log', 'method.learner=ada-hedge']
        """
        default = FeedSettings(method_version=NEWEST_METHOD)
        plain, built_in = (dict(zip(MEANING, one.meaning(), strict=True)) for one in (self, default))
        changed = {name: value for name, value in plain.items() if value != built_in[name] and name != "method"}
        changed |= {f"method.{name}": value for name, value in changed_settings(self.method).items()}
        return [f"{name}={value}" for name, value in changed.items()]


def with_stored_meaning(settings: FeedSettings, stored: Mapping[str, Any]) -> FeedSettings:
    """Settings with the meaning that was stored."""
    plain = {**msgspec.to_builtins(settings), "method_version": UNSTATED_METHOD, **stored}
    return msgspec.convert(plain, FeedSettings)


_QUESTION_SPANS = ("round_every", "grace", "max_open", "history_for", "backdate_limit", "skew", "horizon", "idle_after")
DURATIONS = frozenset((*_QUESTION_SPANS, "forecast_for", "publish_every", "ledger_for", "retract_for"))
MEANING = ("preset", "loss", "vote_rule", "min_experts", "memory", "seed", "method", "method_version")
_NAMES = FeedSettings.__struct_fields__
ROUNDS = frozenset(_NAMES[: _NAMES.index(MEANING[0])])
"""Settings of the question stage: which rounds there are."""
