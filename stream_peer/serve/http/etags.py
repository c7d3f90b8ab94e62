"""Answers that a client may keep: each has a tag that changes whenever it would, and is not sent again before."""

from collections.abc import Callable, Mapping
from hashlib import sha256

import msgspec
from aiohttp import web

from stream_peer import __version__

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
