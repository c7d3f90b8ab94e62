"""The worker's HTTP server: metrics, health and version. Binds the loopback address unless told otherwise."""

import platform
from typing import Protocol

import mode
from aiohttp import web
from prometheus_client.aiohttp import make_aiohttp_handler

from stream_peer import __version__
from stream_peer.adapters.prometheus import Metrics
from stream_peer.adapters.weight_story.http import WeightAnswers
from stream_peer.errors import SettingFault, SettingsError
from stream_peer.settings import Http

_SHUTDOWN_SECONDS = 2.0


class HealthAnswers(Protocol):
    """Whoever knows how the worker is: each answer is (yes, why not)."""

    def live(self) -> tuple[bool, str]:
        """Whether the worker makes progress. If not, restart it."""

    def ready(self) -> tuple[bool, str]:
        """Whether its partitions are assigned and recovered."""

    def started(self) -> tuple[bool, str]:
        """Whether it was ready once."""


class HttpServer(mode.Service):  # type: ignore[misc] # mode has no types
    """Serves ``/metrics``, ``/healthz/{live,ready,startup}``, ``/version`` and explanations while the worker runs.

    Parameters
    ----------
    settings : Http
        Address and port to bind; port 0 takes any free one.
    metrics : Metrics
        What ``/metrics`` shows.
    health : HealthAnswers
        What the probes are told.
    weights : WeightAnswers, optional
        Whoever explains weights; without it there is no such route.
    """

    def __init__(
        self, settings: Http, metrics: Metrics, health: HealthAnswers, weights: WeightAnswers | None = None
    ) -> None:
        super().__init__()
        self._weights = weights
        self._settings = settings
        self._metrics = metrics
        self._health = health
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """Where it listens: the bound port once it runs, the configured one before."""
        host, port = self._settings.host, self._settings.port
        if self._runner is not None and self._runner.addresses:
            port = self._runner.addresses[0][1]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    async def on_start(self) -> None:
        """Bind and serve.

        Raises
        ------
        SettingsError
            If the address cannot be bound.
        """
        runner = web.AppRunner(self.application(), access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS)
        await runner.setup()
        self._runner = runner
        try:
            await web.TCPSite(runner, self._settings.host, self._settings.port).start()
        except OSError as error:
            message = f"cannot listen on {self._settings.host}:{self._settings.port}: {error.strerror or error}"
            raise SettingsError([SettingFault("http", "in force", message)]) from error

    async def on_stop(self) -> None:
        """Answer what was asked and close."""
        if self._runner is not None:
            await self._runner.cleanup()

    def application(self) -> web.Application:
        """The routes."""
        application = web.Application()
        application.router.add_get("/metrics", make_aiohttp_handler(self._metrics.registry))
        application.router.add_get("/healthz/live", self._serve_live)
        application.router.add_get("/healthz/ready", self._serve_ready)
        application.router.add_get("/healthz/startup", self._serve_startup)
        application.router.add_get("/version", self._serve_version)
        if self._weights is not None:
            self._weights.add_to(application)
        return application

    async def _serve_live(self, _request: web.Request) -> web.Response:
        return _answer(*self._health.live())

    async def _serve_ready(self, _request: web.Request) -> web.Response:
        return _answer(*self._health.ready())

    async def _serve_startup(self, _request: web.Request) -> web.Response:
        return _answer(*self._health.started())

    async def _serve_version(self, _request: web.Request) -> web.Response:
        return web.json_response(
            {"name": "stream_peer", "version": __version__, "python": platform.python_version()},
            headers={"Cache-Control": "no-store"},
        )


def _answer(yes: bool, reason: str) -> web.Response:  # noqa: FBT001 - an unpacked answer
    body = {"status": "ok" if yes else "unavailable"} | ({"reason": reason} if reason else {})
    return web.json_response(body, status=200 if yes else 503, headers={"Cache-Control": "no-store"})
