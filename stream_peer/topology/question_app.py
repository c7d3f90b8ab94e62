"""forecast-events → question stage → feed-log."""

from collections.abc import Callable

from stream_peer.engine.stage import Stage
from stream_peer.events import topics
from stream_peer.settings import Settings
from stream_peer.topology.keeper import StageInput
from stream_peer.topology.stage_app import StageApp, Table, stage_app
from stream_peer.topology.surroundings import Surroundings

QUESTION = "question"


def question_app(
    settings: Settings, around: Surroundings, make_stage: Callable[[int], Stage], partitions: int
) -> StageApp:
    """Make the app ``<id>-question``."""
    forecasts = StageInput(QUESTION, settings.topic(topics.FORECAST_EVENTS), settings.changelog("question"), make_stage)
    return stage_app(settings.app_id("question"), settings, around, [forecasts], Table("question-state", partitions))
