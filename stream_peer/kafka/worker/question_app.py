"""forecast-events → question stage → feed-log."""

from collections.abc import Callable

from stream_peer.events import topics
from stream_peer.kafka.worker.keeper import StageInput
from stream_peer.kafka.worker.stage_app import StageApp, Table, stage_app
from stream_peer.kafka.worker.surroundings import Surroundings
from stream_peer.log.stage import Stage
from stream_peer.settings.process import Settings

QUESTION = "question"


def question_app(
    settings: Settings, around: Surroundings, make_stage: Callable[[int], Stage], partitions: int
) -> StageApp:
    """Make the app ``<id>-question``."""
    forecasts = StageInput(QUESTION, settings.topic(topics.FORECAST_EVENTS), settings.changelog("question"), make_stage)
    return stage_app(settings.app_id("question"), settings, around, [forecasts], Table("question-state", partitions))
