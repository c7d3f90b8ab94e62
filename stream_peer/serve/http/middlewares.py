"""What every request passes before it is answered, its bearer token among it, and every answer before it is sent."""

import asyncio
import codecs
import errno
import hashlib
import os
import re
import stat
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import unquote_to_bytes, urlsplit

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from yarl import URL

from stream_peer.serve.http.problems import ProblemError, problem
from stream_peer.serve.http.routes import LONGEST_ID, METRICS, OPEN

log = structlog.get_logger(__name__)

_SCHEME = "bearer "
TokenLine = Callable[[bytes], tuple[str, bytes]]
"""Whose token a line has, and the token. Raises ValueError with what is wrong with the line, without its token."""


def read_tokens(content: bytes, read_line: TokenLine) -> tuple[dict[bytes, str], list[str]]:
    """Whose the tokens of a file are, by the digest of each; and what is wrong with its other lines."""
    names, faults = dict[bytes, str](), list[str]()
    content = content.removeprefix(codecs.BOM_UTF8)  # which some editors write unasked
    for number, line in enumerate(map(bytes.strip, content.splitlines()), 1):
        if not line:
            continue
        try:
            name, token = read_line(line)
        except ValueError as error:
            faults.append(f"line {number} {error}")
        else:
            names[hashlib.sha256(token).digest()] = name
    return names, faults


class TokenFile:
    """Lets those ask who know a token: a line of a file, which is read again whenever it has changed.

    A wrong line lets nobody, nor does a file that cannot be read or holds none: a mistake must not open the door.

    Parameters
    ----------
    path : Path
    read_line : callable
        Reads a line; without one, each is a token of nobody in particular.
    """

    def __init__(self, path: Path, read_line: TokenLine = lambda line: ("", line)) -> None:
        self._path, self._name = path, str(path)
        self._read_line = read_line
        self._seen: object = None
        self._names: dict[bytes, str] = {}

    def admits(self, authorization: str | None) -> bool:
        """Whether it bears one of the tokens."""
        return self.name_of(authorization) is not None

    def name_of(self, authorization: str | None) -> str | None:
        """Whose token it bears, by the name in the file ("" if there are none); None: it is in no line.

        Tokens are found by their digest, so how long that takes says nothing of how near one came.
        """
        self._read()
        if authorization is None or authorization[: len(_SCHEME)].lower() != _SCHEME:
            return None
        given = authorization[len(_SCHEME) :].strip().encode(errors="surrogateescape")
        return self._names.get(hashlib.sha256(given).digest())

    def _read(self) -> None:
        try:
            seen: object = _state_of(self._name)
            if seen != self._seen:
                self._names, faults = read_tokens(self._path.read_bytes(), self._read_line)
                self._seen = seen
                if faults:
                    log.warning("http_tokens_wrong", file=str(self._path), lines=len(faults), reason=faults[0])
                if not self._names:
                    log.warning("http_token_missing", file=str(self._path), reason="it holds no token: nobody may ask")
        except OSError as error:
            if self._names or self._seen is None:
                log.warning("http_token_missing", file=str(self._path), reason=error.strerror)
            self._names, self._seen = {}, error.errno


def _state_of(name: str) -> tuple[int, int, int]:
    """What differs once a file has changed. A name: each request asks, and a path is turned into one every time."""
    found = os.stat(name)
    if not stat.S_ISREG(found.st_mode):  # a pipe would be waited for, and all else with it
        raise OSError(errno.EINVAL, "it is no regular file")
    return found.st_mtime_ns, found.st_size, found.st_ino


_ID_WITH_SLASHES = re.compile(
    r"(?P<before>/feeds/[^/]+/(?:experts|questions)/)(?P<id>[^/]+/.*?)(?P<after>(?:/explain)?)"
)

HEADERS: Mapping[str, str] = {
    "Server": "stream-peer",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Every answer has them, unless it has its own."""


async def add_headers(_request: web.BaseRequest, response: web.StreamResponse) -> None:
    """Give an answer the headers that all have."""
    response.headers.pop("Server", None)  # aiohttp has set its own by now
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)


@web.middleware
async def tell_problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Whatever goes wrong, the client gets a problem document; an error of ours is logged, and not shown."""
    try:
        return await handler(request)
    except ProblemError as error:
        return error.answer()
    except web.HTTPException as error:
        return of_http_exception(error, request.rel_url)
    except Exception as error:
        log.exception("http_failed", path=request.path, reason=repr(error))
        return problem(500, "the worker failed to answer; its log says why")


def of_http_exception(error: web.HTTPException, url: URL) -> web.Response:
    """A problem document of what aiohttp would say as plain text."""
    allowed = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
    details = {
        404: f"there is nothing at {url.path[:300]!r}; /openapi.json says what there is{_with_slashes(url.raw_path)}",
        405: f"{allowed.get('Allow', 'nothing')} is answered here",
        417: "no request takes a body",
    }
    return problem(error.status, details.get(error.status, error.reason), headers=allowed)


def answer_to(names: Collection[str]) -> Middleware:
    """Only requests for a name of this server are answered: an address, ``localhost``, or one of ``names``.

    A page of a stranger can lead a browser to this server under a name of the stranger's own (DNS rebinding); its
    scripts may then read every answer. Probes and scrapes are exempt: they come from machines, by many names.

    Parameters
    ----------
    names : collection of str
        In lower case; ``*`` stands for all.
    """

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        header = request.headers.get("Host")  # every browser sends one
        if header is None or "*" in names or request.path.startswith(OPEN) or request.path == METRICS:
            return await handler(request)
        name = host_of(header)
        if not (name in names or name == "localhost" or _is_address(name)):
            refused = problem(
                421, f"no request for {name[:100]!r} is answered here; http.hosts lists the names that are"
            )
            refused.force_close()
            return refused
        return await handler(request)

    return check


@lru_cache
def host_of(header: str) -> str:
    """The name or address in a ``Host`` header, in lower case, without port and brackets.

    Examples
    --------
    >>> host_of("Worker-0.example:8080"), host_of("[::1]:8080"), host_of("127.0.0.1")
    ('worker-0.example', '::1', '127.0.0.1')
    """
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _with_slashes(raw_path: str) -> str:
    """How to write an id that holds slashes, if the path may have been meant to hold one."""
    found = _ID_WITH_SLASHES.fullmatch(raw_path)
    if found is None:
        return ""
    written = found["before"] + found["id"].replace("/", "%2F") + found["after"]
    return f"; a / within an id is written %2F: {written[:300]}"


def admit(tokens: TokenFile) -> Middleware:
    """Only those who may ask are answered; orchestrators may always."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not request.path.startswith(OPEN) and not tokens.admits(request.headers.get("Authorization")):
            detail = "a bearer token is needed, which is in the file that http.token_file names"
            return problem(401, detail, headers={"WWW-Authenticate": 'Bearer realm="stream-peer"'})
        return await handler(request)

    return check


@web.middleware
async def check_size(request: web.Request, handler: Handler) -> web.StreamResponse:
    """No request has a body, and no id is longer than ids can be.

    Raises
    ------
    ProblemError
        404, if one is longer; 400, if the path has bytes that a URL cannot have.
    """
    if request.body_exists:
        refused = problem(413, "no request takes a body")
        refused.force_close()
        return refused
    path = request.rel_url.raw_path
    if not path.isascii():
        raise ProblemError(400, "a path is UTF-8 whose bytes are percent-encoded")
    for part in path.split("/"):
        if len(unquote_to_bytes(part)) > LONGEST_ID:
            raise ProblemError(404, f"no id is longer than {LONGEST_ID} bytes", "Too long to be anything")
    return await handler(request)


async def invite_nothing(request: web.Request) -> None:
    """Do not ask for the body that a client offers to send.

    Raises
    ------
    HTTPExpectationFailed
        If a client expects anything else.
    """
    if request.headers.get("Expect", "").lower() != "100-continue":
        raise web.HTTPExpectationFailed


def limit_time(seconds: Mapping[str, float]) -> Middleware:
    """An answer that takes longer is given up. ``seconds``: by the router's patterns."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        resource = request.match_info.route.resource
        patience = seconds.get("" if resource is None else resource.canonical)
        try:
            async with asyncio.timeout(patience):
                return await handler(request)
        except TimeoutError:
            return problem(503, f"there was no answer within {patience:g} seconds", "Too slow", retry=5)

    return check
