"""The bodies of answers, and tags by which a client may keep an answer until it changes."""

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Literal

import msgspec
from aiohttp import web

from stream_peer import __version__
from stream_peer.events.outputs import (
    DriftedExpert,
    ErrorRates,
    ExpertGroup,
    MixedForecast,
    ReferenceAnswer,
    TrustState,
    WeightedExpert,
    Weights,
)

_encode = msgspec.json.Encoder().encode


def tag_of(*revisions: object) -> str:
    """A strong tag (RFC 9110): of one release, equal revisions mean equal bytes."""
    return "-".join([*map(str, revisions), __version__])


def tag_of_many(*revisions: object) -> str:
    """A tag of many things at once."""
    return sha256(repr((__version__, revisions)).encode()).hexdigest()[:32]


def cached_answer(
    request: web.Request, tag: str, make: Callable[[], msgspec.Struct], headers: Mapping[str, str] | None = None
) -> web.Response:
    """The answer that ``make`` makes, or 304 without making it if the client has it."""
    told = {"ETag": f'"{tag}"', "Cache-Control": "private, no-cache", **(headers or {})}
    known = request.if_none_match or ()
    if any(one.value in (tag, "*") for one in known):
        return web.Response(status=304, headers=told)
    return web.Response(body=_encode(make()), content_type="application/json", headers=told)


class Probe(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a probe; ``reason`` says why it is unavailable, else what the worker waits for."""

    status: Literal["ok", "unavailable"]
    reason: str | msgspec.UnsetType = msgspec.UNSET


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """Which release runs on which Python."""

    name: str
    version: str
    python: str


class FeedSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A feed in a list: ``status`` is its trust, ``revision`` and ``at`` are those of its newest ``weights``."""

    feed: str
    status: TrustState
    questions: float
    resolved: float
    revision: int
    at: str


class FeedList(msgspec.Struct, frozen=True, kw_only=True):
    """Feeds by name. ``next`` is the ``cursor`` of the next page, null on the last one."""

    feeds: list[FeedSummary]
    next: str | None


class FeedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A feed as its topics have it: the newest record of ``weights``, put together of its parts, and ``error-rates``.

    Of a feed with many experts ``weights.experts`` holds a page: those behind ``cursor``, by id. ``experts`` counts all
    of them, and ``next`` is the ``cursor`` of the next page, null on the last one.
    """

    feed: str
    experts: int
    next: str | None
    weights: Weights
    error_rates: ErrorRates | None


class NewExperts(msgspec.Struct, frozen=True, kw_only=True):
    """Experts of a feed that it met within the last week: how many, and ids, the newest first."""

    feed: str
    count: int
    experts: list[str]


class BusyExpert(msgspec.Struct, frozen=True, kw_only=True):
    """An expert that sends more forecasts of a question than are kept, and how many more."""

    feed: str
    expert: str
    forecasts: int


class LookAlike(msgspec.Struct, frozen=True, kw_only=True):
    """A new expert of a feed whose id differs from the one of an earlier expert only in blanks, case or look-alikes."""

    feed: str
    expert: str
    earlier: str


class SendersAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Experts to look at, of the feeds and questions that this worker owns, since it started."""

    new_experts: list[NewExperts]
    busy_experts: list[BusyExpert]
    look_alikes: list[LookAlike]


class ExpertAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An expert of a feed: its weights and record, and what is known of it beside the others.

    ``status`` is the feed's trust. ``groups`` are those that it is found in of experts who say the same; ``drift`` says
    how it changed lately, null if it is not among those that changed most.
    """

    feed: str
    revision: int
    at: str
    settings: str
    status: TrustState
    expert: WeightedExpert
    groups: list[ExpertGroup]
    drift: DriftedExpert | None


class QuestionAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The latest reference answer and mixed forecast of a question, at the newest error rates of its feed."""

    feed: str
    question: str
    revision: int
    reference_answer: ReferenceAnswer
    mixed_forecast: MixedForecast
