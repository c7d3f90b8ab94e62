"""The two apps of a worker: forecast-events → question stage → feed-log → feed stage → outputs, and control-events."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from stream_peer.events import topics
from stream_peer.kafka.worker.faust_bridge import Table, stage_app
from stream_peer.kafka.worker.ownership import Ownership, RunningApp, StageInput, StagePartitions
from stream_peer.kafka.worker.port import WorkerContext
from stream_peer.log.producers import Producers
from stream_peer.log.signatures import Signatures
from stream_peer.log.stage import Stage
from stream_peer.settings.process import Settings

QUESTION = "question"
FEED = "feed"
CONTROL = "control"

_EMBEDDED_PARTITIONS = 4

StageMaker = Callable[[int], Stage]


class StageMakers(NamedTuple):
    """How the stage of a partition is made."""

    question: StageMaker
    feed: StageMaker
    control: StageMaker


def make_apps(settings: Settings, context: WorkerContext, stages: StageMakers) -> list[RunningApp]:
    """Make the apps of the stages that this worker runs, ``<id>-question`` first."""
    apps = []
    if settings.stage in ("all", "question"):
        apps.append(question_app(settings, context, stages.question))
    if settings.stage in ("all", "feed"):
        apps.append(feed_app(settings, context, stages))
    return apps


def question_app(settings: Settings, context: WorkerContext, make_stage: StageMaker) -> RunningApp:
    """Make the app ``<id>-question``: forecast-events to feed-log.

    Only what platforms send may be skipped: the feed-log is the source of truth, wherever its reader begins.
    """
    topic, latest = settings.topic(topics.FORECAST_EVENTS), settings.start == "latest"
    forecasts = StageInput(QUESTION, topic, settings.changelog("question"), make_stage, begins_at_end=latest)
    return _app(settings, context, "question", [forecasts], partition_counts(settings)[0])


def feed_app(settings: Settings, context: WorkerContext, stages: StageMakers) -> RunningApp:
    """Make the app ``<id>-feed``: feed-log to outputs. Controls belong to it, and have no state of their own."""
    feed_log = StageInput(FEED, settings.topic(topics.FEED_LOG), settings.changelog("feed"), stages.feed)
    controls = StageInput(CONTROL, settings.topic(topics.CONTROL_EVENTS), None, stages.control)
    return _app(settings, context, "feed", [feed_log, controls], partition_counts(settings)[1])


def _app(
    settings: Settings,
    context: WorkerContext,
    app: Literal["question", "feed"],
    inputs: Sequence[StageInput],
    partitions: int,
) -> RunningApp:
    choice = settings.on_recreated
    stages = [StagePartitions(each, context, choice) for each in inputs]
    ownership = Ownership(stages, context.fail, context.producer.topic_ids, choice)
    read = {each.stage_name: each.topic for each in inputs}
    table = Table(f"{app}-state", partitions)
    return RunningApp(stage_app(settings.app_id(app), settings, ownership, context.observer, read, table), ownership)


def partition_counts(settings: Settings) -> tuple[int, int]:
    """Partitions of forecast-events and of feed-log."""
    if settings.broker == "embedded":
        return _EMBEDDED_PARTITIONS, _EMBEDDED_PARTITIONS
    return settings.partitions.forecast_events, settings.partitions.feed_log


def product_stages(
    settings: Settings, secret: bytes, producers: Producers | None, signatures: Signatures
) -> StageMakers:
    """Make the stages of the product; imported here, since tests run others."""
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
            secret=secret,
            producers=producers,
            signatures=signatures,
        ),
        lambda p: FeedStage(topic=feed_log, partition=p, secret=secret, counts_later=True, signatures=signatures),
        lambda p: ControlStage(
            topic=controls,
            partition=p,
            forecast_partitions=questions,
            feed_log_partitions=feeds,
            signatures=signatures,
        ),
    )
