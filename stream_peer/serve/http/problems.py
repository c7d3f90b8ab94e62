"""Answers to requests that fail: problem documents (RFC 9457)."""

from collections.abc import Mapping
from http import HTTPStatus

import msgspec
from aiohttp import web

PROBLEM_JSON = "application/problem+json"
RETRY_SECONDS = 5


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong (RFC 9457). ``detail`` is a sentence about this request, ``title`` the same for all of a kind."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str


_encode = msgspec.json.Encoder().encode


def problem(
    status: int,
    detail: str,
    title: str | None = None,
    *,
    retry: int | None = None,
    headers: Mapping[str, str] | None = None,
) -> web.Response:
    """An answer that says what is wrong.

    Parameters
    ----------
    status : int
        HTTP's code.
    detail : str
        A sentence for the client.
    title : str or None
        What kind of problem it is; the code's own phrase if left out.
    retry : int or None
        Seconds after which it may be gone.
    headers : mapping of str
        More of them.
    """
    told = Problem(title=title or HTTPStatus(status).phrase, status=status, detail=detail)
    more = {**(headers or {}), "Cache-Control": "no-store"} | ({} if retry is None else {"Retry-After": str(retry)})
    return web.Response(status=status, body=_encode(told), content_type=PROBLEM_JSON, headers=more)


class ProblemError(Exception):
    """A request cannot be answered: raised where that is found; the server answers the client with it."""

    def __init__(self, status: int, detail: str, title: str | None = None, retry: int | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.title, self.retry = status, detail, title, retry

    def answer(self) -> web.Response:
        """The problem document."""
        return problem(self.status, self.detail, self.title, retry=self.retry)
