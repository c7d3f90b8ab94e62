"""``/healthz/{live,ready,startup}`` and ``/version``: how this worker is."""

import platform
from typing import Protocol

import msgspec
from aiohttp import web

from stream_peer import __version__
from stream_peer.serve.http.answers import Probe, Version
from stream_peer.serve.metrics.work import HealthProbe

_NOT_KEPT = {"Cache-Control": "no-store"}
_encode = msgspec.json.Encoder().encode


class HealthAnswers(HealthProbe, Protocol):
    """The state of the worker, and whether it has started: each answer is (yes, why not)."""

    def started(self) -> tuple[bool, str]:
        """Whether it was ready once."""


class Probes:
    """Answers probes."""

    def __init__(self, health: HealthAnswers) -> None:
        self._health = health

    async def live(self, _request: web.Request) -> web.Response:
        """Answer ``/healthz/live``."""
        return _probe(*self._health.live())

    async def ready(self, _request: web.Request) -> web.Response:
        """Answer ``/healthz/ready``."""
        return _probe(*self._health.ready())

    async def startup(self, _request: web.Request) -> web.Response:
        """Answer ``/healthz/startup``."""
        return _probe(*self._health.started())

    async def version(self, _request: web.Request) -> web.Response:
        """Answer ``/version``."""
        return _json(Version(name="stream_peer", version=__version__, python=platform.python_version()))


def _probe(yes: bool, reason: str) -> web.Response:  # noqa: FBT001 - an unpacked answer
    told = Probe(status="ok" if yes else "unavailable", reason=reason or msgspec.UNSET)
    return _json(told, 200 if yes else 503)


def _json(told: msgspec.Struct, status: int = 200) -> web.Response:
    return web.Response(status=status, body=_encode(told), content_type="application/json", headers=_NOT_KEPT)
