"""A Faust app that folds topics in batches: what the question app and the feed app have in common."""

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import faust
from yarl import URL

from stream_peer.events.topics import FORECAST_EVENTS
from stream_peer.kafka.client.security import aiokafka_options
from stream_peer.kafka.worker.assignor import Assignor
from stream_peer.kafka.worker.consumer import BatchTransport
from stream_peer.kafka.worker.keeper import Keeper, StageInput
from stream_peer.kafka.worker.snapshots import Ownership
from stream_peer.kafka.worker.surroundings import Surroundings
from stream_peer.kafka.worker.table import BatchSchema, FoldTable
from stream_peer.settings.process import Security, Settings

_QUEUE_OF_BATCHES = 64
_FETCH_BYTES = 262_144  # of a partition: it bounds the memory of a worker that catches up; a larger record still comes
_RECOVERY_BATCHES = 4  # gathered before they are read; 1 means something else to Faust
_LEAST_REQUEST_SECONDS = 90.0


class StageApp(faust.App):
    """A Faust app with an ownership of its own; the consumer and the tables find it here."""

    ownership: Ownership
    observer: Any
    notices: Any
    gather: float
    start_at_end: bool

    def stage_name_of(self, changelog: str) -> str:
        """Which stage keeps its state in a changelog."""
        return self.ownership.stage_name_of(changelog)


class Table(NamedTuple):
    """The state of an app: the table's name, as it stands in the changelog's, and its partitions."""

    name: str
    partitions: int


def stage_app(
    app_id: str, settings: Settings, around: Surroundings, inputs: Iterable[StageInput], table: Table
) -> StageApp:
    """Make an app that folds ``inputs``, one agent each, and keeps its state in ``table``."""
    app = StageApp(app_id, **_options(app_id, settings, table.partitions))
    keepers = (Keeper(each, around, settings.on_recreated) for each in inputs)
    app.ownership = Ownership(keepers, around.fail, around.producer.topic_ids, settings.on_recreated)
    app.observer = around.observer
    app.notices = around.notices
    app.gather = settings.gather
    # Only what platforms send may be skipped: the feed-log is the source of truth, wherever its reader begins.
    app.start_at_end = settings.start == "latest" and settings.topic(FORECAST_EVENTS) in app.ownership.keepers
    app.transport = BatchTransport(_brokers(settings), app)
    app.Table(
        table.name,
        key_type=bytes,
        value_type=bytes,
        schema=BatchSchema(),
        partitions=table.partitions,
        recovery_buffer_size=_RECOVERY_BATCHES,
    )
    for each in app.ownership.keepers.values():
        _add_agent(app, each.input)
    return app


def _add_agent(app: StageApp, stage_input: StageInput) -> None:
    topic = app.topic(stage_input.topic, schema=BatchSchema())
    topic.maxsize = _QUEUE_OF_BATCHES  # the argument of app.topic is ignored

    async def hand_over(stream: Any) -> None:
        """Hand batches to the tasks of their partitions, which acknowledge them by snapshots."""
        async for event in stream.noack().events():
            await app.ownership.put(event, app.consumer)

    app.agent(topic, name=f"fold-{stage_input.stage_name}")(hand_over)


def _brokers(settings: Settings) -> list[URL]:
    return [URL(f"kafka://{address.strip()}") for address in settings.bootstrap.split(",") if address.strip()]


def _options(app_id: str, settings: Settings, partitions: int) -> dict[str, Any]:
    embedded = settings.broker == "embedded"
    named = {"consumer_group_instance_id": f"{settings.instance}-{app_id}"} if settings.instance else {}
    if settings.http.advertise is not None:
        named["canonical_url"] = settings.http.advertise  # what the group's members are told of each other
    return named | {
        "broker": _brokers(settings),
        "broker_credentials": credentials(settings.security),
        "broker_session_timeout": settings.session,
        "broker_heartbeat_interval": min(3.0, settings.session / 5),
        "broker_rebalance_timeout": settings.rebalance_timeout,
        "broker_request_timeout": max(_LEAST_REQUEST_SECONDS, settings.session, settings.rebalance_timeout),
        "broker_commit_interval": min(1.0, settings.snapshot_every.seconds),
        "broker_max_poll_records": None,
        "broker_check_crcs": not embedded,
        "consumer_max_fetch_size": _FETCH_BYTES,
        "consumer_auto_offset_reset": "earliest",
        "store": "memory://",
        "Table": FoldTable,
        "PartitionAssignor": Assignor,
        "table_standby_replicas": 0,
        "topic_partitions": partitions,
        "topic_replication_factor": settings.replication,
        "topic_allow_declare": False,
        "topic_disable_leader": True,
        "web_enabled": False,
        "autodiscover": False,
        "datadir": Path(tempfile.gettempdir()) / app_id,  # named, never made: the store is memory
    }


def credentials(security: Security) -> Any:
    """The security block as Faust wants it; None for plaintext."""
    options = aiokafka_options(security)
    context = options.get("ssl_context")
    if security.protocol == "plaintext":
        return None
    if security.protocol == "ssl":
        return faust.SSLCredentials(context)
    if "sasl_oauth_token_provider" in options:
        return faust.OAuthCredentials(oauth_cb=options["sasl_oauth_token_provider"], ssl_context=context)
    return faust.SASLCredentials(
        username=options["sasl_plain_username"],
        password=options["sasl_plain_password"],
        mechanism=options["sasl_mechanism"],
        ssl_context=context,
    )
