import msgspec
import pytest

from stream_peer.engine.control import ControlStage
from stream_peer.engine.sources import source_of
from stream_peer.engine.stage import Effects, LogRecord, Output, Snapshot
from stream_peer.events import topics
from stream_peer.events.feed_log import SettingsChanged, Source, decode_feed_log
from stream_peer.events.feed_settings import document_hash
from tests.unit.engine.question_log import T0, event, forecast, settings_event

DOCUMENT = {"defaults": {"round_every": "1d"}}


def control(value: bytes | None) -> Effects:
    stage = ControlStage(topic="prod.control-events", partition=2, forecast_partitions=3, feed_log_partitions=2)
    effects = Effects()
    stage.step(LogRecord(7, T0, b"settings", value), effects)
    return effects


def test_settings_go_to_every_partition_of_both_logs() -> None:
    value = settings_event(DOCUMENT)

    outputs = control(value).outputs

    places = [(output.topic, output.partition, output.key, output.timestamp) for output in outputs]
    assert places == [
        *((topics.FEED_LOG, partition, b"settings", T0) for partition in range(2)),
        *((topics.FORECAST_EVENTS, partition, b"settings", T0) for partition in range(3)),
    ]
    assert decode_feed_log(outputs[1].value or b"") == SettingsChanged(
        src=Source("control-events", 2, 0, 7, 1), document=DOCUMENT, hash=document_hash(DOCUMENT)
    )
    assert outputs[3].value == value
    assert source_of(outputs[3].headers) == Source("control-events", 2, 0, 7, 1)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (event("expert", feed="econ", expert_id="ann", at=T0, excluded=True), "not-supported"),
        (event("feed", feed="econ", reset=True), "not-supported"),
        (forecast("ann", 0.5, T0), "unexpected-type"),
        (settings_event({"defaults": {"round_every": "often"}}), "settings-invalid"),
        (msgspec.json.encode({"type": "settings", "document": DOCUMENT, "hash": "0"}), "settings-invalid"),
        (None, "empty"),
    ],
)
def test_what_this_release_cannot_do_is_refused_with_the_reason(value: bytes | None, reason: str) -> None:
    effects = control(value)

    assert [output.topic for output in effects.outputs] == [topics.DEAD_LETTERS]
    assert effects.counts == {("dead-letter", reason): 1}


def test_the_control_stage_keeps_nothing() -> None:
    stage = ControlStage(topic="t", partition=0, forecast_partitions=1, feed_log_partitions=1)
    stage.load(None, {})
    effects: list[Output] = []

    assert stage.snapshot() == Snapshot({}, b"")
    assert (stage.clock, stage.deadline(), stage.changed_feeds(), effects) == (0, None, {}, [])
