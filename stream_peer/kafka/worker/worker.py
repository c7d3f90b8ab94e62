"""The worker: both apps in one process, from the start-up check to the exit code."""

import asyncio
import gc
import os
import signal
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import mode
import structlog
from aiokafka import errors as kafka

from stream_peer.errors import StreamPeerError
from stream_peer.kafka.client.log_reader import LogReader
from stream_peer.kafka.client.security import aiokafka_options
from stream_peer.kafka.worker import contract
from stream_peer.kafka.worker.feed_app import FEED, feed_app
from stream_peer.kafka.worker.health import Health
from stream_peer.kafka.worker.notices import Notices
from stream_peer.kafka.worker.owners import FeedOwners
from stream_peer.kafka.worker.producer import BatchProducer
from stream_peer.kafka.worker.pulse import Pulse, Stalls
from stream_peer.kafka.worker.question_app import question_app
from stream_peer.kafka.worker.skew import ClockSkew
from stream_peer.kafka.worker.stage_app import StageApp
from stream_peer.kafka.worker.surroundings import Surroundings
from stream_peer.kafka.worker.watchdog import Limits, Vitals, Watchdog, leave
from stream_peer.log.observer import Observer
from stream_peer.log.producers import Producers
from stream_peer.log.signatures import Signatures
from stream_peer.log.stage import Stage
from stream_peer.settings.process import Settings

log = structlog.get_logger(__name__)

_EMBEDDED_PARTITIONS = 4
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


def _no_fault(_place: str) -> None:
    """Nothing goes wrong here."""


def run(
    settings: Settings,
    observer: Observer,
    keys: Keys,
    services: Iterable[Any] = (),
    *,
    health: Health | None = None,
    owners: FeedOwners | None = None,
    stages: StageMakers | None = None,
    fault: Callable[[str], None] = _no_fault,
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
    health : Health or None
        Attached to this worker before it starts.
    owners : FeedOwners or None
        Attached as well.
    stages : StageMakers or None
        Other stages than the product's, for tests.
    fault : callable
        Called at the named places where tests let the process die.

    Raises
    ------
    StreamPeerError
        If the worker cannot start; it carries the exit code.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop_before_start)
    contract.check()
    gc.set_threshold(*_GC_THRESHOLDS)
    asyncio.set_event_loop(asyncio.new_event_loop())
    signatures = Signatures(keys.signing)
    makers = stages or _product_stages(settings, keys, signatures)
    assembly = _assemble(settings, observer, makers, signatures, fault)
    if health is not None:
        health.attach(assembly.vitals, assembly.apps)
    if owners is not None:
        owners.attach(settings, assembly.feed_app, partition_counts(settings)[1])
    worker = StageWorker(assembly.vitals, assembly.producer, assembly.pulse, *assembly.apps, *services)
    return worker.run()


def _stop_before_start(_number: int, _frame: object) -> None:
    """Told to stop while it still waits for a broker: nothing was begun, so it stops cleanly.

    No exception: Python drops one that comes while it finalises an object, and the worker would go on.
    """
    os._exit(0)


class _Assembly(NamedTuple):
    vitals: Vitals
    producer: BatchProducer
    pulse: Pulse
    apps: Sequence[StageApp]

    @property
    def feed_app(self) -> StageApp | None:
        """The app that folds feeds, if this worker runs it."""
        return next((app for app in self.apps if app.ownership.has_stage(FEED)), None)


def _assemble(
    settings: Settings, observer: Observer, stages: StageMakers, signatures: Signatures, fault: Callable[[str], None]
) -> _Assembly:
    limits = Limits(
        silence=settings.session / 2,
        write=settings.batch_deadline,
        shutdown=settings.shutdown_deadline,
        broker=settings.broker_patience,
    )
    vitals = Vitals(limits)
    compression = None if settings.compression == "none" or settings.broker == "embedded" else settings.compression
    options = {"bootstrap_servers": settings.bootstrap, **aiokafka_options(settings.security)}
    producer = BatchProducer(options, settings.topic, compression, vitals, signatures)
    around = Surroundings(
        producer,
        observer,
        settings.snapshot_every,
        fail,
        fault,
        turn=asyncio.Lock(),
        logs=LogReader(options, check_crcs=settings.broker != "embedded"),
        refolds=asyncio.Lock(),
        notices=Notices(),
    )
    apps = _apps(settings, around, stages)
    stalls = Stalls(settings.session, settings.rebalance_timeout, settings.broker_patience)
    skew = ClockSkew() if settings.broker == "kafka" else None
    pulse = Pulse(apps, producer, vitals, Watchdog(vitals), stalls, signatures, skew)
    return _Assembly(vitals, producer, pulse, apps)


def _apps(settings: Settings, around: Surroundings, stages: StageMakers) -> list[StageApp]:
    questions, feeds = partition_counts(settings)
    apps = []
    if settings.stage in ("all", "question"):
        apps.append(question_app(settings, around, stages.question, questions))
    if settings.stage in ("all", "feed"):
        apps.append(feed_app(settings, around, stages.feed, stages.control, feeds))
    return apps


def partition_counts(settings: Settings) -> tuple[int, int]:
    """Partitions of forecast-events and of feed-log."""
    if settings.broker == "embedded":
        return _EMBEDDED_PARTITIONS, _EMBEDDED_PARTITIONS
    return settings.partitions.forecast_events, settings.partitions.feed_log


def _product_stages(settings: Settings, keys: Keys, signatures: Signatures) -> StageMakers:
    from stream_peer.events import topics
    from stream_peer.feeds.stage import FeedStage
    from stream_peer.questions.control_stage import ControlStage
    from stream_peer.questions.stage import QuestionStage

    questions, feeds = partition_counts(settings)
    forecasts, feed_log = settings.topic(topics.FORECAST_EVENTS), settings.topic(topics.FEED_LOG)
    controls = settings.topic(topics.CONTROL_EVENTS)
    return StageMakers(
        lambda p: QuestionStage(
            topic=forecasts,
            partition=p,
            partitions=questions,
            feed_log_partitions=feeds,
            secret=keys.secret,
            producers=keys.producers,
            signatures=signatures,
        ),
        lambda p: FeedStage(topic=feed_log, partition=p, secret=keys.secret, counts_later=True, signatures=signatures),
        lambda p: ControlStage(
            topic=controls,
            partition=p,
            forecast_partitions=questions,
            feed_log_partitions=feeds,
            signatures=signatures,
        ),
    )


_FOR_OPERATORS = 78

_NOT_AUTHORISED = (
    kafka.TopicAuthorizationFailedError,
    kafka.GroupAuthorizationFailedError,
    kafka.ClusterAuthorizationFailedError,
    kafka.SaslAuthenticationFailed,
    kafka.AuthenticationFailedError,
)
_UNAVAILABLE = (kafka.KafkaConnectionError, kafka.NoBrokersAvailable, kafka.RequestTimedOutError, OSError)


def exit_code(error: BaseException | None) -> int:
    """Exit code that says what an operator may do about the error."""
    if error is None:
        return 0
    if isinstance(error, StreamPeerError):
        return error.exit_code
    if isinstance(error, _NOT_AUTHORISED):
        return 77
    return 69 if isinstance(error, _UNAVAILABLE) else 70


def fail(error: BaseException) -> None:
    """End the process: state may be half changed, so nothing more may be written or acknowledged.

    What an operator has to decide is said in the message; where in the code it was noticed helps nobody.
    """
    code = exit_code(error)
    leave(code, str(error) or repr(error), None if code == _FOR_OPERATORS else error)


def _behind(end: SystemExit) -> BaseException | None:
    """The error that made the process end; mode tells of one that comes while services start by context alone."""
    error: BaseException | None = end.__context__
    while isinstance(error, SystemExit | asyncio.CancelledError):
        error = error.__context__
    return error


class StageWorker(mode.Worker):
    """Runs services until a signal; a second signal ends the process at once."""

    def __init__(self, vitals: Vitals, *services: Any) -> None:
        super().__init__(*services, daemon=True, override_logging=False, quiet=True)
        self._vitals = vitals

    def run(self) -> int:
        """Run to the end; return the exit code."""
        crash: BaseException | None = None
        try:
            self.execute_from_commandline()
        except SystemExit as end:
            crash = _behind(end)
        return exit_code(self.crash_reason or crash)

    def _on_sigint(self) -> None:
        self._stop_or_leave(signal.SIGINT)

    def _on_sigterm(self) -> None:
        self._stop_or_leave(signal.SIGTERM)

    def _on_sigusr1(self) -> None:
        """Nothing. Mode would print the local variables of all frames: forecasts and secrets."""

    def _on_sigusr2(self) -> None:
        """Nothing. Mode would wait in a debugger for somebody to type."""

    def _stop_or_leave(self, number: signal.Signals) -> None:
        if self._vitals.is_stopping:
            leave(70, "told to stop a second time")
        self._vitals.stopping()
        log.info("worker_stops", signal=number.name)
        self._schedule_shutdown(number)
