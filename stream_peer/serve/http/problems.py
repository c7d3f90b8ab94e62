"""Requests that are refused: what parameters one may have, pages of long lists, and answers as problem+json."""

from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from http import HTTPStatus
from typing import Generic, NamedTuple, TypeVar

import msgspec
from aiohttp import web

T = TypeVar("T")
NOT_UNDERSTOOD = "The question cannot be understood"
"""The title of problems with what is asked."""


class Page(NamedTuple, Generic[T]):
    """Some items of a list, and the name behind which the next page begins; None: there is none."""

    items: Sequence[T]
    next: str | None


class Bounds(NamedTuple):
    """How many items of a list are shown, unless told, and at most."""

    usual: int
    most: int


def check_names(request: web.Request, allowed: Collection[str]) -> None:
    """Refuse parameters that mean nothing: a misspelt one would otherwise silently do nothing.

    Raises
    ------
    ProblemError
        400, if there is one, or one is given twice.
    """
    unknown = sorted(set(request.query) - set(allowed))
    if unknown:
        known = f"there are {', '.join(allowed)}" if allowed else "there are none here"
        raise ProblemError(400, f"there is no parameter {unknown[0][:100]!r}; {known}", NOT_UNDERSTOOD)
    repeated = [name for name in allowed if len(request.query.getall(name, [])) > 1]
    if repeated:
        raise ProblemError(400, f"{repeated[0]} can be given once", NOT_UNDERSTOOD)


def number(request: web.Request, name: str, bounds: Bounds, least: int = 1) -> int:
    """A parameter that says how many.

    Raises
    ------
    ProblemError
        400, if it is no number within ``least`` and ``bounds.most``.
    """
    text = request.query.get(name, str(bounds.usual))
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(bounds.most))
    found = int(text) if is_number else -1
    if not least <= found <= bounds.most:
        raise ProblemError(400, f"{name} is {text[:100]!r}, no number within {least}..{bounds.most}", NOT_UNDERSTOOD)
    return found


def page_of(request: web.Request, items: Sequence[T], name_of: Callable[[T], str], bounds: Bounds) -> Page[T]:
    """The page that is asked for by ``limit`` and ``cursor``, of items sorted by name.

    Raises
    ------
    ProblemError
        400, if the limit is no number within bounds.
    """
    limit = number(request, "limit", bounds)
    cursor = request.query.get("cursor")
    start = 0 if cursor is None else bisect_right(items, cursor, key=name_of)
    chosen = items[start : start + limit]
    more = start + limit < len(items)
    return Page(chosen, name_of(chosen[-1]) if more else None)


def link_to(request: web.Request, cursor: str | None) -> dict[str, str]:
    """The header that leads to the next page, if there is one: relative to this one, whatever proxy stands before."""
    if cursor is None:
        return {}
    return {"Link": f'<?{request.rel_url.update_query(cursor=cursor).raw_query_string}>; rel="next"'}


def json_answer(told: msgspec.Struct, status: int = 200) -> web.Response:
    """An answer that no client may keep."""
    headers = {"Cache-Control": "no-store"}
    return web.Response(status=status, body=_encode(told), content_type="application/json", headers=headers)


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
    """A request cannot be answered: raised where that is found; the server answers the client with it.

    ``close``: the connection ends with the answer, as the rest of the request is not read.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        title: str | None = None,
        retry: int | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        close: bool = False,
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.title, self.retry = status, detail, title, retry
        self.headers, self.close = headers, close

    def answer(self) -> web.Response:
        """The problem document."""
        told = problem(self.status, self.detail, self.title, retry=self.retry, headers=self.headers)
        if self.close:
            told.force_close()
        return told
