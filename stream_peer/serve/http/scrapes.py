"""``/metrics``: a rendering that is at most a second old, so that no number of scrapes can hold up the event loop."""

import asyncio
import gzip
import time
from collections.abc import Callable, Iterator

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

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
            self._bodies[kind] = await asyncio.to_thread(_encoded, encode, self._read)
        return self._bodies[kind]


def _encoded(encode: Callable[..., bytes], read: _Read) -> tuple[bytes, bytes]:
    body = encode(read)
    return body, gzip.compress(body, _COMPRESSION, mtime=0)
