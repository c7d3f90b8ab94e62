"""What machines ask of a worker: ``/healthz/{live,ready,startup}``, ``/version`` and ``/metrics``."""

import asyncio
import gzip
import platform
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Literal, Protocol, Self

import msgspec
from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from stream_peer import __version__
from stream_peer.serve.http.problems import json_answer
from stream_peer.serve.metrics.observer import HealthProbe


class Probe(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a probe; ``reason`` says why it is unavailable, else what the worker waits for."""

    status: Literal["ok", "unavailable"]
    reason: str | msgspec.UnsetType = msgspec.UNSET


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """Which release runs on which Python."""

    name: str
    version: str
    python: str


class HealthAnswers(HealthProbe, Protocol):
    """The state of the worker, and whether it has started: each answer is (yes, why not)."""

    def started(self) -> tuple[bool, str]:
        """Whether it has recovered its first assignment, or still waits for its first brokers."""


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
        return json_answer(Version(name="stream_peer", version=__version__, python=platform.python_version()))


_STARTING = "it waits for its brokers, or starts"


class _EarlyAnswer(BaseHTTPRequestHandler):
    timeout = 0.5  # one connection after the other is served: none may hold up the others
    server_version, sys_version = "stream-peer", ""

    def do_GET(self) -> None:
        """Answer probes; whatever else is asked has to come back."""
        yes = self.path in ("/healthz/live", "/healthz/startup")
        body = msgspec.json.encode(Probe(status="ok" if yes else "unavailable", reason=_STARTING))
        self.send_response(200 if yes else 503)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


class EarlyProbes:
    """Answers probes before the HTTP server starts: while the worker waits for its brokers, nothing else turns.

    It lives and has started, so that no orchestrator restarts it, and it is not ready.

    Parameters
    ----------
    bound : socket
        On which the HTTP server is to listen afterwards.
    """

    def __init__(self, bound: socket.socket) -> None:
        self.bound = bound
        self._server = HTTPServer(("", 0), _EarlyAnswer, bind_and_activate=False)
        self._server.socket.close()
        self._server.socket = bound
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        """Begin to answer."""
        self._server.server_activate()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End, if that was not done yet."""
        self.end()

    def end(self) -> None:
        """Answer nobody any more, and leave the socket as it is."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()


def _probe(yes: bool, reason: str) -> web.Response:  # noqa: FBT001 - an unpacked answer
    told = Probe(status="ok" if yes else "unavailable", reason=reason or msgspec.UNSET)
    return json_answer(told, 200 if yes else 503)


FRESH_SECONDS = 1.0
"""How old the metrics of an answer may be."""

_COMPRESSION = 1  # of 9: the text has long repeats, and more effort gains little


class _Read(Collector):
    """Metrics that were read already, in the form that encoders ask for."""

    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        """The metrics."""
        return iter(self._metrics)


class Scrapes:
    """Answers scrapes: reads the registry at most once a second, and encodes a reading once for each format.

    Reading touches the state of the engine, so it happens on the event loop; encoding and compression, which take
    longer, happen in a thread. One of them runs at a time: scrapes that come meanwhile wait for its result.

    Parameters
    ----------
    registry : CollectorRegistry
        What is read.
    clock : callable
        Seconds on a clock that does not step back.
    """

    def __init__(self, registry: CollectorRegistry, clock: Callable[[], float] = time.monotonic) -> None:
        self._registry = registry
        self._clock = clock
        self._turn = asyncio.Lock()
        self._read: _Read | None = None
        self._read_at = 0.0
        self._bodies: dict[str, tuple[bytes, bytes]] = {}

    async def metrics(self, request: web.Request) -> web.StreamResponse:
        """Answer ``/metrics``."""
        accepted = ",".join(request.headers.getall("Accept", []))
        try:
            encode, kind = choose_encoder(accepted)
        except TypeError:  # a version that is no number
            encode, kind = choose_encoder("")
        async with self._turn:
            plain, packed = await self._rendered(encode, kind)
        headers = {"Content-Type": kind, "Cache-Control": "no-store", "Vary": "Accept, Accept-Encoding"}
        if "gzip" in request.headers.get("Accept-Encoding", "").lower():
            return web.Response(body=packed, headers={**headers, "Content-Encoding": "gzip"})
        return web.Response(body=plain, headers=headers)

    async def _rendered(self, encode: Callable[..., bytes], kind: str) -> tuple[bytes, bytes]:
        """The body in a format, and the same compressed."""
        now = self._clock()
        if self._read is None or now - self._read_at >= FRESH_SECONDS:
            self._read, self._read_at = _Read(list(self._registry.collect())), now
            self._bodies = {}
        if kind not in self._bodies:
            self._bodies[kind] = await asyncio.to_thread(_rendered_bodies, encode, self._read)
        return self._bodies[kind]


def _rendered_bodies(encode: Callable[..., bytes], read: _Read) -> tuple[bytes, bytes]:
    body = encode(read)
    return body, gzip.compress(body, _COMPRESSION, mtime=0)
