"""What stands behind the question mark: which parameters a request may have, once each, and pages of long lists."""

from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from typing import Generic, NamedTuple, TypeVar

from aiohttp import web

from stream_peer.serve.http.problems import ProblemError

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
