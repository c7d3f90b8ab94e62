"""What platforms send, decoded and checked once, at the door: ``decode`` returns an event or raises RejectedEvent."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Any, Literal, NamedTuple, get_args

import msgspec

from stream_peer.errors import RejectedEvent
from stream_peer.events.feed_log import Place, Source
from stream_peer.events.groups import Value, group_id_of, option_id, threshold_id, value_of
from stream_peer.events.rejections import Reason
from stream_peer.events.spelling import did_you_mean
from stream_peer.events.times import TAKEN, YEAR_1900, YEAR_2000, Milliseconds, from_iso, to_milliseconds

MAX_EVENT_BYTES = 1_000_000
MAX_ID_BYTES = 256
SCHEMA_VERSION = 1
MAX_PARTS = 200
"""Options or thresholds of an event: each is a question, and all of them are folded at once."""

QuestionId = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_ID_BYTES)]
ExpertId = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_ID_BYTES)]
TeamName = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_ID_BYTES)]
EventId = Annotated[str, msgspec.Meta(max_length=MAX_ID_BYTES)]
_FEED_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
FeedName = Annotated[str, msgspec.Meta(extra_json_schema={"pattern": _FEED_NAME})]
"""Checked by ``is_feed_name``, not by the decoder: a regular expression each time would be half of its work."""
Probability = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
QuestionWeight = Annotated[float, msgspec.Meta(gt=0.0, le=1.0)]
PartName = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_ID_BYTES)]
_OF_PARTS = msgspec.Meta(min_length=1, max_length=MAX_PARTS)
ByPart = Annotated[dict[PartName, Probability | None], _OF_PARTS]


class _Message(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is sent to us. ``decode`` accepts unknown fields, and says which there were."""


class Question(_Message, frozen=True, kw_only=True, tag="question"):
    """Opens or edits a question. Topic ``forecast-events``, key ``question_id``.

    Each field is last-writer-wins by (``at``, offset); ``at`` defaults to the record time. Moving ``closes_at``
    reopens the question or cuts it in the past. ``weight`` is its share of a full question in every sum. With
    ``options`` or ``thresholds`` (numbers, or times in ISO 8601) it is a group of questions, one for each of them.
    """

    question_id: QuestionId
    at: datetime | None = None
    feed: FeedName | None = None
    opens_at: datetime | None = None
    closes_at: datetime | None = None
    weight: QuestionWeight | None = None
    options: Annotated[list[PartName], _OF_PARTS] | None = None
    thresholds: Annotated[list[float | str], _OF_PARTS] | None = None
    event_id: EventId | None = None
    schema: int = SCHEMA_VERSION

    @property
    def parts(self) -> list[str]:
        """Ids of the questions that it names: none if it is a question itself.

        Raises
        ------
        RejectedEvent
            If a threshold is none.
        """
        options = [option_id(self.question_id, option) for option in self.options or ()]
        return options + [_threshold_id(self.question_id, one, "thresholds") for one in self.thresholds or ()]


class Forecast(_Message, frozen=True, kw_only=True, tag="forecast"):
    """An expert's probability that a question's outcome is 1. Topic ``forecast-events``, key ``question_id``.

    Kept in the expert's history; the last one at or before a round's boundary counts there. ``probability`` null
    withdraws.
    """

    question_id: QuestionId
    expert_id: ExpertId
    probability: Probability | None
    at: datetime
    feed: FeedName | None = None
    event_id: EventId | None = None
    schema: int = SCHEMA_VERSION


class GroupForecast(_Message, frozen=True, kw_only=True, tag="forecast"):
    """An expert's forecast of a group of questions: in place of ``probability`` it has ``options`` or ``cdf``.

    Topic ``forecast-events``, key ``question_id``, that of the group. ``options``: the probability of each option;
    ``cdf``: of at most each threshold, a number or a time in ISO 8601. The same as one ``forecast`` each.
    """

    question_id: QuestionId
    expert_id: ExpertId
    options: ByPart | None = None
    cdf: ByPart | None = None
    at: datetime
    feed: FeedName | None = None
    event_id: EventId | None = None
    schema: int = SCHEMA_VERSION

    @property
    def parts(self) -> dict[str, float | None]:
        """The probability of each question of the group that it names, by the question's id.

        Raises
        ------
        RejectedEvent
            If a threshold is none, or named twice, or ``cdf`` falls.
        """
        if (self.options is None) == (self.cdf is None):
            msg = "a forecast has one of probability, options and cdf"
            raise RejectedEvent(Reason.CONTRADICTORY, field="options", message=msg)
        if self.options is not None:
            return {option_id(self.question_id, option): p for option, p in self.options.items()}
        found = {_threshold_id(self.question_id, one, "cdf"): p for one, p in (self.cdf or {}).items()}
        if len(found) < len(self.cdf or {}):
            msg = "cdf: one threshold is there twice, in two spellings"
            raise RejectedEvent(Reason.CONTRADICTORY, field="cdf", message=msg)
        stated = sorted((value_of(one), p) for one, p in (self.cdf or {}).items() if p is not None)
        for (low, p), (high, q) in pairwise(stated):
            if low.kind != high.kind or p > q:
                what = "one is a number, the other a time" if low.kind != high.kind else f"it falls from {p} to {q}"
                msg = f"cdf: from {low} to {high} {what}; it has the probabilities of at most each threshold"
                raise RejectedEvent(Reason.CONTRADICTORY, field="cdf", message=msg)
        return found

    def forecasts_of(self, parts: Mapping[str, float | None]) -> list[Forecast]:
        """The forecasts that some of its parts are."""
        fields = {name: getattr(self, name) for name in ("expert_id", "at", "feed", "event_id")}
        return [Forecast(question_id=part, probability=probability, **fields) for part, probability in parts.items()]


def _threshold_id(group: str, threshold: float | str, field: str) -> str:
    return threshold_id(group, _value(threshold, field))


def _value(said: float | str, field: str) -> Value:
    try:
        return value_of(said)
    except (ValueError, OverflowError):
        msg = f"{field}: {said!r} is neither a number nor a time in ISO 8601"
        raise RejectedEvent(Reason.WRONG_TYPE, field=field, message=msg) from None


class Forecasts(_Message, frozen=True, kw_only=True, tag="forecasts"):
    """Many experts' forecasts of one question at one moment, in one message (LLM panels, ensembles).

    Topic ``forecast-events``, key ``question_id``. The same as one ``forecast`` each.
    """

    question_id: QuestionId
    at: datetime
    forecasts: dict[ExpertId, Probability | None]
    feed: FeedName | None = None
    event_id: EventId | None = None
    schema: int = SCHEMA_VERSION

    @property
    def named(self) -> Sequence[str]:
        """Every expert that the message names."""
        return tuple(self.forecasts)


class RefusedEntry(NamedTuple):
    """An entry of a message that cannot be used, while others of the same message can: whose, what, and why not."""

    expert_id: str
    value: str
    reason: Reason
    message: str


class PartialForecasts(Forecasts, frozen=True, kw_only=True, tag="forecasts"):
    """What ``decode`` makes of a ``forecasts`` message in which some entries cannot be used: those that can."""

    refused: list[RefusedEntry]

    @property
    def named(self) -> Sequence[str]:
        """Every expert that the message names, also of the entries that cannot be used."""
        return (*self.forecasts, *(entry.expert_id for entry in self.refused))

    def rejection(self, *, names: bool = True) -> RejectedEvent:
        """What the dead letter of the message says; without ``names`` it tells of nobody."""
        return entries_rejection(self.refused, len(self.forecasts) + len(self.refused), names=names)


class Resolution(_Message, frozen=True, kw_only=True, tag="resolution"):
    """A question's outcome: 0, 1, true/false, yes/no; null = annulled; "open" = the resolution is retracted.

    Topic ``forecast-events``, key ``question_id``. Last-writer-wins by (``at``, offset); ``closed_at`` cuts in the
    past. ``verdict`` is the outcome in its one internal spelling. ``provisional``: it closes nothing and reveals
    nothing; it is shown until a resolution without it comes. A group of questions can so be annulled or retracted.
    """

    question_id: QuestionId
    outcome: bool | int | float | str | None
    at: datetime
    closed_at: datetime | None = None
    provisional: bool = False
    feed: FeedName | None = None
    event_id: EventId | None = None
    schema: int = SCHEMA_VERSION

    @property
    def verdict(self) -> Literal[0, 1, "annulled", "open"]:
        """The outcome: 0, 1, "annulled" or "open".

        Raises
        ------
        RejectedEvent
            If it is none of these: it is never thresholded and never defaulted.
        """
        value = self.outcome
        if value is None:
            return "annulled"
        spelled = value.strip().lower() if isinstance(value, str) else str(value).lower()
        verdict = _VERDICTS.get(spelled)
        if verdict is None:
            msg = f"outcome is {value!r}, not yes, no, 0, 1, true, false, null (annulled) or 'open' (retracted)"
            raise RejectedEvent(Reason.OUTCOME_UNKNOWN, field="outcome", message=msg)
        return verdict


class GroupResolution(_Message, frozen=True, kw_only=True, tag="resolution"):
    """The outcome of a group of questions: in place of ``outcome`` it has ``option`` or ``value``.

    Topic ``forecast-events``, key ``question_id``, that of the group. ``option``: the one that it is; ``value``: what
    thresholds are compared with, a number or a time in ISO 8601. The same as one ``resolution`` each.
    """

    question_id: QuestionId
    option: PartName | None = None
    value: float | str | None = None
    at: datetime
    closed_at: datetime | None = None
    provisional: bool = False
    feed: FeedName | None = None
    event_id: EventId | None = None
    schema: int = SCHEMA_VERSION

    @property
    def said(self) -> str | Value:
        """The option, or the value.

        Raises
        ------
        RejectedEvent
            If there is none, or both.
        """
        if self.option is not None and self.value is None:
            return self.option
        if self.value is not None and self.option is None:
            return _value(self.value, "value")
        msg = "a resolution has one of outcome, option and value"
        raise RejectedEvent(Reason.CONTRADICTORY, field="option", message=msg)

    def of_part(self, part: str, outcome: int) -> Resolution:
        """The resolution of one of its questions."""
        fields = {name: getattr(self, name) for name in ("at", "closed_at", "provisional", "feed", "event_id")}
        return Resolution(question_id=part, outcome=outcome, **fields)


class ExpertControl(_Message, frozen=True, kw_only=True, tag="expert"):
    """An expert's team, exclusion, new id or erasure, from its place in the log on.

    Topic ``control-events``, key ``feed``. What is left out stays as it is; ``team`` null takes the expert out of its
    team. With ``rename``, an id that no expert of the feed has, the expert is known by both ids and shown under it.
    """

    feed: FeedName
    expert_id: ExpertId
    at: datetime
    team: TeamName | msgspec.UnsetType | None = msgspec.UNSET
    excluded: bool | msgspec.UnsetType = msgspec.UNSET
    rename: ExpertId | None = None
    forget: bool = False
    event_id: EventId | None = None
    schema: int = SCHEMA_VERSION


class FeedControl(_Message, frozen=True, kw_only=True, tag="feed"):
    """Clears a feed's sums (``reset``), or ends the feed (``delete``). Topic ``control-events``, key ``feed``.

    A deleted feed's questions are gone, and its keys of all outputs with them; a later event of its name begins a new
    feed. ``since`` is written by the service when it hands a deletion on, in milliseconds since 1970: its moment.
    """

    feed: FeedName
    reset: bool = False
    delete: bool = False
    since: Milliseconds | None = None
    event_id: EventId | None = None
    schema: int = SCHEMA_VERSION


class FeedImport(_Message, frozen=True, kw_only=True, tag="feed-import"):
    """A part of the questions of an exported feed. Only ``stream-peer import`` writes it.

    Topic ``control-events``, key ``feed``. ``digest`` is of all parts together. ``partition``: the one of
    ``partitions`` of ``forecast-events`` that the questions are for; earlier releases left both out of parts with the
    feed itself.
    """

    feed: FeedName
    import_id: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    part: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
    parts: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
    digest: Annotated[str, msgspec.Meta(max_length=64)]
    data: bytes
    partition: Annotated[int, msgspec.Meta(ge=0)] | None = None
    partitions: Annotated[int, msgspec.Meta(ge=1)] | None = None
    event_id: EventId | None = None
    schema: int = SCHEMA_VERSION


class SettingsControl(_Message, frozen=True, kw_only=True, tag="settings"):
    """The feed settings document. Topic ``control-events``, key ``settings``; broadcast to all partitions.

    ``document`` holds ``defaults`` and ``feeds`` as in the settings file; ``hash`` is ``document_hash`` of it.
    ``since`` is written by the service when it hands the event on, in milliseconds since 1970: from when it counts.
    """

    document: dict[str, Any]
    hash: str
    since: Milliseconds | None = None
    event_id: EventId | None = None
    schema: int = SCHEMA_VERSION


class Tick(_Message, frozen=True, kw_only=True, tag="tick"):
    """Time as an event: deadlines up to ``now`` are due. Only the partition's owner writes it."""

    now: datetime
    schema: int = SCHEMA_VERSION


class SettingsStanding(msgspec.Struct, frozen=True, kw_only=True):
    """The feed settings in force, and the control event that applied them: when, in which partition."""

    document: dict[str, Any]
    hash: str
    at: Milliseconds
    partition: Place


class Erased(msgspec.Struct, frozen=True, kw_only=True):
    """An expert that is erased in a feed."""

    feed: FeedName
    expert_id: ExpertId


class Renamed(msgspec.Struct, frozen=True, kw_only=True):
    """An expert of a feed that was given another id."""

    feed: FeedName
    expert_id: ExpertId
    rename: ExpertId


class Deleted(msgspec.Struct, frozen=True, kw_only=True):
    """A feed that was deleted, and when."""

    feed: FeedName
    at: Milliseconds


class SignaturesFromHere(_Message, frozen=True, kw_only=True, tag="signatures-from-here"):
    """The contents of ``control-events``, for a partition whose state cannot be trusted. Topic ``forecast-events``.

    Only ``stream-peer repair`` writes it. Experts in ``renamed`` have those ids, and experts in
    ``erased`` are forgotten; of a feed in ``deleted`` goes what was last heard of before. The last of several has
    ``marks``, the highest position read of each partition of ``control-events``: what is not above them counts as seen,
    and signatures count from here on. ``settings`` null: none were ever applied.
    """

    renamed: list[Renamed] = []
    erased: list[Erased] = []
    deleted: list[Deleted] = []
    settings: SettingsStanding | None = None
    marks: list[Source] | None = None
    schema: int = SCHEMA_VERSION


Event = (
    Question
    | Forecast
    | Forecasts
    | Resolution
    | ExpertControl
    | FeedControl
    | FeedImport
    | SettingsControl
    | Tick
    | SignaturesFromHere
)
_PRODUCERS_SEND = tuple(str(kind.__struct_config__.tag) for kind in (Question, Forecast, Forecasts, Resolution))
_SHOWN = 100  # characters of a misspelt type for which a near name is looked for
AnyEvent = Event | GroupForecast | GroupResolution
"""What ``decode`` gives: events of groups have the types of others, and other fields."""

_MAGIC_BYTE = b"\0"
_FRAME_BYTES = 5  # the magic byte and the number of the schema
# Name, fields by which it is known, and what to do. The data of an envelope is no event of ours until it is taken off.
_ENVELOPES = (
    ("Kafka Connect (schema, payload)", {"schema", "payload"}, "set schemas.enable=false of its JsonConverter"),
    (
        "Debezium (before, after)",
        {"before", "after"},
        "send what is in after; its ExtractNewRecordState does that",
    ),
    (
        "CloudEvents (specversion, data)",
        {"specversion"},
        "send what is in data; their binary mode does that",
    ),
)
_VERDICTS: dict[str, Literal[0, 1, "annulled", "open"]] = {
    **dict.fromkeys(("0", "0.0", "false", "no"), 0),
    **dict.fromkeys(("1", "1.0", "true", "yes"), 1),
    "open": "open",
}
decode_usual = msgspec.json.Decoder(Event).decode
"""An event in its usual form, checked by nothing but its types and their bounds. ``decode`` takes all forms."""
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_FIELDS: dict[str, frozenset[str]] = {
    f'"{kind.__struct_config__.tag}"': frozenset(("type", *kind.__struct_fields__)) for kind in get_args(Event)
}
"""The fields that each type has, by the type as it is written."""
_OF_GROUPS: tuple[tuple[type[GroupForecast | GroupResolution], str, frozenset[str]], ...] = (
    (GroupForecast, "probability", frozenset(("options", "cdf"))),
    (GroupResolution, "outcome", frozenset(("option", "value"))),
)
"""Events of groups: what they have in place of what."""
_UNKNOWN_FIELD = "unknown field"
_NAME_SHOWN = 60
_NAMES_TOLD = 20
_feed_name_matches = re.compile(_FEED_NAME).fullmatch  # "$" alone would let a line's end pass
_NO_TIME = "Invalid RFC3339"
"""As the decoder complains of a text that is no time to it."""
_VALUE_SHOWN = 60
_ENTRIES_TOLD = 8
_TIME_FIELDS = ("at", "opens_at", "closes_at", "closed_at", "now")
_PATH = re.compile(r" - at `(?:key in )?\$\.?([^`]*)`$")


def decode(payload: bytes | None, unknown: list[str] | None = None) -> AnyEvent:
    """Decode one message of ``forecast-events`` or ``control-events``.

    Parameters
    ----------
    payload : bytes or None
        A JSON object in UTF-8, at most 1 MB, told apart by ``type``.
    unknown : list, optional
        Gets the names of fields that its type does not have, which are ignored.

    Raises
    ------
    RejectedEvent
        With the reason, the path of the field at fault and the offending value.
    """
    if not payload:
        raise RejectedEvent(Reason.EMPTY, message="the message has no payload")
    if len(payload) > MAX_EVENT_BYTES:
        msg = f"the message is longer than {MAX_EVENT_BYTES:,} bytes"
        raise RejectedEvent(Reason.TOO_LARGE, message=msg)
    try:
        try:
            event: AnyEvent = decode_usual(payload)
        except msgspec.ValidationError as error:
            event = _decoded_again(payload, str(error), [] if unknown is None else unknown)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        msg = f"not a JSON object in UTF-8: {_registry_frame(payload) or error}"
        raise RejectedEvent(Reason.NOT_JSON, message=msg) from None
    _check(event)
    if type(event) is Forecasts and not all(map(str.isascii, event.forecasts)):
        return _usable_entries(payload) or event
    return event


def _decoded_again(payload: bytes, fault: str, unknown: list[str]) -> AnyEvent:
    """What the decoder makes of an event of a group, without unknown fields, with usual times, or of some forecasts.

    All of that is rare, and so not looked for beforehand.
    """
    kind = _kind_of_group_event(payload)
    if kind is not None:
        fault = ""
    for _ in range(2 if kind is None else 3):  # either may be in the way, and both
        if _UNKNOWN_FIELD in fault:
            payload = _without_unknown(payload, unknown, kind)
        elif _NO_TIME in fault:
            payload = with_usual_times(payload)
        try:
            return decode_usual(payload) if kind is None else msgspec.json.decode(payload, type=kind)
        except msgspec.ValidationError as error:
            fault = str(error)
    usable = _usable_entries(payload)
    if usable is None:
        raise _rejection(fault, payload) from None
    return usable


def _kind_of_group_event(payload: bytes) -> type[GroupForecast | GroupResolution] | None:
    """Which event of a group a message is, by its fields; None if it is none."""
    if not any(b'"%b"' % name.encode() in payload for _, _, names in _OF_GROUPS for name in names):
        return None
    fields = _object(payload)
    for kind, replaced, names in _OF_GROUPS:
        if fields.get("type") == kind.__struct_config__.tag and replaced not in fields and names & fields.keys():
            return kind
    return None


def _without_unknown(payload: bytes, unknown: list[str], kind: type[msgspec.Struct] | None) -> bytes:
    """A message without the fields that its type does not have; their names are added to ``unknown``."""
    fields = _decode_fields(payload)
    known = _FIELDS.get(bytes(fields.get("type", msgspec.Raw())).decode(), frozenset())
    if kind is not None:
        known = frozenset(("type", *kind.__struct_fields__))
    unknown += sorted({name[:_NAME_SHOWN] for name in fields if name not in known})[:_NAMES_TOLD]
    return msgspec.json.encode({name: value for name, value in fields.items() if name in known})


def with_usual_times(payload: bytes) -> bytes:
    """An event whose times, in any form that ``from_iso`` takes, are in the one that decoders take.

    Raises
    ------
    msgspec.MsgspecError, UnicodeDecodeError, RecursionError
        If it is no JSON object.
    """
    fields = msgspec.json.decode(payload, type=dict[str, Any])
    usual = {name: _usual(fields[name]) for name in _TIME_FIELDS if name in fields}
    return msgspec.json.encode({**fields, **usual})


def _usual(value: object) -> object:
    """A time in the form that decoders take; anything else as it is, for them to refuse."""
    try:
        return from_iso(value).isoformat() if isinstance(value, str) else value
    except (ValueError, OverflowError):
        return value


def moment(value: datetime, field: str = "at", *, is_history: bool = False) -> Milliseconds:
    """A moment of an event in milliseconds.

    Raises
    ------
    RejectedEvent
        If it lies before 2000, or in a feed with ``history: true`` before 1900: seconds were taken for milliseconds,
        most likely.
    """
    milliseconds = to_milliseconds(value)
    if milliseconds < (YEAR_1900 if is_history else YEAR_2000):
        hint = "(seconds passed where milliseconds were meant? Only feeds with history: true take times from 1900 on)"
        msg = f"{field} is {value.isoformat()}, before {1900 if is_history else 2000} {hint}"
        raise RejectedEvent(Reason.TIME_RANGE, field=field, message=msg)
    return milliseconds


def _check(event: AnyEvent) -> None:
    """What the decoder cannot: the version, ids by their length in bytes, and names of feeds."""
    if event.schema != SCHEMA_VERSION:
        msg = f"schema is {event.schema}; this release reads {SCHEMA_VERSION}"
        raise RejectedEvent(Reason.UNKNOWN_VERSION, field="schema", message=msg)
    _check_feed(getattr(event, "feed", None))
    if type(event) is Forecast and event.question_id.isascii() and event.expert_id.isascii():
        return  # by far the most frequent, and the decoder has counted its characters
    _check_ids(event)
    if isinstance(event, Resolution):
        event.verdict  # noqa: B018 - raises for an unknown outcome
    if isinstance(event, GroupResolution):
        event.said  # noqa: B018 - raises for none or two
    if isinstance(event, Question | GroupForecast) and event.parts:
        if group_id_of(event.question_id) is not None:
            msg = f"question_id is {event.question_id!r}, a part of a group: it has no parts itself"
            raise RejectedEvent(Reason.CONTRADICTORY, field="question_id", message=msg)
        for part in event.parts:
            _check_id(part, "the id of the group and an option or threshold")


def _check_ids(event: AnyEvent) -> None:
    if isinstance(event, Question | Forecast | GroupForecast | Forecasts | Resolution | GroupResolution):
        _check_id(event.question_id, "question_id")
    if isinstance(event, Forecast | GroupForecast | ExpertControl):
        _check_id(event.expert_id, "expert_id")
    if isinstance(event, ExpertControl):
        for field, name in (("team", event.team), ("rename", event.rename)):
            if isinstance(name, str):
                _check_id(name, field)


class _AnyForecasts(msgspec.Struct, frozen=True, kw_only=True, tag="forecasts"):
    """``Forecasts`` whose entries are not looked at."""

    question_id: QuestionId
    at: datetime
    forecasts: dict[str, msgspec.Raw]
    feed: FeedName | None = None
    event_id: EventId | None = None
    schema: int = SCHEMA_VERSION


_decode_any_forecasts = msgspec.json.Decoder(_AnyForecasts).decode
_decode_probability = msgspec.json.Decoder(Probability | None).decode


def _with_any_entries(payload: bytes) -> _AnyForecasts:
    try:
        return _decode_any_forecasts(payload)
    except msgspec.ValidationError as error:
        if _NO_TIME not in str(error):
            raise
        return _decode_any_forecasts(with_usual_times(payload))


def _usable_entries(payload: bytes) -> PartialForecasts | None:
    """A ``forecasts`` message without the entries that cannot be used; None if it is none, or nothing of it can be.

    Raises
    ------
    RejectedEvent
        If its entries are all that is wrong, and none of them can be used.
    """
    try:
        event = _with_any_entries(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    good: dict[str, float | None] = {}
    refused: list[RefusedEntry] = []
    for expert_id, raw in event.forecasts.items():
        value = bytes(raw)[:_VALUE_SHOWN].decode("utf-8", "replace")
        try:
            _check_id(expert_id, "the expert's id")
            good[expert_id] = _decode_probability(raw)
        except msgspec.DecodeError as error:
            reason, advice = _reason(str(error), "probability")
            refused.append(RefusedEntry(expert_id, value, reason, f"{error}{advice}"))
        except RejectedEvent as fault:
            refused.append(RefusedEntry(expert_id, value, Reason(fault.reason), fault.message))
    if not refused:
        return None
    if not good:
        raise entries_rejection(refused, len(refused))
    fields = {name: getattr(event, name) for name in ("question_id", "at", "feed", "event_id", "schema")}
    return PartialForecasts(forecasts=good, refused=refused, **fields)


def entries_rejection(refused: Sequence[RefusedEntry], of: int, *, names: bool = True) -> RejectedEvent:
    """Why some entries of a message, ``of`` so many, cannot be used: each by expert, value and reason."""
    told = (
        [f"{one.expert_id[:_VALUE_SHOWN]!r} {one.value}: {one.message}" for one in refused[:_ENTRIES_TOLD]]
        if names
        else []
    )
    more = len(refused) - len(told)
    rest = [f"and {more} more"] if told and more else []
    message = "; ".join([f"{len(refused)} of {of} forecasts cannot be used", *told, *rest])
    return RejectedEvent(refused[0].reason, field="forecasts", message=message)


def _check_feed(feed: str | None) -> None:
    if feed is not None and not is_feed_name(feed):
        msg = f"feed: Expected `str` matching regex {_FEED_NAME!r}, got {feed!r}"[:300]
        raise RejectedEvent(Reason.FEED_NAME, field="feed", message=msg)


@lru_cache(maxsize=4096)
def is_feed_name(name: str) -> bool:
    """Whether a feed may be called so: 1 to 100 letters, digits, dots, hyphens or underscores."""
    return _feed_name_matches(name) is not None


def _check_id(value: str, field: str) -> None:
    if not 1 <= len(value.encode()) <= MAX_ID_BYTES:
        msg = f"{field} has {len(value.encode())} bytes, not 1 to {MAX_ID_BYTES}"
        raise RejectedEvent(Reason.ID_LENGTH, field=field, message=msg)


def _rejection(fault: str, payload: bytes) -> RejectedEvent:
    """The decoder's complaint as a reason, a path and a sentence with the offending value."""
    found = _PATH.search(fault)
    path = found.group(1) if found else ""
    what = fault[: found.start()] if found else fault
    field = re.split(r"[.\[]", path)[0]
    reason, advice = _reason(what, field)
    if reason == Reason.WRONG_TYPE and not path:  # JSON, but no object
        reason = Reason.NOT_JSON
    if reason == Reason.UNKNOWN_TYPE and (envelope := _envelope(payload)):
        return RejectedEvent(reason, field=path, message=envelope)
    shown = _offending(payload, field)
    message = f"{path or 'the message'}: {what}{shown}{advice}"
    return RejectedEvent(reason, field=path, message=message)


def advice_on(reason: str, payload: bytes | None) -> str:
    """The end of a refusal's message for people: the types that there are. Dead letters keep their bytes without it.

    Examples
    --------
    >>> advice_on("unknown-type", b'{"type": "foreccast"}')
    '; did you mean forecast or forecasts? Producers send question, forecast, forecasts, resolution'
    """
    given = _object(payload or b"").get("type") if reason == Reason.UNKNOWN_TYPE else None
    if not isinstance(given, str):
        return ""
    meant = did_you_mean(given[:_SHOWN], _PRODUCERS_SEND)
    return f"{f'{meant} Producers' if meant else '; producers'} send {', '.join(_PRODUCERS_SEND)}"


def _reason(what: str, field: str) -> tuple[Reason, str]:  # noqa: PLR0911 - one line a reason
    if "missing required field" in what:
        return (Reason.UNKNOWN_TYPE if "`type`" in what else Reason.MISSING_FIELD), ""
    if field == "type":
        return Reason.UNKNOWN_TYPE, ""
    if field in ("probability", "forecasts", "options", "cdf") and ("`float` <=" in what or "`float` >=" in what):
        return Reason.PROBABILITY_RANGE, " (percent? convert at the source)"
    if field in _TIME_FIELDS:
        return Reason.TIME_FORMAT, f" (a time is text in ISO 8601, not a number: {TAKEN})"
    if field == "weight" and ("`float` <=" in what or "`float` >" in what):
        return Reason.WEIGHT_RANGE, ""
    if "`str` of length" in what:
        return Reason.ID_LENGTH, ""
    return Reason.WRONG_TYPE, ""


def _offending(payload: bytes, field: str) -> str:
    return f", got {_object(payload).get(field)!r}"[:200] if field else ""


def _object(payload: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(payload, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}


def _registry_frame(payload: bytes) -> str:
    """What a serializer of a schema registry puts before each message, by its name; empty if there is none."""
    if payload[:1] != _MAGIC_BYTE or len(payload) <= _FRAME_BYTES:
        return ""
    schema = int.from_bytes(payload[1:_FRAME_BYTES], "big")
    return (
        f"the message is in the frame of a schema registry (magic byte 0, schema {schema}, then the data); send plain "
        "JSON, by a serializer that does not use the registry"
    )


def _envelope(payload: bytes) -> str:
    """The envelope that an event came in, by its name, and how to take it off; empty if there is none that we know."""
    names = _object(payload).keys()
    found = [(name, advice) for name, marks, advice in _ENVELOPES if marks <= names]
    if not found:
        return ""
    name, advice = found[0]
    return f"the message is in an envelope of {name}; {advice}"
