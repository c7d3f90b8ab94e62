"""``/feeds/{feed}/experts/{expert}/explain``: why an expert's weight moved, from the feed's log in Kafka.

It is computed beside the worker's own work, in a thread, one request at a time: whoever comes meanwhile is told to come
again.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeAlias

from aiohttp import web

from stream_peer.errors import StreamPeerError
from stream_peer.serve.http.problems import RETRY_SECONDS, ProblemError
from stream_peer.serve.http.queries import NOT_UNDERSTOOD, Bounds, check_names, number
from stream_peer.settings.process import Settings
from stream_peer.tools.explain.weight_account import Account
from stream_peer.tools.explain.weight_story.records import WeightKind, WeightStory, encode_story
from stream_peer.tools.explain.weight_story.request import LogRead, NotThere, WeightRequest, answer, bound_of

PATIENCE_SECONDS = 60.0
QUESTIONS = Bounds(usual=10, most=10_000)
_NAMES = ("from", "to", "weight", "questions")


class _GivenUpError(StreamPeerError):
    """Nobody waits for the answer any more, or not for long."""

    def __init__(self) -> None:
        super().__init__("the worker that was asked is stopping; ask again")


ReadAccounts: TypeAlias = Callable[[WeightRequest, Account, Callable[[], None]], LogRead]
"""Folds a feed's log for an account, and now and then calls what raises if nobody waits any more."""


def from_kafka(settings: Settings, secret: bytes) -> ReadAccounts:
    """Reads the log of a feed from the brokers that the settings name."""

    def read(request: WeightRequest, account: Account, go_on: Callable[[], None]) -> LogRead:
        # At the first request: a worker that nobody asks loads neither replay nor the fold of explanations.
        from stream_peer.tools.explain.weight_story.kafka_log import read_accounts

        return read_accounts(settings, request.feed, [account], secret=secret, progress=lambda *_: go_on())

    return read


class WeightAnswers:
    """Answers requests about weights, one at a time.

    Parameters
    ----------
    read : ReadAccounts
    patience_seconds : float
        How long a request may take.
    """

    def __init__(self, read: ReadAccounts, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._read = read
        self._patience = patience_seconds
        self._busy = False
        self._stop = threading.Event()

    async def explain(self, request: web.Request) -> web.Response:
        """Answer one request.

        Raises
        ------
        ProblemError
            400, 404, or 503 while another is computed, if the log cannot be read, or is too long.
        """
        asked = _asked(request)
        if self._busy:
            detail = "another explanation is being computed, and only one is at a time"
            raise ProblemError(503, detail, "Busy", RETRY_SECONDS)
        try:
            async with asyncio.timeout(self._patience):
                found = await self._computed(asked)
        except TimeoutError:
            self._stop.set()
            detail = (
                f"the feed's log is too long to be read within {self._patience:g} seconds; `stream-peer explain` has "
                "no such limit"
            )
            raise ProblemError(503, detail, "Too much to read", RETRY_SECONDS) from None
        except StreamPeerError as error:
            raise ProblemError(503, str(error), "The log cannot be read", RETRY_SECONDS) from None
        if isinstance(found, NotThere):
            raise _not_there(found)
        return web.Response(
            body=encode_story(found), content_type="application/json", headers={"Cache-Control": "no-store"}
        )

    async def _computed(self, asked: WeightRequest) -> WeightStory | NotThere:
        """The answer, computed in a thread of its own, which does not keep the process from ending."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[WeightStory | NotThere] = loop.create_future()
        self._busy, self._stop = True, threading.Event()
        stop = self._stop

        def go_on() -> None:
            if stop.is_set():
                raise _GivenUpError

        def compute() -> None:
            outcome: WeightStory | NotThere | Exception
            try:
                account = asked.account()
                outcome = answer(asked, account, self._read(asked, account, go_on))
            except Exception as error:  # noqa: BLE001 - it is raised where it is waited for
                outcome = error
            loop.call_soon_threadsafe(self._settle, future, outcome)

        threading.Thread(target=compute, name="explain", daemon=True).start()
        return await future

    def _settle(
        self, future: "asyncio.Future[WeightStory | NotThere]", outcome: WeightStory | NotThere | Exception
    ) -> None:
        self._busy = False
        if future.done():
            return
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)

    async def end(self, _application: web.Application) -> None:
        """Give up what is being computed: the application ends."""
        self._stop.set()


def _asked(request: web.Request) -> WeightRequest:
    """What is asked for.

    Raises
    ------
    ProblemError
        400, if it cannot be understood.
    """
    check_names(request, _NAMES)
    query = request.query
    weight = query.get("weight", "mix")
    if weight not in {"mix", "select"}:
        raise ProblemError(400, f"weight is {weight[:100]!r}, neither mix nor select", NOT_UNDERSTOOD)
    questions = number(request, "questions", QUESTIONS, least=0)
    try:
        since, until = (bound_of(query[name]) if name in query else None for name in ("from", "to"))
    except ValueError as error:
        raise ProblemError(400, str(error), NOT_UNDERSTOOD) from None
    feed, expert = request.match_info["feed"], request.match_info["expert"]
    kind: WeightKind = "mix" if weight == "mix" else "select"
    asked = WeightRequest(feed, expert, since, until, kind, questions)
    if asked.is_backwards:
        raise _backwards()
    return asked


def _backwards() -> ProblemError:
    return ProblemError(400, "from is after to", NOT_UNDERSTOOD)


def _not_there(found: NotThere) -> ProblemError:
    if found.what == "span":
        return _backwards()
    return ProblemError(404, found.message, f"No such {found.what}")
