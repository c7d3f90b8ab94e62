"""What an explanation of an expert's weight holds: the same for the command line, HTTP and the report."""

from typing import Literal, TypeAlias

import msgspec

from stream_peer.events.feed_log import Verdict
from stream_peer.tools.explain.weight_terms import Cause

WeightKind: TypeAlias = Literal["mix", "select"]


class Stand(msgspec.Struct, frozen=True, kw_only=True):
    """The weight at one end of the span; ``experts``: how many had weights, ``listed``: whether this one had.

    ``revision`` and ``at`` are those of the last record up to there; ``asked``: the moment that was asked for.
    """

    revision: int
    at: str
    asked: str | None
    weight: float
    listed: bool
    experts: int


class CauseOfMove(msgspec.Struct, frozen=True, kw_only=True):
    """What a cause did over the whole span.

    ``questions`` tells on how many questions, ``raised`` on how many of them it raised the weight.
    """

    cause: Cause
    name: str
    meaning: str
    change: float
    questions: int
    raised: int


class TermOfMove(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """By how much one cause moved the weight; ``boundary``: that of the round, if it is of one."""

    cause: Cause
    change: float
    boundary: str | None = None


class QuestionOfMove(msgspec.Struct, frozen=True, kw_only=True):
    """What the records of a question did.

    ``own``: the part of ``change`` that comes from the expert's own forecast of it, whose latest ``probability`` stands
    beside the others' ``reference_answer`` and what is known of the outcome.
    """

    question: str
    change: float
    own: float
    probability: float | None
    reference_answer: int | None
    outcome: Verdict | None
    terms: list[TermOfMove]


class RestOfMove(msgspec.Struct, frozen=True, kw_only=True):
    """All that is not told question by question: so many of them, and whatever is of none."""

    questions: int
    own_questions: int
    change: float
    own: float
    terms: list[TermOfMove]


class OwnMove(msgspec.Struct, frozen=True, kw_only=True):
    """What the expert's own forecasts did, on how many questions, and on how many of them they raised the weight."""

    change: float
    questions: int
    raised: int


class WeightStory(msgspec.Struct, frozen=True, kw_only=True):
    """Why the weight of an expert moved. ``causes`` add up to ``difference``; so do ``questions`` and ``rest``."""

    feed: str
    expert: str
    weight: WeightKind
    since: Stand
    until: Stand
    difference: float
    sentences: list[str]
    own: OwnMove
    causes: list[CauseOfMove]
    questions: list[QuestionOfMove]
    rest: RestOfMove


encode_story = msgspec.json.Encoder().encode
