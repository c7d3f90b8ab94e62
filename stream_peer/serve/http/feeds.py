"""Answers about feeds, their experts, questions and groups of questions, and about who sends what.

``/feeds`` and the experts below it come from what was published, by any worker; questions and groups from the state of
the worker that owns their feed, to which all others point. Answers have tags, by which a client may keep one until it
changes.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from operator import attrgetter
from typing import Protocol
from urllib.parse import quote

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
from stream_peer.events.spelling import did_you_mean
from stream_peer.events.times import to_milliseconds
from stream_peer.log.owners import Elsewhere, Home, Owners, Unknown
from stream_peer.serve.feed_records import FeedRecords
from stream_peer.serve.http.problems import (
    RETRY_SECONDS,
    Bounds,
    ProblemError,
    check_names,
    json_answer,
    link_to,
    number,
    page_of,
)
from stream_peer.serve.metrics.senders import MOST_EXPERTS, BusyExpert, LookAlike, NewExperts, Senders

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


FEEDS = Bounds(usual=100, most=1_000)
EXPERTS = Bounds(usual=1_000, most=2_000)  # of an answer each connection may hold one: some 350 kB
_FEW = 200  # names, among which what was meant by a misspelt one is looked for
_PAGES = ("limit", "cursor")
_id_of = attrgetter("id")


class Following(Protocol):
    """A reader of the topics ``weights`` and ``error-rates``."""

    @property
    def records(self) -> FeedRecords:
        """What was read."""

    @property
    def not_ready_reason(self) -> str:
        """Why not everything was read yet; empty: it was."""


class FeedAnswers:
    """Answers for any feed.

    Parameters
    ----------
    following : Following
    """

    def __init__(self, following: Following) -> None:
        self._following = following

    @property
    def records(self) -> FeedRecords:
        """What was published of feeds.

        Raises
        ------
        ProblemError
            503, before all of it was read.
        """
        if self._following.not_ready_reason:
            raise ProblemError(503, self._following.not_ready_reason, "Feeds are not known yet", RETRY_SECONDS)
        return self._following.records

    async def feeds(self, request: web.Request) -> web.Response:
        """Answer ``/feeds``."""
        check_names(request, _PAGES)
        heads = self.records.heads()
        page = page_of(request, self.records.feeds(), str, FEEDS)
        shown = [heads[name] for name in page.items]
        tag = tag_of_many([(head.feed, head.revision) for head in shown], page.next)

        def make() -> FeedList:
            return FeedList(feeds=msgspec.convert(shown, list[FeedSummary], from_attributes=True), next=page.next)

        return cached_answer(request, tag, make, link_to(request, page.next))

    async def feed(self, request: web.Request) -> web.Response:
        """Answer ``/feeds/{feed}``."""
        check_names(request, _PAGES)
        name = request.match_info["feed"]
        weights = self.weights(name)
        page = page_of(request, weights.experts, _id_of, EXPERTS)

        def make() -> FeedAnswer:
            return FeedAnswer(
                feed=name,
                experts=len(weights.experts),
                next=page.next,
                weights=msgspec.structs.replace(weights, experts=list(page.items)),
                error_rates=self.records.error_rates(name),
            )

        return cached_answer(request, tag_of(*self.records.revisions(name)), make, link_to(request, page.next))

    async def expert(self, request: web.Request) -> web.Response:
        """Answer ``/feeds/{feed}/experts/{expert}``."""
        check_names(request, ())
        weights = self.weights(request.match_info["feed"])
        expert = _find(weights, request.match_info["expert"])
        return cached_answer(request, tag_of(weights.revision), lambda: _expert(weights, expert))

    def weights(self, feed: str) -> Weights:
        """The newest weights of a feed.

        Raises
        ------
        ProblemError
            404, if there is no such feed.
        """
        records = self.records
        if feed not in records.heads():
            raise ProblemError(404, f"there is no feed {feed!r}{_meant(feed, records.feeds())}", "No such feed")
        found = records.weights(feed)
        if found is None:
            detail = "there are more and larger feeds than a worker keeps; read the topic weights"
            raise ProblemError(503, detail, "The feed is not kept")
        return found


def _find(weights: Weights, name: str) -> WeightedExpert:
    place = bisect_left(weights.experts, name, key=_id_of)
    if place < len(weights.experts) and weights.experts[place].id == name:
        return weights.experts[place]
    meant = _meant(name, [expert.id for expert in weights.experts])
    detail = f"there is no expert {name!r} with a weight in feed {weights.feed}{meant}"
    raise ProblemError(404, detail, "No such expert")


def _expert(weights: Weights, expert: WeightedExpert) -> ExpertAnswer:
    drifting = weights.drift.experts if weights.drift else []
    return ExpertAnswer(
        feed=weights.feed,
        revision=weights.revision,
        at=weights.at,
        settings=weights.settings,
        status=weights.status,
        expert=expert,
        groups=[group for group in weights.groups or () if expert.id in group.experts],
        drift=next((drifted for drifted in drifting if drifted.id == expert.id), None),
    )


def _meant(name: str, known: list[str]) -> str:
    return did_you_mean(name, known) if len(known) <= _FEW else ""  # it is searched for while all else waits


SENDERS = Bounds(usual=100, most=MOST_EXPERTS)


class SenderAnswers:
    """Answers who sends what.

    Parameters
    ----------
    senders : Senders
        Knows what this worker has met since it started.
    now : callable
    """

    def __init__(self, senders: Senders, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._senders, self._now = senders, now

    async def senders(self, request: web.Request) -> web.Response:
        """Answer ``/senders``."""
        check_names(request, ("limit",))
        most = number(request, "limit", SENDERS)
        told = SendersAnswer(
            new_experts=self._senders.new(to_milliseconds(self._now()), most),
            busy_experts=self._senders.busiest(most),
            look_alikes=self._senders.look_alikes(most),
        )
        return json_answer(told)


class GroupList(msgspec.Struct, frozen=True, kw_only=True):
    """Groups of questions of a feed by name. ``next`` is the ``cursor`` of the next page, null on the last one."""

    feed: str
    groups: list[str]
    next: str | None


GROUPS = Bounds(usual=100, most=1_000)
REDIRECTED = "redirected"
_OWNER_RETRY_SECONDS = 2


class OwnedAnswers:
    """Answers about questions and groups from the state of the feeds that this worker owns.

    Parameters
    ----------
    owners : Owners
        Knows who owns the others.
    """

    def __init__(self, owners: Owners) -> None:
        self._owners = owners

    async def question(self, request: web.Request) -> web.Response:
        """Answer ``/feeds/{feed}/questions/{question}``."""
        check_names(request, (REDIRECTED,))
        owner = await self._owner(request, "questions", "question")
        return owner if isinstance(owner, web.Response) else _question(request, owner)

    async def groups(self, request: web.Request) -> web.Response:
        """Answer ``/feeds/{feed}/groups``."""
        check_names(request, (*_PAGES, REDIRECTED))
        owner = await self._owner(request, "groups")
        return owner if isinstance(owner, web.Response) else _groups(request, owner)

    async def group(self, request: web.Request) -> web.Response:
        """Answer ``/feeds/{feed}/groups/{group}``."""
        check_names(request, (REDIRECTED,))
        owner = await self._owner(request, "groups", "group")
        return owner if isinstance(owner, web.Response) else _group(request, owner)

    async def _owner(self, request: web.Request, what: str, name: str | None = None) -> Home | web.Response:
        """The stage that has the feed, or the answer that says who has it.

        Who was sent here is not sent on: in a rebalance two might point to each other.

        Raises
        ------
        ProblemError
            404, if there is no such feed; 503, while it is not known who owns it.
        """
        feed = request.match_info["feed"]
        owner = await self._owners.of(feed)
        if isinstance(owner, Elsewhere) and REDIRECTED in request.query:
            owner = Unknown("the feed has just moved to another worker")
        if isinstance(owner, Unknown):
            raise ProblemError(503, owner.reason, "The owner is not known", _OWNER_RETRY_SECONDS)
        if isinstance(owner, Elsewhere):
            segments = ["feeds", _quoted(feed), what, *([] if name is None else [_quoted(request.match_info[name])])]
            query = request.rel_url.update_query({REDIRECTED: "yes"}).raw_query_string
            url = f"{owner.url}/{'/'.join(segments)}?{query}"
            return web.Response(status=307, headers={"Location": url, "Cache-Control": "no-store"})
        if not owner.home.has_feed(feed):
            raise ProblemError(404, f"there is no feed {feed!r}", "No such feed")
        return owner.home


def _quoted(name: str) -> str:
    """A name as a segment of a path: one that is only dots would be a step in it, which clients take on their own."""
    return quote(name, safe="") if name.strip(".") else name.replace(".", "%2E")


def _question(request: web.Request, home: Home) -> web.Response:
    feed, question = request.match_info["feed"], request.match_info["question"]
    records = home.question_records(feed, question)
    if records is None:
        detail = (
            f"no round of a question {question!r} counts in feed {feed}: it has none yet, was withdrawn, or was "
            "settled so long ago that only the topics still have it"
        )
        raise ProblemError(404, detail, "No such question")
    revision = records.reference_answer.revision

    def make() -> QuestionAnswer:
        return QuestionAnswer(
            feed=feed,
            question=question,
            revision=revision,
            reference_answer=records.reference_answer,
            mixed_forecast=records.mixed_forecast,
        )

    return cached_answer(request, tag_of(revision), make)


def _groups(request: web.Request, home: Home) -> web.Response:
    feed = request.match_info["feed"]
    page = page_of(request, home.groups(feed), str, GROUPS)
    made = GroupList(feed=feed, groups=list(page.items), next=page.next)
    return cached_answer(request, tag_of_many(made.groups, made.next), lambda: made, link_to(request, made.next))


def _group(request: web.Request, home: Home) -> web.Response:
    feed, group = request.match_info["feed"], request.match_info["group"]
    record = home.group_record(feed, group)
    if record is None:
        detail = (
            f"feed {feed} has no group {group!r} of questions with options or thresholds, does not have all its parts,"
            " or they were settled so long ago that only the topics still have it"
        )
        raise ProblemError(404, detail, "No such group")
    return cached_answer(request, tag_of(record.revision), lambda: record)
