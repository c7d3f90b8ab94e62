"""Scrapes share a reading of the metrics, so that no number of them takes the event loop away."""

import asyncio
import gzip
from collections.abc import Iterator

import aiohttp
import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from yarl import URL

from stream_peer.serve.http.probes import FRESH_SECONDS, Scrapes
from stream_peer.serve.http.server import Runner
from tests.unit.clock import Clock


class Counted(Collector):
    """Metrics that count how often they are read."""

    def __init__(self) -> None:
        self.readings = 0

    def collect(self) -> Iterator[Metric]:
        self.readings += 1
        yield GaugeMetricFamily("readings", "So far.", value=self.readings)

    def describe(self) -> Iterator[Metric]:
        return iter(())


class Scraped:
    """A server of scrapes, the clock that it goes by, and how often its metrics were read."""

    def __init__(self) -> None:
        self.metrics, self.clock, registry = Counted(), Clock(), CollectorRegistry()
        registry.register(self.metrics)
        application = web.Application()
        application.router.add_get("/metrics", Scrapes(registry, self.clock).metrics)
        self._runner = Runner(application, 1.0)

    async def __aenter__(self) -> "Scraped":
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = URL.build(scheme="http", host="127.0.0.1", port=self._runner.addresses[0][1], path="/metrics")
        self._session = aiohttp.ClientSession(auto_decompress=False)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()
        await self._runner.cleanup()

    async def get(self, **headers: str) -> tuple[bytes, str]:
        async with self._session.get(self.url, headers=headers) as response:
            body = await response.read()
            packed = response.headers.get("Content-Encoding") == "gzip"
            return gzip.decompress(body) if packed else body, response.headers["Content-Type"]


async def test_any_number_of_scrapes_in_a_second_reads_the_metrics_once() -> None:
    async with Scraped() as scraped:
        bodies = await asyncio.gather(*[scraped.get() for _ in range(200)])

    assert scraped.metrics.readings == 1
    assert len({body for body, _ in bodies}) == 1


async def test_a_scrape_after_a_second_reads_them_again() -> None:
    async with Scraped() as scraped:
        before, _ = await scraped.get()
        scraped.clock.at += FRESH_SECONDS
        after, _ = await scraped.get()

    assert (b"readings 1.0" in before, b"readings 2.0" in after) == (True, True)


@pytest.mark.parametrize("packing", ["gzip", "identity"])
async def test_formats_and_compressions_come_from_one_reading(packing: str) -> None:
    headers = {"Accept-Encoding": packing}
    async with Scraped() as scraped:
        text, plain = await scraped.get(**headers)
        openmetrics, kind = await scraped.get(Accept="application/openmetrics-text;version=1.0.0", **headers)

    assert (plain.partition(";")[0], kind.partition(";")[0]) == ("text/plain", "application/openmetrics-text")
    assert openmetrics.endswith(b"# EOF\n")
    assert b"readings 1.0" in text
    assert b"readings 1.0" in openmetrics
    assert scraped.metrics.readings == 1
