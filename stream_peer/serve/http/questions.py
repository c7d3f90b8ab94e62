"""``/feeds/{feed}/questions/{question}``: answered by the worker that owns the feed, to which all others point."""

from urllib.parse import quote

from aiohttp import web

from stream_peer.log.owners import Elsewhere, Home, Owners, Unknown
from stream_peer.serve.http.answers import QuestionAnswer, cached_answer, tag_of
from stream_peer.serve.http.problems import ProblemError, check_names

REDIRECTED = "redirected"
_RETRY_SECONDS = 2


class QuestionAnswers:
    """Answers from the state of the feeds that this worker owns.

    Parameters
    ----------
    owners : Owners
        Knows who owns the others.
    """

    def __init__(self, owners: Owners) -> None:
        self._owners = owners

    async def question(self, request: web.Request) -> web.Response:
        """Answer, or say who can. Who was sent here is not sent on: in a rebalance two might point to each other.

        Raises
        ------
        ProblemError
            404, if there is no such question; 503, while it is not known who owns the feed.
        """
        check_names(request, (REDIRECTED,))
        feed, question = request.match_info["feed"], request.match_info["question"]
        owner = await self._owners.of(feed)
        if isinstance(owner, Elsewhere) and REDIRECTED in request.query:
            owner = Unknown("the feed has just moved to another worker")
        if isinstance(owner, Unknown):
            raise ProblemError(503, owner.reason, "The owner is not known", _RETRY_SECONDS)
        if isinstance(owner, Elsewhere):
            path = f"/feeds/{_quoted(feed)}/questions/{_quoted(question)}?{REDIRECTED}=yes"
            return web.Response(status=307, headers={"Location": owner.url + path, "Cache-Control": "no-store"})
        return _answer(request, owner.home, feed, question)


def _quoted(name: str) -> str:
    """A name as a segment of a path: one that is only dots would be a step in it, which clients take on their own."""
    return quote(name, safe="") if name.strip(".") else name.replace(".", "%2E")


def _answer(request: web.Request, home: Home, feed: str, question: str) -> web.Response:
    if not home.has_feed(feed):
        raise ProblemError(404, f"there is no feed {feed!r}", "No such feed")
    reading = home.reading(feed, question)
    if reading is None:
        detail = (
            f"no round of a question {question!r} counts in feed {feed}: it has none yet, was withdrawn, or was "
            "settled so long ago that only the topics still have it"
        )
        raise ProblemError(404, detail, "No such question")
    revision = reading.reference_answer.revision

    def make() -> QuestionAnswer:
        return QuestionAnswer(
            feed=feed,
            question=question,
            revision=revision,
            reference_answer=reading.reference_answer,
            mixed_forecast=reading.mixed_forecast,
        )

    return cached_answer(request, tag_of(revision), make)
