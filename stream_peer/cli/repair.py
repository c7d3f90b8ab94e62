"""``stream-peer repair``: lets partitions go on whose state cannot be trusted."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from stream_peer.cli.options import Invocation, settings_options
from stream_peer.settings.process import Settings, required_signing_keys

if TYPE_CHECKING:
    from stream_peer.kafka.client.admin import KafkaAdmin
    from stream_peer.kafka.client.read import TopicPartition
    from stream_peer.log.signatures import Signatures
    from stream_peer.questions.repair import Controls


@click.command(name="repair")
@click.argument("partitions", nargs=-1, type=click.IntRange(min=0), metavar="[PARTITION]...")
@click.option("--all", "everywhere", is_flag=True, help="Every partition of forecast-events.")
@settings_options()
def repair_command(invocation: Invocation, *, partitions: tuple[int, ...], everywhere: bool) -> None:
    """Repair PARTITIONs of forecast-events whose state cannot be trusted.

    A state from before the service signed its records follows from headers that anybody could write; a forged one
    hides later records. A worker refuses such a state, and names its partition. This command reads control-events and
    writes their content to the partition, signed: the settings applied last, renamed and erased experts, deleted
    feeds. After these records only signed headers count. A partition whose state can be trusted loses nothing.

    Do not run it during an import of a feed: the partition would drop parts that arrive later.

    \b
    stream-peer repair 3 --config stream-peer.yaml
    stream-peer repair --all --config stream-peer.yaml
    """  # noqa: D301
    if everywhere is bool(partitions):
        msg = "name the partitions, or say --all"
        raise click.UsageError(msg)
    _repair(invocation.settings, required_signing_keys(invocation.settings), partitions)


class _Input(NamedTuple):
    """``forecast-events``, and what signs records for it; ``controls``: the generation of ``control-events``."""

    generation: int
    controls: int
    signatures: "Signatures"


def _repair(settings: Settings, keys: Sequence[bytes], partitions: Sequence[int]) -> None:
    from stream_peer.events import topics
    from stream_peer.kafka.client.admin import KafkaAdmin
    from stream_peer.kafka.client.control_events import all_controls
    from stream_peer.kafka.client.read import groupless_reader, partitions_of
    from stream_peer.kafka.client.write import producer

    with groupless_reader(settings) as consumer:
        there = partitions_of(consumer, settings.topic(topics.FORECAST_EVENTS))
    if unknown := set(partitions).difference(range(len(there))):
        msg = f"{there[0].topic} has the partitions 0 to {len(there) - 1}, not {min(unknown)}"
        raise click.UsageError(msg)
    chosen = sorted(set(partitions)) or range(len(there))
    controls = all_controls(settings)
    admin = KafkaAdmin(settings)
    into = _input(settings, keys, admin)
    with producer(settings, idempotent=True) as to:
        while True:
            # Above every former marker, whether a transaction holds back what lies before it or not:
            for place, end in admin.high_watermarks([there[partition] for partition in chosen]).items():
                _tell(to, place, end, into, controls)
            written, controls = controls, all_controls(settings)
            if controls.reached == written.reached:
                return
            click.echo("A control was written meanwhile: once more.")


def _input(settings: Settings, keys: Sequence[bytes], admin: "KafkaAdmin") -> _Input:
    from stream_peer.events import topics
    from stream_peer.kafka.worker.recreated import topic_generation
    from stream_peer.log.signatures import Signatures

    forecasts, controls = settings.topic(topics.FORECAST_EVENTS), settings.topic(topics.CONTROL_EVENTS)
    ids = admin.ids([forecasts, controls])
    topic_id = ids.topics.get(forecasts, "")
    signatures = Signatures(keys, ids.cluster, topic_id)
    return _Input(topic_generation(topic_id), topic_generation(ids.topics.get(controls, "")), signatures)


def _tell(to: Any, place: "TopicPartition", end: int, into: _Input, controls: "Controls") -> None:
    from stream_peer.kafka.client.write import write
    from stream_peer.questions.repair import RepairTarget

    offset = -1
    markers = controls.markers(
        RepairTarget(place.partition, into.generation, end), into.controls, into.signatures, time.time_ns() // 1_000_000
    )
    for marker in markers:
        offset = write(to, place, marker.key, marker.value, marker.headers)
    click.echo(f"{place.topic}-{place.partition}: signatures count from offset {offset} on ({controls}).")
