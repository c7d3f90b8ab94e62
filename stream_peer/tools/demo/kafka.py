"""What the demo does with the broker: sends events, reads outputs, asks how far the worker is."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Literal

import aiohttp
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from prometheus_client.parser import text_string_to_metric_families

from stream_peer.errors import StreamPeerError
from stream_peer.events import topics
from stream_peer.kafka.client.reading import kafka_errors, partitions_of
from stream_peer.kafka.client.security import ISOLATION, aiokafka_options
from stream_peer.kafka.client.topic_ids import cluster_ids
from stream_peer.log.signatures import Signatures
from stream_peer.log.stage import Output
from stream_peer.settings.process import Settings, read_signing_keys
from stream_peer.tools.demo.feed import FeedEvent
from stream_peer.tools.replay.history import ReplayHistory

_POLL_MILLISECONDS = 200
_PAUSE_SECONDS = 0.05
_INPUTS: tuple[tuple[Literal["question", "feed"], str], ...] = (
    ("feed", topics.CONTROL_EVENTS),
    ("question", topics.FORECAST_EVENTS),
    ("feed", topics.FEED_LOG),
)


def keys_for(settings: Settings) -> tuple[bytes, ...]:
    """The keys with which the workers of these settings sign; none if the settings name no file."""
    return read_signing_keys(settings) or ((b"",) if settings.broker == "embedded" else ())


class DemoKafka:
    """A producer, a reader of all outputs, and onlookers of the worker's groups. Made by ``connected``."""

    def __init__(self, settings: Settings, places: Mapping[str, list[TopicPartition]]) -> None:
        self.settings = settings
        self.places = places
        self.history = ReplayHistory()
        self._producer: Any = None
        self._outputs: Any = None
        self._groups: dict[str, Any] = {}
        self._logical = {settings.topic(name): name for name in topics.OUTPUTS}

    async def start(self, stack: AsyncExitStack) -> None:
        """Connect all clients; the stack closes them."""
        options = {"bootstrap_servers": self.settings.bootstrap, **aiokafka_options(self.settings.security)}
        self._producer = await stack.enter_async_context(AIOKafkaProducer(linger_ms=20, **options))
        quiet = {"enable_auto_commit": False, "fetch_max_wait_ms": _POLL_MILLISECONDS, **options}
        self._outputs = await stack.enter_async_context(
            AIOKafkaConsumer(auto_offset_reset="earliest", isolation_level=ISOLATION, **quiet)
        )
        self._outputs.assign([place for name in topics.OUTPUTS for place in self.places[name]])
        for stage in ("question", "feed"):
            group = self.settings.app_id("question" if stage == "question" else "feed")
            onlooker = await stack.enter_async_context(
                AIOKafkaConsumer(group_id=group, isolation_level=ISOLATION, **quiet)
            )
            places = [place for of, name in _INPUTS if of == stage for place in self.places[name]]
            onlooker.assign(places)
            onlooker.pause(*places)  # it asks for offsets only; a waiting fetch would hold up its answers
            self._groups[stage] = onlooker

    async def send(self, events: Iterable[FeedEvent]) -> None:
        """Produce events to the partitions of their questions."""
        topic = self.settings.topic(topics.FORECAST_EVENTS)
        count = len(self.places[topics.FORECAST_EVENTS])
        for event in events:
            await self._producer.send(topic, event.value, event.key, event.partition(count))

    async def tell_time(self, tick: bytes) -> bool:
        """Produce a tick to every partition of forecast-events, after everything before it; False: no key signs it."""
        keys = keys_for(self.settings)
        if not keys:
            return False
        await self._producer.flush()
        topic = self.settings.topic(topics.FORECAST_EVENTS)
        ids = await cluster_ids(self._producer.client, [topic])
        signatures = Signatures(keys, ids.cluster, ids.topics.get(topic, ""))
        for place in self.places[topics.FORECAST_EVENTS]:
            signed = signatures.signed(Output(topics.FORECAST_EVENTS, b"tick", tick, 0, place.partition))
            await self._producer.send(topic, tick, signed.key, place.partition, headers=list(signed.headers))
        await self._producer.flush()
        return True

    async def read(self) -> int:
        """Take up what is new on the output topics; how many records there were."""
        found = await self._outputs.getmany(timeout_ms=_POLL_MILLISECONDS)
        for place, records in found.items():
            for record in records:
                self.history.add(self._logical[place.topic], record.value, record.headers, record.key)
        return sum(map(len, found.values()))

    async def is_configured(self) -> bool:
        """Whether the settings reached every partition of both logs."""
        places = [*self.places[topics.FORECAST_EVENTS], *self.places[topics.FEED_LOG]]
        ends: dict[TopicPartition, int] = await self._groups["feed"].end_offsets(places)
        return min(ends.values()) > 0

    async def is_processed(self) -> bool:
        """Whether the worker's groups cover their inputs to the end, and all outputs were read."""
        for stage, name in _INPUTS:
            onlooker = self._groups[stage]
            ends = await onlooker.end_offsets(self.places[name])
            for place, end in ends.items():
                if (await onlooker.committed(place) or 0) < end:
                    return False
        places = [place for name in topics.OUTPUTS for place in self.places[name]]
        ends = await self._groups["feed"].end_offsets(places)
        return all([await self._outputs.position(place) >= end for place, end in ends.items()])

    async def counts(self) -> dict[str, int]:
        """Records on each topic."""
        onlooker = self._groups["feed"]
        ends = await onlooker.end_offsets([place for places in self.places.values() for place in places])
        starts = await onlooker.beginning_offsets(list(ends))
        return {
            name: sum(ends[place] - starts[place] for place in places) for name, places in sorted(self.places.items())
        }


async def remove_topics(settings: Settings, names: list[str]) -> None:
    """Delete topics that the demo made."""
    admin = AIOKafkaAdminClient(bootstrap_servers=settings.bootstrap, **aiokafka_options(settings.security))
    with kafka_errors(settings):
        try:
            await admin.start()
            await admin.delete_topics(names)
        finally:
            await admin.close()


@asynccontextmanager
async def connected(settings: Settings) -> AsyncIterator[DemoKafka]:
    """Clients of the demo, connected for as long as the block runs.

    Raises
    ------
    BrokerUnavailableError, NotAuthorisedError, TopicsError
        If the broker cannot be used.
    """
    places = {name: await partitions_of(settings, settings.topic(name)) for name in topics.ALL}
    with kafka_errors(settings):
        async with AsyncExitStack() as stack:
            kafka = DemoKafka(settings, places)
            await kafka.start(stack)
            yield kafka


async def until(condition: Callable[[], Any], seconds: float, what: str, meanwhile: Callable[[], None]) -> None:
    """Wait until an awaitable condition holds.

    Raises
    ------
    StreamPeerError
        If it does not in time; the message says what never came.
    """
    deadline = time.monotonic() + seconds
    while not await condition():
        if time.monotonic() > deadline:
            msg = f"{what} within {seconds:g} s"
            raise StreamPeerError(msg)
        meanwhile()
        await asyncio.sleep(_PAUSE_SECONDS)


async def scrape_lag(session: aiohttp.ClientSession, url: str) -> dict[str, int]:
    """Records that the worker has still to fold, by topic, from its own metrics; empty if it does not answer."""
    try:
        async with session.get(f"{url}/metrics") as response:
            text = await response.text()
    except (aiohttp.ClientError, TimeoutError):
        return {}
    lag: dict[str, int] = {}
    for family in text_string_to_metric_families(text):
        if family.name == "stream_peer_lag_records":
            for sample in family.samples:
                topic = sample.labels["topic"]
                lag[topic] = lag.get(topic, 0) + int(sample.value)
    return lag
