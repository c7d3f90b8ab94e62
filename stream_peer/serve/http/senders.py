"""``/senders``: the experts that a person should look at, of this worker."""

from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
from aiohttp import web

from stream_peer.events.times import to_milliseconds
from stream_peer.serve.http.answers import BusyExpert, LookAlike, NewExperts, SendersAnswer
from stream_peer.serve.http.queries import Bounds, check_names, number
from stream_peer.serve.metrics.senders import MOST_EXPERTS, Senders

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
