"""The gateway's HTTP server: its routes, who may post, and the answers."""

import asyncio
import math
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import cache, partial
from itertools import islice
from typing import Any

import msgspec
import structlog
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)

from stream_peer.errors import BrokerUnavailableError, RecordTooLargeError, SettingFault, SettingsError, StreamPeerError
from stream_peer.events import topics
from stream_peer.events.incoming import MAX_EVENT_BYTES
from stream_peer.events.rejections import Reason
from stream_peer.gateway.brokers import Brokers, Sending
from stream_peer.gateway.limits import Rate, Room
from stream_peer.gateway.posts import MOST_LINES, Door, LineResult, Post, numbered_lines
from stream_peer.kafka.client.security import server_context
from stream_peer.log.producers import Producers
from stream_peer.serve.http.middlewares import (
    TokenFile,
    add_headers,
    admit,
    answer_to,
    check_size,
    invite_nothing,
    limit_time,
    read_tokens,
    tell_problems,
)
from stream_peer.serve.http.probes import Probe, Probes, Scrapes, Version
from stream_peer.serve.http.problems import PROBLEM_JSON, RETRY_SECONDS, Problem, ProblemError, json_answer
from stream_peer.serve.http.routes import METRICS, Parameter, Route, openapi
from stream_peer.serve.http.server import Runner, names_of, port_of, url_of
from stream_peer.serve.metrics.catalogue import BY_NAME_OF_GATEWAY
from stream_peer.settings.process import Settings
from stream_peer.settings.process.keys import MIN_KEY_BYTES

log = structlog.get_logger(__name__)

EVENTS = "/events"
JSON, NDJSON = "application/json", "application/x-ndjson"
MOST_BYTES = MAX_EVENT_BYTES
"""Of a post."""
ROOM_BYTES = 64_000_000
_KEY_HEADER = "Idempotency-Key"
_MOST_KEY = 256
_LINES_AT_ONCE = 50
_SHUTDOWN_SECONDS = 12.0
_SECONDS = 15.0
_NOT_USED = "The event cannot be used"


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """Accepted lines of a post are written; a post of one event has one line."""

    accepted: int
    refused: int
    lines: list[LineResult]


class PostProblem(Problem, frozen=True, kw_only=True, omit_defaults=True):
    """Nothing of a post is written. Refused events have the reason of a dead letter, and a result for each line."""

    reason: str | msgspec.UnsetType = msgspec.UNSET
    field: str | msgspec.UnsetType = msgspec.UNSET
    lines: list[LineResult] | msgspec.UnsetType = msgspec.UNSET


_KEY = Parameter(
    _KEY_HEADER,
    "Names the post: events without an event_id get one that is made of it, the same when it is posted again.",
    {"type": "string", "minLength": 1, "maxLength": _MOST_KEY},
)
_TAKEN = {JSON: {"schema": {"type": "object"}}, NDJSON: {"schema": {"type": "string"}}}
ROUTES = (
    Route(
        EVENTS,
        "events",
        "Write one event, or one a line; answered when every in-sync replica has them.",
        Accepted,
        others=[400, 403, 415, 422, 429],
        seconds=_SECONDS,
        body=_TAKEN,
        success=202,
        headers=[_KEY],
        problem=PostProblem,
    ),
    Route(METRICS, "metrics", "Metrics in the text format of Prometheus.", "text/plain"),
    Route("/healthz/live", "live", "Whether the gateway answers.", Probe),
    Route("/healthz/ready", "ready", "Whether brokers take events.", Probe, others=[503]),
    Route("/version", "version", "Which release runs.", Version),
    Route("/openapi.json", "openapi", "This document.", "application/json"),
)
_ABOUT = "Takes events by HTTP and writes them to Kafka. Faults are problem documents (RFC 9457)."


class Counts:
    """What the gateway counts."""

    def __init__(self, room: Room, brokers: Brokers) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        events = self._made(Counter, "gateway_events_total")
        seconds = self._made(Histogram, "gateway_seconds", buckets=BY_NAME_OF_GATEWAY["gateway_seconds"].buckets)
        # Looked up once each: there are few results and statuses.
        self.events = cache(events.labels)
        for result in ("accepted", "unacknowledged", *Reason):  # from 0, or rate would not see the first
            self.events(result)
        self.seconds = cache(lambda status: seconds.labels(str(status)))
        self._made(Gauge, "gateway_bytes").set_function(lambda: room.taken)
        self._made(Gauge, "gateway_ready").set_function(lambda: brokers.ready()[0])

    def _made(self, kind: Callable[..., Any], name: str, **options: Any) -> Any:
        metric = BY_NAME_OF_GATEWAY[name]
        return kind(metric.full_name, metric.help, metric.labels, registry=self.registry, **options)

    @property
    def timing(self) -> Middleware:
        """Observes how long posts take."""

        @web.middleware
        async def observe(request: web.Request, handler: Handler) -> web.StreamResponse:
            began = time.perf_counter()
            answer = await handler(request)
            if request.path == EVENTS:
                self.seconds(answer.status).observe(time.perf_counter() - began)
            return answer

        return observe


class Who:
    """Finds the producer of a post: by the certificate of its connection, or by its bearer token."""

    def __init__(self, settings: Settings, producers: Producers) -> None:
        file = settings.gateway.tokens_file
        self._tokens = None if file is None else TokenFile(file, partial(_token_line, producers))
        self._producers = producers

    def posts(self, request: web.Request) -> str:
        """The producer's name.

        Raises
        ------
        ProblemError
            401, if neither names one.
        """
        name = None if self._tokens is None else self._tokens.name_of(request.headers.get("Authorization"))
        if name is None and request.transport is not None:
            name = _common_name(request.transport.get_extra_info("peercert") or {})
        if name is None or name not in self._producers:
            detail = "a bearer token or a client certificate is needed that names a producer of producers_file"
            raise ProblemError(401, detail, headers={"WWW-Authenticate": 'Bearer realm="stream-peer"'})
        return name


class Posts:
    """Answers posts."""

    def __init__(self, settings: Settings, producers: Producers, brokers: Brokers) -> None:
        self._who = Who(settings, producers)
        self._door = Door(producers, settings.topic(topics.FORECAST_EVENTS))
        self._brokers = brokers
        self._limits = settings.gateway
        self._rates: dict[str, tuple[Rate, Rate]] = {}
        self.room = Room(ROOM_BYTES)
        self.counts = Counts(self.room, brokers)

    async def post(self, request: web.Request) -> web.Response:
        """Answer ``POST /events``.

        Raises
        ------
        ProblemError
            If it is refused before its events are looked at, or cannot be written.
        """
        producer = self._who.posts(request)
        of_events, of_bytes = self._rates_of(producer)
        wait = max(of_events.wait(), of_bytes.wait())
        if wait:
            detail = f"producer {producer!r} sends more than gateway.events_per_second or gateway.bytes_per_second"
            raise ProblemError(429, detail, retry=math.ceil(wait))
        kind, key = _media_type(request), _idempotency_key(request)
        size = _announced_size(request)
        if not self.room.take(size):
            raise ProblemError(
                503, "posts are waiting for their acknowledgement, and there is no room for more", retry=1
            )
        post, sending = Post([], []), Sending(lambda: self.room.give_back(size))
        try:
            body = await _body(request)
            of_bytes.take(len(body))
            lines = _lines(body, kind)
            of_events.take(len(lines))
            for some in _slices(lines):
                if post.results:
                    await asyncio.sleep(0)  # other posts have their turn
                self._send(self._door.read(some, producer, key), post, sending)
        finally:
            sending.settle(None)
        try:
            await sending.written()  # a client that goes away leaves what is being written as it is
        except StreamPeerError as error:
            raise self._not_written(post, error) from None
        if post.records:
            self.counts.events("accepted").inc(len(post.records))
        return _answer(post)

    def _rates_of(self, producer: str) -> tuple[Rate, Rate]:
        if producer not in self._rates:  # as many as there are producers
            amounts = self._limits.events_per_second, self._limits.bytes_per_second
            self._rates[producer] = (Rate(amounts[0], time.monotonic), Rate(amounts[1], time.monotonic))
        return self._rates[producer]

    def _send(self, part: Post, post: Post, sending: Sending) -> None:
        """Send what is accepted of a part, and add the part to the post."""
        post.records.extend(part.records)
        post.results.extend(part.results)
        for result in part.refused:
            self.counts.events(result.reason).inc()
        if part.records:
            try:
                self._brokers.send(part.records, sending)
            except BrokerUnavailableError as error:
                raise self._not_written(post, error) from None

    def _not_written(self, post: Post, error: StreamPeerError) -> ProblemError:
        if isinstance(error, RecordTooLargeError):
            self.counts.events(Reason.TOO_LARGE).inc(len(post.records))
            return ProblemError(413, str(error))
        self.counts.events("unacknowledged").inc(len(post.records))
        detail = f"not acknowledged; post it again, with the same {_KEY_HEADER}: {error}"
        return ProblemError(503, detail, "Brokers are away", retry=RETRY_SECONDS)


def _answer(post: Post) -> web.Response:
    refused = post.refused
    if post.records:
        return json_answer(Accepted(accepted=len(post.records), refused=len(refused), lines=list(post.results)), 202)
    first = refused[0]
    told = PostProblem(
        title=_NOT_USED,
        status=first.status if {result.status for result in refused} == {first.status} else 422,
        detail=str(first.detail),
        reason=first.reason,
        field=first.field,
        lines=list(refused),
    )
    answer = json_answer(told, told.status)
    answer.content_type = PROBLEM_JSON
    return answer


def _common_name(certificate: Mapping[str, Any]) -> str | None:
    """The common name of a certificate's subject; None if it has none, or several."""
    names = [value for part in certificate.get("subject", ()) for field, value in part if field == "commonName"]
    return str(names[0]) if len(names) == 1 else None


def _media_type(request: web.Request) -> str:
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise ProblemError(415, "a post is not compressed")
    if request.content_type not in _TAKEN:
        raise ProblemError(415, f"Content-Type is {JSON} for one event, or {NDJSON} for one a line")
    return request.content_type


def _idempotency_key(request: web.Request) -> str | None:
    given = request.headers.getall(_KEY_HEADER, [])
    if not given:
        return None
    if len(given) > 1 or not given[0].isascii() or not given[0].isprintable() or not 1 <= len(given[0]) <= _MOST_KEY:
        raise ProblemError(400, f"{_KEY_HEADER} is given once, 1 to {_MOST_KEY} printable characters of ASCII")
    return given[0]


def _announced_size(request: web.Request) -> int:
    """What a post may take of the room; a client that does not say how long it is may use all that a post has."""
    size = request.content_length
    if size is not None and size > MOST_BYTES:
        raise _too_long()
    return MOST_BYTES if size is None else size


async def _body(request: web.Request) -> bytes:
    body = bytearray()
    if request.content.is_eof():  # it came with its headers, as most do
        body += request.content.read_nowait()
    async for chunk in request.content.iter_any():
        body += chunk
        if len(body) > MOST_BYTES:
            raise _too_long()
    return bytes(body)


def _lines(body: bytes, kind: str) -> Mapping[int, bytes]:
    """The events of a post by line; an empty one has an empty line."""
    lines = numbered_lines(body) if kind == NDJSON else {1: body.strip()}
    if len(lines) > MOST_LINES:
        raise ProblemError(413, f"a post has at most {MOST_LINES:,} lines")
    return lines or {1: b""}


def _slices(lines: Mapping[int, bytes]) -> Iterator[Mapping[int, bytes]]:
    """The lines of a post, as many at a time as hold other posts up for a few milliseconds only."""
    rest = iter(lines.items())
    while some := dict(islice(rest, _LINES_AT_ONCE)):
        yield some


def _too_long() -> ProblemError:
    return ProblemError(413, f"a post has at most {MOST_BYTES:,} bytes", close=True)


def _but_posts(middleware: Middleware) -> Middleware:
    """What all requests pass but those of the route for posts, which has checks of its own."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        return await (handler(request) if request.path == EVENTS else middleware(request, handler))

    return check


def application(settings: Settings, posts: Posts, brokers: Brokers) -> web.Application:
    """The routes, and what all of them pass."""
    token = settings.http.token_file
    gate = [] if token is None else [_but_posts(admit(TokenFile(token)))]
    names = answer_to(names_of(settings.http))
    times = limit_time({route.path: route.seconds for route in ROUTES})
    made = web.Application(
        middlewares=[posts.counts.timing, tell_problems, names, *gate, _but_posts(check_size), times]
    )
    made.on_response_prepare.append(add_headers)
    probes, document = Probes(brokers), msgspec.json.encode(openapi(ROUTES, _ABOUT, "gateway.tokens_file"))

    async def described(_request: web.Request) -> web.Response:
        return web.Response(body=document, content_type=JSON, headers={"Cache-Control": "no-cache"})

    handlers: Mapping[str, Any] = {
        "metrics": Scrapes(posts.counts.registry).metrics,
        "live": probes.live,
        "ready": probes.ready,
        "version": probes.version,
        "openapi": described,
    }
    for route in ROUTES:
        if route.body is None:
            made.router.add_get(route.path, handlers[route.name], expect_handler=invite_nothing)
    made.router.add_post(EVENTS, posts.post)
    return made


def check_gateway(settings: Settings, producers: Producers | None) -> Producers:
    """The producers that may post.

    Raises
    ------
    SettingsError
        If nobody could, or a line of ``tokens_file`` is wrong: all faults at once.
    """
    gateway, faults = settings.gateway, list[SettingFault]()
    if producers is None:
        message = "names no file, and who posts is a producer: see `Producers` in docs/settings.md"
        faults.append(SettingFault("producers_file", "default", message))
    if gateway.tokens_file is None and gateway.client_ca_file is None:
        message = "names no file, and there is no gateway.client_ca_file either: nobody could post"
        faults.append(SettingFault("gateway.tokens_file", "default", message))
    if gateway.tokens_file is not None:
        _, wrong = read_tokens(gateway.tokens_file.read_bytes(), partial(_token_line, producers))
        faults += [SettingFault("gateway.tokens_file", str(gateway.tokens_file), message) for message in wrong]
    if faults or producers is None:
        raise SettingsError(faults)
    return producers


def _token_line(producers: Producers | None, line: bytes) -> tuple[str, bytes]:
    """The producer of a line of ``tokens_file``, and its token."""
    words = line.split()
    if len(words) != 2:
        msg = "is not a producer's name, a blank and a token"
        raise ValueError(msg)
    name, token = words[0].decode(errors="replace"), words[1]
    if len(token) < MIN_KEY_BYTES:
        msg = f"has a token of less than {MIN_KEY_BYTES} bytes: `openssl rand -hex 32` makes one"
        raise ValueError(msg)
    if producers is not None and name not in producers:
        msg = "names a producer that producers_file does not name"
        raise ValueError(msg)
    return name, token


@asynccontextmanager
async def serving(settings: Settings, producers: Producers, bound: socket.socket) -> AsyncIterator[asyncio.Task[None]]:
    """A gateway that serves on a socket until the block ends; the task that looks at the brokers, which never ends."""
    brokers = Brokers(settings)
    runner = Runner(application(settings, Posts(settings, producers, brokers), brokers), _SHUTDOWN_SECONDS)
    context = server_context(settings.gateway)
    await runner.setup()
    watch = asyncio.create_task(brokers.watch())
    try:
        await web.SockSite(runner, bound, ssl_context=context).start()
        yield watch
    finally:
        await runner.cleanup()
        watch.cancel()
        await asyncio.wait([watch])
        await brokers.end()


async def run_gateway(settings: Settings, producers: Producers, bound: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM; requests that came before it are answered."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with serving(settings, producers, bound) as watch:
        log.info(
            "gateway_serves", http=url_of(settings.http.host, port_of(bound)), tls=bool(settings.gateway.cert_file)
        )
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait([stopped, watch], return_when=asyncio.FIRST_COMPLETED)
        if watch.done():
            watch.result()
    log.info("gateway_stopped")
