"""``/feeds`` with what is below it, and ``/senders``: from what was published or met, by any worker."""

from bisect import bisect_left
from collections.abc import Callable
from datetime import UTC, datetime
from operator import attrgetter
from typing import Protocol

import msgspec
from aiohttp import web

from stream_peer.events.outputs import WeightedExpert, Weights
from stream_peer.events.spelling import did_you_mean
from stream_peer.events.times import to_milliseconds
from stream_peer.serve.feed_records import FeedHead, FeedRecords
from stream_peer.serve.http.answers import (
    BusyExpert,
    ExpertAnswer,
    FeedAnswer,
    FeedList,
    FeedSummary,
    LookAlike,
    NewExperts,
    SendersAnswer,
    cached_answer,
    tag_of,
    tag_of_many,
)
from stream_peer.serve.http.problems import RETRY_SECONDS, Bounds, ProblemError, check_names, link_to, number, page_of
from stream_peer.serve.metrics.senders import MOST_EXPERTS, Senders

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
            return FeedList(feeds=[_summary(head) for head in shown], next=page.next)

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


def _summary(head: FeedHead) -> FeedSummary:
    return FeedSummary(
        feed=head.feed,
        status=head.status,
        questions=head.questions,
        resolved=head.resolved,
        revision=head.revision,
        at=head.at,
    )


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
_NOT_KEPT = {"Cache-Control": "no-store"}


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
        new = self._senders.new(to_milliseconds(self._now()), most)
        told = SendersAnswer(
            new_experts=[NewExperts(feed=feed, count=len(ids), experts=ids[:most]) for feed, ids in new],
            busy_experts=[BusyExpert(**one._asdict()) for one in self._senders.busiest(most)],
            look_alikes=[LookAlike(**one._asdict()) for one in self._senders.look_alikes(most)],
        )
        return web.Response(body=msgspec.json.encode(told), content_type="application/json", headers=_NOT_KEPT)
