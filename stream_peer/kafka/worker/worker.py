"""The worker: both apps in one process, from the start-up check to the exit code."""

import asyncio
import gc
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

import structlog

from stream_peer.errors import out_of_memory
from stream_peer.events import topics
from stream_peer.kafka.worker import faust_bridge
from stream_peer.kafka.worker.faust_bridge import (
    Jobs,
    KafkaWriter,
    LogReader,
    StageWorker,
    StateTable,
    aiokafka_options,
    exit_code,
    stage_app,
)
from stream_peer.kafka.worker.feed_owners import FeedOwners
from stream_peer.kafka.worker.health import Health
from stream_peer.kafka.worker.heartbeats import Deadlines, Heartbeats
from stream_peer.kafka.worker.lease import Lease
from stream_peer.kafka.worker.monitor import HealthMonitor, StallLimits
from stream_peer.kafka.worker.notices import Notices
from stream_peer.kafka.worker.ownership import (
    CONTROL,
    FEED,
    QUESTION,
    Ownership,
    RunningApp,
    StageInput,
    StagePartitions,
)
from stream_peer.kafka.worker.port import WorkerContext
from stream_peer.kafka.worker.process import SystemRuntime, Watchdog, leave
from stream_peer.kafka.worker.producer import BatchProducer, BrokerClock
from stream_peer.log.dead_letters import shown_by
from stream_peer.log.observer import Observer
from stream_peer.log.producers import Producers
from stream_peer.log.signatures import Signatures
from stream_peer.log.stage import Stage
from stream_peer.settings.process import Settings

log = structlog.get_logger(__name__)

_GC_THRESHOLDS = (100_000, 50, 100)  # batches make many short-lived objects: 15-25 % of the CPU at the defaults


StageMaker = Callable[[int], Stage]


class StageMakers(NamedTuple):
    """How the stage of a partition is made."""

    question: StageMaker
    feed: StageMaker
    control: StageMaker


class Keys(NamedTuple):
    """What is known to the workers of a release alone: what seeds the draws, what signs records, who may say what."""

    secret: bytes = b""
    signing: Sequence[bytes] = (b"",)
    producers: Producers | None = None


def run(
    settings: Settings,
    observer: Observer,
    keys: Keys,
    services: Iterable[object] = (),
    *,
    fault: Callable[[str], None],
    health: Health | None = None,
    owners: FeedOwners | None = None,
    stages: StageMakers | None = None,
) -> int:
    """Run a worker until it is told to stop; return its exit code.

    Parameters
    ----------
    settings : Settings
        Everything that is decided outside.
    observer : Observer
        Told what happens.
    keys : Keys
        What is known to the workers of this release alone.
    services : iterable of mode.Service
        Run beside the apps: the HTTP server.
    fault : callable
        Called at the named places where tests let the process die.
    health : Health or None
        Attached to this worker before it starts.
    owners : FeedOwners or None
        Attached as well.
    stages : StageMakers or None
        Other stages than the product's, for tests.

    Raises
    ------
    StreamPeerError
        If the worker cannot start; it carries the exit code.
    """
    faust_bridge.check()
    gc.set_threshold(*_GC_THRESHOLDS)
    asyncio.set_event_loop(asyncio.new_event_loop())
    signatures = Signatures(keys.signing)
    makers = stages or product_stages(settings, keys.secret, keys.producers, signatures)
    assembly = _assemble(settings, observer, makers, signatures, fault)
    if health is not None:
        health.attach(assembly.heartbeats, assembly.apps)
    if owners is not None:
        owners.attach(settings, assembly.feed_app, settings.partitions.feed_log, SystemRuntime.now)
    monitor = assembly.monitor
    watchdog = Watchdog(assembly.heartbeats)
    watching = Jobs(monitor.beat, monitor.ask_broker, monitor.look, begin=watchdog.start, end=monitor.stop)
    members = (app.member for app in assembly.apps)
    worker = StageWorker(assembly.heartbeats, assembly.writer, watching, *members, *services)
    return worker.run()


class _Assembly(NamedTuple):
    heartbeats: Heartbeats
    monitor: HealthMonitor
    writer: KafkaWriter
    apps: Sequence[RunningApp]

    @property
    def feed_app(self) -> RunningApp | None:
        """The app that folds feeds, if this worker runs it."""
        return next((app for app in self.apps if app.ownership.has_stage(FEED)), None)


def _assemble(
    settings: Settings, observer: Observer, stages: StageMakers, signatures: Signatures, fault: Callable[[str], None]
) -> _Assembly:
    deadlines = Deadlines(
        silence=settings.session / 2,
        shutdown=settings.shutdown_deadline,
        broker=settings.broker_patience,
    )
    runtime = SystemRuntime()
    heartbeats = Heartbeats(deadlines, runtime.now)
    compression = None if settings.compression == "none" else settings.compression
    options = {"bootstrap_servers": settings.bootstrap, **aiokafka_options(settings.security)}
    writer = KafkaWriter(options, compression, settings.broker_patience)
    clock = BrokerClock(runtime.now)
    producer = BatchProducer(writer, settings.topic, heartbeats, signatures, clock, cloudevents=settings.cloudevents)
    context = WorkerContext(
        producer,
        observer,
        settings.snapshot_every,
        fail,
        fault,
        turn=asyncio.Lock(),
        logs=LogReader(options, settings.broker_patience, check_crcs=settings.broker != "embedded"),
        rebuilds=asyncio.Lock(),
        notices=Notices(runtime.now, shown_by(settings.bootstrap, settings.topic(topics.DEAD_LETTERS))),
        runtime=runtime,
    )
    apps = make_apps(settings, context, stages)
    stalls = StallLimits(settings.session, settings.rebalance_timeout, settings.broker_patience)
    monitor = HealthMonitor(apps, producer, heartbeats, stalls, signatures, context, clock)
    return _Assembly(heartbeats, monitor, writer, apps)


_FOR_OPERATORS = (69, 77, 78)


def fail(error: BaseException) -> None:
    """End the process: state may be half changed, so nothing more may be written or acknowledged.

    What an operator has to decide is said in the message; where in the code it was noticed helps nobody.
    """
    code = exit_code(error)
    leave(code, out_of_memory(error) or str(error) or repr(error), None if code in _FOR_OPERATORS else error)


# Its apps.


def make_apps(settings: Settings, context: WorkerContext, stages: StageMakers) -> list[RunningApp]:
    """Make the apps of the stages that this worker runs, ``<id>-question`` first."""
    apps = []
    if settings.stage in ("all", "question"):
        apps.append(question_app(settings, context, stages.question))
    if settings.stage in ("all", "feed"):
        apps.append(feed_app(settings, context, stages))
    return apps


def question_app(settings: Settings, context: WorkerContext, make_stage: StageMaker) -> RunningApp:
    """Make the app ``<id>-question``: forecast-events to feed-log."""
    lease = _lease(settings, context)
    ownership = question_ownership(settings, context.under(lease), make_stage)
    return _app(settings, context, "question", ownership, lease)


def feed_app(settings: Settings, context: WorkerContext, stages: StageMakers) -> RunningApp:
    """Make the app ``<id>-feed``: feed-log to outputs, and control-events."""
    lease = _lease(settings, context)
    return _app(settings, context, "feed", feed_ownership(settings, context.under(lease), stages), lease)


def _lease(settings: Settings, context: WorkerContext) -> Lease:
    """Of the app's member of its group: each app has its own."""
    return Lease(settings.session, settings.rebalance_timeout, context.runtime.now)


def question_ownership(settings: Settings, context: WorkerContext, make_stage: StageMaker) -> Ownership:
    """Make the listener that folds forecast-events.

    Only what platforms send may be skipped: the feed-log is the source of truth, wherever its reader begins.
    """
    topic, latest = settings.topic(topics.FORECAST_EVENTS), settings.start == "latest"
    forecasts = StageInput(QUESTION, topic, settings.changelog("question"), make_stage, begins_at_end=latest)
    return _ownership(settings, context, [forecasts])


def feed_ownership(settings: Settings, context: WorkerContext, stages: StageMakers) -> Ownership:
    """Make the listener that folds the feed-log. Controls belong to its app, and have no state of their own."""
    feed_log = StageInput(FEED, settings.topic(topics.FEED_LOG), settings.changelog("feed"), stages.feed)
    controls = StageInput(CONTROL, settings.topic(topics.CONTROL_EVENTS), None, stages.control)
    return _ownership(settings, context, [feed_log, controls])


def _ownership(settings: Settings, context: WorkerContext, inputs: Sequence[StageInput]) -> Ownership:
    choice = settings.on_recreated
    stages = [StagePartitions(each, context, choice) for each in inputs]
    return Ownership(stages, context.fail, context.producer, choice)


def _app(
    settings: Settings, context: WorkerContext, app: Literal["question", "feed"], ownership: Ownership, lease: Lease
) -> RunningApp:
    inputs = {stage.input.stage_name: topic for topic, stage in ownership.stages.items()}
    counts = settings.partitions
    table = StateTable(f"{app}-state", counts.feed_log if app == "feed" else counts.forecast_events)
    made = stage_app(settings.app_id(app), settings, ownership, context.observer, lease, inputs, table)
    return RunningApp(made, ownership)


def product_stages(
    settings: Settings, secret: bytes, producers: Producers | None, signatures: Signatures
) -> StageMakers:
    """Make the stages of the product; imported here, since tests run others."""
    from stream_peer.feeds.stage import FeedStage
    from stream_peer.questions.control_stage import ControlStage
    from stream_peer.questions.stage import QuestionStage

    counts = settings.partitions
    forecasts, feed_log = settings.topic(topics.FORECAST_EVENTS), settings.topic(topics.FEED_LOG)
    controls = settings.topic(topics.CONTROL_EVENTS)
    return StageMakers(
        lambda p: QuestionStage(
            topic=forecasts,
            partition=p,
            partitions=counts.forecast_events,
            feed_log_partitions=counts.feed_log,
            secret=secret,
            producers=producers,
            signatures=signatures,
        ),
        lambda p: FeedStage(topic=feed_log, partition=p, secret=secret),
        lambda p: ControlStage(
            topic=controls,
            partition=p,
            forecast_partitions=counts.forecast_events,
            feed_log_partitions=counts.feed_log,
            signatures=signatures,
        ),
    )
