"""``/``: the page for people, of the newest weights of all feeds and of this worker's own lag."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from aiohttp import web

from stream_peer import __version__
from stream_peer.events.times import to_milliseconds
from stream_peer.serve.feed_records import FeedHead, FeedRecords
from stream_peer.serve.http.feeds import Following
from stream_peer.serve.http.probes import HealthAnswers
from stream_peer.serve.metrics import Metrics
from stream_peer.serve.pages.status import FEEDS_SHOWN, UNUSED_SHOWN, FeedStatus, StatusView, status_page, urgency

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
"""Nothing from anywhere and no script; bars have their lengths from style attributes."""


class About(NamedTuple):
    """What the page says of this worker.

    Attributes
    ----------
    instance : str
        Its name.
    settings : str
        The hash of its settings.
    events_topic : str
        Where a first event would be sent.
    shows_refused : str
        The command that shows refused events.
    """

    instance: str = "worker"
    settings: str = ""
    events_topic: str = "forecast-events"
    shows_refused: str = ""


class StatusPage:
    """Fills the page. What it says of a feed is computed once a revision: 10,000 experts take a while.

    Parameters
    ----------
    about : About
    following : Following
        What was published of feeds.
    health : HealthAnswers
    metrics : Metrics
        Knows the lag.
    """

    def __init__(
        self,
        about: About,
        following: Following,
        health: HealthAnswers,
        metrics: Metrics,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._about, self._following = about, following
        self._health, self._metrics, self._now = health, metrics, now
        self._known: dict[str, tuple[int, FeedStatus]] = {}

    async def page(self, _request: web.Request) -> web.Response:
        """Answer ``/``."""
        not_ready_reason = self._following.not_ready_reason
        feeds = [] if not_ready_reason else await self._feeds(self._following.records)
        ready, reason = self._health.ready()
        senders, now = self._metrics.senders, self._now()
        view = StatusView(
            version=__version__,
            instance=self._about.instance,
            at=now.isoformat(timespec="seconds").replace("+00:00", "Z"),
            ready=ready and not not_ready_reason,
            reason=not_ready_reason if ready else reason,
            feeds=feeds,
            lag=self._metrics.lags(),
            settings=self._about.settings,
            events_topic=self._about.events_topic,
            refused=self._metrics.refused.most_common(),
            shows_refused=self._about.shows_refused,
            unknown_fields=self._metrics.unknown_fields.largest(UNUSED_SHOWN),
            new_experts=senders.new(to_milliseconds(now), UNUSED_SHOWN),
            busy_experts=senders.busiest(UNUSED_SHOWN),
            look_alikes=senders.look_alikes(UNUSED_SHOWN),
            unused=self._metrics.unused.largest(UNUSED_SHOWN),
        )
        text = status_page(view)
        headers = {"Content-Security-Policy": _POLICY, "Cache-Control": "no-store"}
        return web.Response(text=text, content_type="text/html", headers=headers)

    async def _feeds(self, records: FeedRecords) -> Sequence[FeedStatus]:
        """All feeds; of those that are shown with their experts. The event loop gets its turn between two of them."""
        heads = sorted(records.heads().values(), key=lambda head: urgency(head.status, head.feed))
        shown = [await self._status(records, head) for head in heads[:FEEDS_SHOWN]]
        self._known = {feed.name: self._known[feed.name] for feed in shown if feed.name in self._known}
        return shown + [FeedStatus.of(head) for head in heads[FEEDS_SHOWN:]]

    async def _status(self, records: FeedRecords, head: FeedHead) -> FeedStatus:
        revision, known = self._known.get(head.feed, (None, None))
        if known is not None and revision == head.revision:
            return known
        weights = records.weights(head.feed)
        if weights is None:
            return FeedStatus.of(head)
        status = FeedStatus.of(weights, weights.experts)
        self._known[head.feed] = weights.revision, status
        await asyncio.sleep(0)
        return status
