"""The worker's HTTP server: its address, a bounded number of connections, and the routes with those who answer them.

It binds the loopback address unless told otherwise. What is wrong with a request before it is one is a problem document
too.
"""

import asyncio
import resource
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

import mode
import msgspec
import structlog
from aiohttp import web
from aiohttp.http_exceptions import LineTooLong

from stream_peer.errors import SettingFault, SettingsError
from stream_peer.log.owners import Owners
from stream_peer.serve.http.explain import ExplainAnswers
from stream_peer.serve.http.feeds import FeedAnswers, Following, OwnedAnswers, SenderAnswers
from stream_peer.serve.http.middlewares import (
    HEADERS,
    TokenFile,
    add_headers,
    admit,
    answer_to,
    check_size,
    invite_nothing,
    limit_time,
    of_http_exception,
    tell_problems,
)
from stream_peer.serve.http.page import About, StatusPage
from stream_peer.serve.http.probes import EarlyProbes, HealthAnswers, Probes, Scrapes
from stream_peer.serve.http.problems import problem
from stream_peer.serve.http.routes import ROUTES, Route, openapi
from stream_peer.serve.metrics import Metrics
from stream_peer.settings.process import Http
from stream_peer.settings.process.checks import host_and_port

log = structlog.get_logger(__name__)

_LIMITS: Mapping[str, Any] = {
    "max_line_size": 8_190,  # of the request line: an id has at most 256 bytes, three times as many characters
    "max_field_size": 8_190,
    "max_headers": 64,
    "keepalive_timeout": 75.0,  # also for a request that does not come to its end
    "lingering_time": 0.5,  # of reading a body that nobody wants
    "auto_decompress": False,  # a few bytes can be many once they are unpacked, and nobody wants them packed
    "handler_cancellation": True,  # a client that closes its connection ends what is computed for it
}

MOST_CONNECTIONS = 256
"""At once. Each takes a file descriptor, and the brokers' clients need some as well: of 1,024 on many machines."""
_QUEUE = 128  # connections that wait to be taken up
_OF_CLIENTS = 48  # file descriptors that the brokers' clients, the log and the event loop take
MOST_WAITING = 8
"""Requests of a connection that wait for the answer to the one before. No ordinary client sends any ahead."""
TAKING_SECONDS = 30.0
"""That a client has to take an answer, which is kept in memory for so long."""


class Connection(web.RequestHandler):
    """One connection. aiohttp calls ``handle_error`` for what is no request, and for errors outside of all handlers."""

    __slots__ = ("_wire",)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, in the place of another one if there are too many."""
        self._wire = cast(asyncio.Transport, transport)
        super().connection_made(transport)
        make_room(self._manager)

    def data_received(self, data: bytes) -> None:
        """Read requests; end a connection that sends too many ahead, which would keep the event loop busy."""
        super().data_received(data)
        if len(self._messages) > MOST_WAITING:
            log.debug("http_too_many_requests_ahead", waiting=len(self._messages))
            self.abort()

    @property
    def is_idle(self) -> bool:
        """Whether it has no request to answer."""
        return not self._request_in_progress

    @property
    def is_ending(self) -> bool:
        """Whether it is closed already, but for what the event loop has still to do."""
        return self._wire.is_closing()

    def abort(self) -> None:
        """End at once, whatever was not taken yet: a mere close would wait for a client that reads nothing."""
        self._wire.abort()

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send an answer to a client who takes it."""
        try:
            async with asyncio.timeout(TAKING_SECONDS):
                return await super().finish_response(request, resp, start_time)
        except TimeoutError:
            self.abort()
            return resp, True

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """Say what is wrong, and close."""
        if request.writer.output_size > 0:
            msg = "an answer was begun already"
            raise ConnectionError(msg)
        if isinstance(exc, LineTooLong):
            told = problem(431, f"no line of a request may be longer than {_LIMITS['max_line_size']} bytes")
        elif status == 400:
            log.debug("http_not_understood", reason=message)
            told = problem(400, "this is no request that can be understood")
        else:
            log.error("http_failed", path=request.path, reason=repr(exc), exc_info=exc)
            told = problem(status, "the worker failed to answer; its log says why")
        for name, value in HEADERS.items():
            told.headers.setdefault(name, value)
        told.force_close()
        return told


def most_connections() -> int:
    """How many are held: where a process may open few files, fewer, so that there is always one for a probe."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MOST_CONNECTIONS if limit < 0 else min(MOST_CONNECTIONS, max(2, (limit - _OF_CLIENTS) // 2))


def make_room(server: Any) -> None:
    """End the oldest of too many connections, if it can be an idle one, never the newest: a probe always gets in."""
    opened = [one for one in server.connections if not one.is_ending]
    if len(opened) > most_connections():
        log.debug("http_connection_given_up", connections=len(opened))
        next((one for one in opened[:-1] if one.is_idle), opened[0]).abort()


class _Server(web.Server):
    """Makes connections of ours, and tells problems that come before all middlewares, such as an odd Expect."""

    @classmethod
    def of(cls, made: web.Server) -> "_Server":
        """A server of ours that does what another would."""
        handle = made.request_handler

        async def told(request: Any) -> web.StreamResponse:
            try:
                return await handle(request)
            except web.HTTPException as error:
                return of_http_exception(error, request.rel_url)

        limits = made._kwargs  # noqa: SLF001 - aiohttp leaves no other way to connections of one's own
        return cls(
            told,
            request_factory=made.request_factory,
            handler_cancellation=made.handler_cancellation,
            loop=asyncio.get_running_loop(),
            **limits,
        )

    def __call__(self) -> web.RequestHandler:
        return Connection(self, loop=self._loop, **self._kwargs)


class Runner(web.AppRunner):
    """Runs an application on connections of ours, within the limits of this module.

    Parameters
    ----------
    application : Application
    shutdown_seconds : float
        That requests have to end when the worker does.
    """

    __slots__ = ()

    def __init__(self, application: web.Application, shutdown_seconds: float) -> None:
        super().__init__(application, access_log=None, shutdown_timeout=shutdown_seconds, **_LIMITS)

    async def _make_server(self) -> web.Server:
        return _Server.of(await super()._make_server())


_SHUTDOWN_SECONDS = 2.0

_POLL_SECONDS = 0.2


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Sources(NamedTuple):
    """Whom the server asks.

    Attributes
    ----------
    metrics : Metrics
        What ``/metrics`` shows.
    health : HealthAnswers
        Answers of the probes.
    following : Following
        What is published of feeds.
    owners : Owners
        Who owns them.
    explanations : ExplainAnswers
        Explains weights.
    about : About
        What the status page says of this worker.
    """

    metrics: Metrics
    health: HealthAnswers
    following: Following
    owners: Owners
    explanations: ExplainAnswers
    about: About = About()

    def handlers(self) -> Mapping[str, Handler]:
        """Who handles which route, by its name in the table."""
        probes, feeds, owned = Probes(self.health), FeedAnswers(self.following), OwnedAnswers(self.owners)
        return {
            "statusPage": StatusPage(self.about, self.following, self.health, self.metrics).page,
            "metrics": Scrapes(self.metrics.registry).metrics,
            "live": probes.live,
            "ready": probes.ready,
            "startup": probes.startup,
            "version": probes.version,
            "openapi": _document(ROUTES),
            "senders": SenderAnswers(self.metrics.senders).senders,
            "feeds": feeds.feeds,
            "feed": feeds.feed,
            "expert": feeds.expert,
            "explain": self.explanations.explain,
            "question": owned.question,
            "groups": owned.groups,
            "group": owned.group,
        }


class HttpServer(mode.Service):  # type: ignore[misc] # mode has no types
    """Serves the routes of the table while the worker runs.

    Parameters
    ----------
    settings : Http
        Address and port to bind, unless ``bound`` is given; port 0 takes any free one. Who may ask.
    sources : Sources
        Whom it asks.
    bound : socket or None
        To listen on: a caller that needs the port earlier binds it earlier.
    early : EarlyProbes or None
        Answers on that socket until the server starts.
    """

    def __init__(
        self,
        settings: Http,
        sources: Sources,
        bound: socket.socket | None = None,
        early: EarlyProbes | None = None,
    ) -> None:
        super().__init__()
        self._early = early
        self._settings = settings
        self._sources = sources
        self._bound = bound
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """Where it listens: the bound port once there is one, the configured one before."""
        return url_of(self._settings.host, self._settings.port if self._bound is None else port_of(self._bound))

    async def on_start(self) -> None:
        """Bind and serve.

        Raises
        ------
        SettingsError
            If the address cannot be bound.
        """
        runner = Runner(self.application(), _SHUTDOWN_SECONDS)
        await runner.setup()
        self._runner = runner
        try:
            if self._bound is None:
                self._bound = bind(self._settings)
            if self._early is not None:
                self._early.end()
            at_once = max(8, min(_QUEUE, most_connections()))  # taken up in a turn: a descriptor each
            await web.SockSite(runner, self._bound, backlog=at_once).start()
            self._bound.listen(_QUEUE)
        except OSError as error:
            message = f"cannot listen on {self._settings.host}:{self._settings.port}: {error.strerror or error}"
            raise SettingsError([SettingFault("http", "in force", message)]) from error

    async def on_stop(self) -> None:
        """Answer what was asked and close."""
        if self._runner is not None:
            await self._runner.cleanup()

    def application(self) -> web.Application:
        """The routes, and what all of them pass."""
        token = self._settings.token_file
        seconds = {route.path: route.seconds for route in ROUTES}
        gate = [] if token is None else [admit(TokenFile(token))]
        passed = [tell_problems, answer_to(names_of(self._settings)), *gate, check_size, limit_time(seconds)]
        application = web.Application(middlewares=passed)
        application.on_response_prepare.append(add_headers)
        application.on_shutdown.append(self._sources.explanations.end)
        handlers = self._sources.handlers()
        for route in ROUTES:
            application.router.add_get(route.pattern, handlers[route.name], expect_handler=invite_nothing)
        return application


class Announcer(mode.Service):  # type: ignore[misc] # mode is skipped by the type checker
    """Logs ``worker_ready`` once, with where metrics and health are.

    Parameters
    ----------
    ready : callable
        Whether the worker is ready, and if not, why.
    address : callable
        Where the HTTP server listens, asked when the worker is ready.
    """

    def __init__(self, ready: Callable[[], tuple[bool, str]], address: Callable[[], str]) -> None:
        super().__init__()
        self._ready = ready
        self._address = address

    async def on_started(self) -> None:
        """Watch from the moment that everything was started."""
        self.add_future(self._announce())

    async def _announce(self) -> None:
        async for _ in self.itertimer(_POLL_SECONDS):
            if self._ready()[0]:
                log.info("worker_ready", http=self._address())
                return


def names_of(settings: Http) -> frozenset[str]:
    """The names that requests may ask for besides addresses and ``localhost``.

    Examples
    --------
    >>> sorted(names_of(Http(advertise="http://worker-0.example:8080", hosts="forecasts.example, ")))
    ['127.0.0.1', 'forecasts.example', 'worker-0.example']
    """
    named = (name.strip().lower() for name in settings.hosts.split(","))
    advertised = "" if settings.advertise is None else urlsplit(settings.advertise).hostname or ""
    return frozenset(filter(None, (*named, advertised, settings.host.lower())))


def bind(settings: Http) -> socket.socket:
    """A socket bound to the address; nobody can connect to it before it listens.

    Raises
    ------
    OSError
        If it cannot be bound.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    bound = socket.socket(family)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind((settings.host, settings.port))
    except OSError:
        bound.close()
        raise
    except (TypeError, ValueError):  # text that no resolver can be asked about
        bound.close()
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known") from None
    return bound


def port_of(bound: socket.socket) -> int:
    """The port of a socket."""
    return int(bound.getsockname()[1])


def url_of(host: str, port: int) -> str:
    """The URL of an address."""
    return f"http://{host_and_port(host, port)}"


def _document(routes: Sequence[Route]) -> Handler:
    body = msgspec.json.encode(openapi(routes))

    async def serve(_request: web.Request) -> web.Response:
        return web.Response(body=body, content_type="application/json", headers={"Cache-Control": "no-cache"})

    return serve
