"""What the demo does with the broker: sends events, reads outputs, asks how far the worker is."""

import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Literal

from prometheus_client.parser import text_string_to_metric_families

from stream_peer.events import topics
from stream_peer.kafka.client.admin import KafkaAdmin
from stream_peer.kafka.client.read import TopicPartition, groupless_reader, partitions_of, poll
from stream_peer.kafka.client.write import producer
from stream_peer.log.signatures import Signatures
from stream_peer.log.stage import Output
from stream_peer.settings.process import Settings, read_signing_keys
from stream_peer.tools.demo.feed import FeedEvent
from stream_peer.tools.replay.history import ReplayHistory

Stage = Literal["question", "feed"]

_POLL_MILLISECONDS = 200
_LINGER_MILLISECONDS = 20
_SCRAPE_SECONDS = 5.0
_INPUTS: tuple[tuple[Stage, str], ...] = (
    ("feed", topics.CONTROL_EVENTS),
    ("question", topics.FORECAST_EVENTS),
    ("feed", topics.FEED_LOG),
)


def keys_for(settings: Settings) -> tuple[bytes, ...]:
    """The keys with which the workers of these settings sign; none if the settings name no file."""
    return read_signing_keys(settings) or ((b"",) if settings.broker == "embedded" else ())


class DemoKafka:
    """A producer, a reader of all outputs, and readers of the offsets of the worker's groups. Made by ``connected``."""

    def __init__(self, settings: Settings, stack: ExitStack) -> None:
        self.settings = settings
        self.history = ReplayHistory()
        quiet = {"fetch_max_wait_ms": _POLL_MILLISECONDS}
        self._outputs = stack.enter_context(groupless_reader(settings, **quiet))
        self._groups: dict[Stage, Any] = {
            "question": stack.enter_context(groupless_reader(settings, group_id=settings.app_id("question"))),
            "feed": stack.enter_context(groupless_reader(settings, group_id=settings.app_id("feed"))),
        }
        self._producer = stack.enter_context(producer(settings, linger_milliseconds=_LINGER_MILLISECONDS))
        self._logical = {settings.topic(name): name for name in topics.OUTPUTS}
        self.places = {name: partitions_of(self._outputs, settings.topic(name)) for name in topics.ALL}
        read = [place for name in topics.OUTPUTS for place in self.places[name]]
        self._outputs.assign(read)
        for place, start in self._outputs.beginning_offsets(read).items():
            self._outputs.seek(place, start)

    def send(self, events: Iterable[FeedEvent]) -> None:
        """Produce events to the partitions of their questions."""
        topic = self.settings.topic(topics.FORECAST_EVENTS)
        count = len(self.places[topics.FORECAST_EVENTS])
        for event in events:
            self._producer.send(topic, event.value, key=event.key, partition=event.partition(count))

    def tell_time(self, tick: bytes) -> bool:
        """Produce a tick to every partition of forecast-events, after everything before it; False: no key signs it."""
        keys = keys_for(self.settings)
        if not keys:
            return False
        self._producer.flush()
        topic = self.settings.topic(topics.FORECAST_EVENTS)
        ids = KafkaAdmin(self.settings).ids([topic])
        signatures = Signatures(keys, ids.cluster, ids.topics.get(topic, ""))
        for place in self.places[topics.FORECAST_EVENTS]:
            signed = signatures.signed(Output(topics.FORECAST_EVENTS, b"tick", tick, 0, place.partition))
            headers = list(signed.headers)
            self._producer.send(topic, tick, key=signed.key, partition=place.partition, headers=headers)
        self._producer.flush()
        return True

    def read(self) -> int:
        """Take up what is new on the output topics; how many records there were."""
        found = poll(self._outputs, _POLL_MILLISECONDS)
        for place, records in found.items():
            for record in records:
                self.history.add(self._logical[place.topic], record.value, record.headers, record.key)
        return sum(map(len, found.values()))

    def is_configured(self) -> bool:
        """Whether the settings reached every partition of both logs."""
        places = [*self.places[topics.FORECAST_EVENTS], *self.places[topics.FEED_LOG]]
        ends: dict[TopicPartition, int] = self._groups["feed"].end_offsets(places)
        return min(ends.values()) > 0

    def is_processed(self) -> bool:
        """Whether the worker's groups cover their inputs to the end, and all outputs were read."""
        for stage, name in _INPUTS:
            group = self._groups[stage]
            for place, end in group.end_offsets(self.places[name]).items():
                if (group.committed(place) or 0) < end:
                    return False
        places = [place for name in topics.OUTPUTS for place in self.places[name]]
        ends = self._groups["feed"].end_offsets(places)
        return all(self._outputs.position(place) >= end for place, end in ends.items())

    def counts(self) -> dict[str, int]:
        """Records on each topic."""
        asked = self._groups["feed"]
        ends = asked.end_offsets([place for places in self.places.values() for place in places])
        starts = asked.beginning_offsets(list(ends))
        return {
            name: sum(ends[place] - starts[place] for place in places) for name, places in sorted(self.places.items())
        }


@contextmanager
def connected(settings: Settings) -> Iterator[DemoKafka]:
    """Clients of the demo, connected for as long as the block runs.

    Raises
    ------
    BrokerUnavailableError, NotAuthorisedError, TopicsError
        If the broker cannot be used.
    """
    with ExitStack() as stack:
        yield DemoKafka(settings, stack)


def scrape_lag(url: str) -> dict[str, int]:
    """Records that the worker has still to fold, by topic, from its own metrics; empty if it does not answer."""
    try:
        with urllib.request.urlopen(f"{url}/metrics", timeout=_SCRAPE_SECONDS) as response:  # noqa: S310 - our worker's
            text = response.read().decode()
    except OSError:
        return {}
    lag: dict[str, int] = {}
    for family in text_string_to_metric_families(text):
        if family.name == "stream_peer_lag_records":
            for sample in family.samples:
                topic = sample.labels["topic"]
                lag[topic] = lag.get(topic, 0) + int(sample.value)
    return lag
