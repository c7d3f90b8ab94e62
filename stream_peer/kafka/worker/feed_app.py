"""feed-log → feed stage → outputs, and control-events → control stage → feed-log and forecast-events."""

from collections.abc import Callable

from stream_peer.events import topics
from stream_peer.kafka.worker.keeper import StageInput
from stream_peer.kafka.worker.stage_app import StageApp, Table, stage_app
from stream_peer.kafka.worker.surroundings import Surroundings
from stream_peer.log.stage import Stage
from stream_peer.settings.process import Settings

FEED = "feed"
CONTROL = "control"


def feed_app(
    settings: Settings,
    around: Surroundings,
    make_feed: Callable[[int], Stage],
    make_control: Callable[[int], Stage],
    partitions: int,
) -> StageApp:
    """Make the app ``<id>-feed``; the control agent belongs to it and has no state of its own."""
    feed_log = StageInput(FEED, settings.topic(topics.FEED_LOG), settings.changelog("feed"), make_feed)
    controls = StageInput(CONTROL, settings.topic(topics.CONTROL_EVENTS), None, make_control)
    return stage_app(settings.app_id("feed"), settings, around, [feed_log, controls], Table("feed-state", partitions))
