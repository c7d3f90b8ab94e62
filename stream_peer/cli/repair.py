"""``stream-peer repair``: lets partitions go on whose state cannot be trusted."""

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from stream_peer.cli.options import Invocation, settings_options
from stream_peer.settings.process import Settings, required_signing_keys

if TYPE_CHECKING:
    from stream_peer.log.signatures import Signatures
    from stream_peer.questions.repair import Controls


@click.command(name="repair")
@click.argument("partitions", nargs=-1, type=click.IntRange(min=0), metavar="[PARTITION]...")
@click.option("--all", "everywhere", is_flag=True, help="Every partition of forecast-events.")
@settings_options()
def repair_command(invocation: Invocation, *, partitions: tuple[int, ...], everywhere: bool) -> None:
    """Repair PARTITIONs of forecast-events whose state cannot be trusted.

    A state from before the service signed its records was folded from headers that anybody could write; a forged one
    hides what comes later. A worker refuses such a state, and says which partition it is of. This reads control-events
    and tells the partition, signed, what stands there: the settings applied last, who is renamed or forgotten, which
    feeds were deleted. From that place on only what the service signs is believed, and whatever had been seen before
    counts no more. A partition whose state can be trusted is told the same, and loses nothing.

    Do not run it while a feed is imported: the partition would not take up parts that are still on their way.

    \b
    stream-peer repair 3 --config stream-peer.yaml
    stream-peer repair --all --config stream-peer.yaml
    """  # noqa: D301
    if everywhere is bool(partitions):
        msg = "name the partitions, or say --all"
        raise click.UsageError(msg)
    asyncio.run(_repair(invocation.settings, required_signing_keys(invocation.settings), partitions))


class _Input(NamedTuple):
    """``forecast-events``, and what signs records for it; ``controls``: the incarnation of ``control-events``."""

    topic: str
    incarnation: int
    controls: int
    signatures: "Signatures"


async def _repair(settings: Settings, keys: Sequence[bytes], partitions: Sequence[int]) -> None:
    from aiokafka import AIOKafkaProducer

    from stream_peer.events import topics
    from stream_peer.kafka.client.control_events import all_controls
    from stream_peer.kafka.client.preflight import preflight_async
    from stream_peer.kafka.client.reading import kafka_errors, partitions_of
    from stream_peer.kafka.client.security import aiokafka_options

    await preflight_async(settings)
    there = await partitions_of(settings, settings.topic(topics.FORECAST_EVENTS))
    if unknown := set(partitions).difference(range(len(there))):
        msg = f"{there[0].topic} has the partitions 0 to {len(there) - 1}, not {min(unknown)}"
        raise click.UsageError(msg)
    chosen = sorted(set(partitions)) or range(len(there))
    options = {"bootstrap_servers": settings.bootstrap, **aiokafka_options(settings.security)}
    controls = await all_controls(settings)
    with kafka_errors(settings):
        async with AIOKafkaProducer(acks="all", enable_idempotence=True, **options) as producer:
            into = await _input(settings, keys, producer.client)
            while True:
                for partition in chosen:
                    await _tell(settings, producer, into, partition, controls)
                written, controls = controls, await all_controls(settings)
                if controls.reached == written.reached:
                    return
                click.echo("A control was written meanwhile: once more.")


async def _input(settings: Settings, keys: Sequence[bytes], client: Any) -> _Input:
    from stream_peer.events import topics
    from stream_peer.kafka.client.topic_ids import cluster_ids
    from stream_peer.kafka.worker.recreated import incarnation_of
    from stream_peer.log.signatures import Signatures

    forecasts, controls = settings.topic(topics.FORECAST_EVENTS), settings.topic(topics.CONTROL_EVENTS)
    ids = await cluster_ids(client, [forecasts, controls])
    topic_id = ids.topics.get(forecasts, "")
    signatures = Signatures(keys, ids.cluster, topic_id)
    return _Input(forecasts, incarnation_of(topic_id), incarnation_of(ids.topics.get(controls, "")), signatures)


async def _tell(settings: Settings, producer: Any, into: _Input, partition: int, controls: "Controls") -> None:
    from stream_peer.kafka.client.log_ends import high_watermarks
    from stream_peer.kafka.client.reading import onlooker
    from stream_peer.questions.repair import RepairTarget

    async with onlooker(settings) as consumer:
        # Above every former marker, whether a transaction holds back what lies before it or not:
        (end,) = (await high_watermarks(consumer, [_place(into.topic, partition)])).values()
    place = RepairTarget(partition, into.incarnation, end)
    offset = -1
    for marker in controls.markers(place, into.controls, into.signatures, time.time_ns() // 1_000_000):
        headers = list(marker.headers)
        sent = await producer.send_and_wait(into.topic, marker.value, marker.key, partition, headers=headers)
        offset = sent.offset
    click.echo(f"{into.topic}-{partition}: signatures count from offset {offset} on ({controls}).")


def _place(topic: str, partition: int) -> Any:
    from stream_peer.kafka.client.reading import TopicPartition

    return TopicPartition(topic, partition)
