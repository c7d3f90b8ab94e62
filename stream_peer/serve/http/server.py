"""The worker's HTTP server. Binds the loopback address unless told otherwise."""

import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

import mode
import msgspec
from aiohttp import web

from stream_peer.errors import SettingFault, SettingsError
from stream_peer.log.owners import Owners
from stream_peer.serve.http.connection import Runner
from stream_peer.serve.http.explain import ExplainAnswers
from stream_peer.serve.http.feeds import FeedAnswers, Following, SenderAnswers
from stream_peer.serve.http.middlewares import (
    add_headers,
    admit,
    answer_to,
    check_size,
    invite_nothing,
    limit_time,
    tell_problems,
)
from stream_peer.serve.http.openapi import openapi
from stream_peer.serve.http.page import About, StatusPage
from stream_peer.serve.http.probes import HealthAnswers, Probes
from stream_peer.serve.http.questions import QuestionAnswers
from stream_peer.serve.http.routes import ROUTES, Route
from stream_peer.serve.http.scrapes import Scrapes
from stream_peer.serve.http.token import Everybody, TokenFile
from stream_peer.serve.metrics import Metrics
from stream_peer.settings.process import Http
from stream_peer.settings.process.checks import host_and_port

_SHUTDOWN_SECONDS = 2.0

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
        probes, feeds = Probes(self.health), FeedAnswers(self.following)
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
            "question": QuestionAnswers(self.owners).question,
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
    """

    def __init__(self, settings: Http, sources: Sources, bound: socket.socket | None = None) -> None:
        super().__init__()
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
            await web.SockSite(runner, self._bound).start()
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
        gate = Everybody() if token is None else TokenFile(token)
        seconds = {route.path: route.seconds for route in ROUTES}
        passed = [tell_problems, answer_to(names_of(self._settings)), admit(gate), check_size, limit_time(seconds)]
        application = web.Application(middlewares=passed)
        application.on_response_prepare.append(add_headers)
        application.on_shutdown.append(self._sources.explanations.end)
        handlers = self._sources.handlers()
        for route in ROUTES:
            application.router.add_get(route.pattern, handlers[route.name], expect_handler=invite_nothing)
        return application


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
