from typing import Any

import msgspec
import pytest

from stream_peer.events import topics
from stream_peer.events.feed_log import (
    AnyFeedLogRecord,
    ExpertChanged,
    FeedChanged,
    SettingsChanged,
    Source,
    decode_feed_log,
)
from stream_peer.events.incoming import decode
from stream_peer.events.partitioning import partition_of
from stream_peer.log.signatures import is_signed
from stream_peer.log.sources import source_of
from stream_peer.log.stage import Effects, LogRecord, Output, PublishingStage, Stage, Stateful, Timed
from stream_peer.questions.control_stage import ControlStage
from stream_peer.settings.feed.document import document_hash
from tests.unit.questions.question_log import T0, event, forecast, settings_event

DOCUMENT = {"defaults": {"round_every": "1d"}}


PLACE = ("control-events", 2, 0, 7)


def control(value: bytes | None, feed_log_partitions: int = 2) -> Effects:
    stage = ControlStage(
        topic="prod.control-events", partition=2, forecast_partitions=3, feed_log_partitions=feed_log_partitions
    )
    effects = Effects()
    stage.step(LogRecord(7, T0, b"settings", value), effects)
    return effects


def told(output: Output) -> AnyFeedLogRecord:
    assert output.topic == topics.FEED_LOG
    record: AnyFeedLogRecord = decode_feed_log(output.value or b"")
    return record


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
    assert decode(outputs[3].value) == msgspec.structs.replace(decode(value), since=T0)
    assert source_of(outputs[3].headers) == Source("control-events", 2, 0, 7, 1)


def test_settings_that_have_no_room_for_the_moment_from_which_they_count_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    value = settings_event(DOCUMENT)
    monkeypatch.setattr("stream_peer.questions.control_stage.MAX_EVENT_BYTES", len(value))

    effects = control(value)

    assert effects.counts["dead-letter", "too-large"] == 1
    assert [output.topic for output in effects.outputs] == [topics.DEAD_LETTERS]


@pytest.mark.parametrize("fields", [{"team": "lab"}, {"team": None}, {"excluded": True}, {"excluded": False}])
def test_a_change_of_an_expert_goes_to_the_feeds_partition_and_names_only_what_changes(fields: dict[str, Any]) -> None:
    effects = control(event("expert", feed="econ", expert_id="ann", at=T0, **fields), feed_log_partitions=16)

    (output,) = effects.outputs
    assert told(output) == ExpertChanged(src=Source(*PLACE, 0), feed="econ", expert_id="ann", **fields)
    assert (output.key, output.partition, output.timestamp) == (b"econ", partition_of("econ", 16), T0)
    assert effects.counts == {("event", "expert"): 1}


@pytest.mark.parametrize("fields", [{"forget": True}, {"rename": "anna"}])
def test_every_partition_of_forecast_events_learns_who_is_renamed_or_to_be_forgotten(fields: dict[str, Any]) -> None:
    value = event("expert", feed="econ", expert_id="ann", at=T0, **fields)

    home, *others = control(value).outputs

    assert told(home) == ExpertChanged(src=Source(*PLACE, 0), feed="econ", expert_id="ann", **fields)
    assert_broadcast(others, value)


def test_a_reset_is_for_the_feed_stage_alone() -> None:
    (output,) = control(event("feed", feed="econ", reset=True)).outputs

    assert told(output) == FeedChanged(src=Source(*PLACE, 0), feed="econ", reset=True)
    assert (output.key, output.partition) == (b"econ", partition_of("econ", 2))


def test_every_partition_of_forecast_events_learns_which_feed_is_deleted() -> None:
    value = event("feed", feed="econ", delete=True)

    home, *others = control(value).outputs

    assert told(home) == FeedChanged(src=Source(*PLACE, 0), feed="econ", delete=True, deleted_at=T0)
    assert {decode(other.value) for other in others} == {msgspec.structs.replace(decode(value), since=T0)}
    assert_broadcast(others, others[0].value)


def assert_broadcast(outputs: list[Output], value: bytes | None) -> None:
    """Each partition of forecast-events gets the event itself, with a source of its own."""
    places = [(output.topic, output.partition, output.key, output.value, output.timestamp) for output in outputs]
    assert places == [(topics.FORECAST_EVENTS, partition, b"econ", value, T0) for partition in range(3)]
    assert [source_of(output.headers) for output in outputs] == [Source(*PLACE, partition) for partition in range(3)]


def imported(**fields: Any) -> bytes:
    part = {"feed": "econ", "import_id": "i", "part": 0, "parts": 1, "digest": "d", "data": "AAEC", **fields}
    return event("feed-import", **part)


def test_a_part_of_the_questions_of_a_moved_feed_goes_signed_to_their_partition() -> None:
    value = imported(partition=2, partitions=3)

    (output,) = control(value).outputs

    assert (output.topic, output.partition, output.key, output.value) == (topics.FORECAST_EVENTS, 2, b"econ", value)
    assert source_of(output.headers) == Source(*PLACE, 0)
    assert is_signed(output.headers)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (event("expert", feed="econ", expert_id="ann", at=T0), "contradictory"),
        (event("expert", feed="econ", expert_id="ann", at=T0, forget=False), "contradictory"),
        (event("expert", feed="econ", expert_id="ann", at=T0, forget=True, team=None), "contradictory"),
        (event("expert", feed="econ", expert_id="ann", at=T0, rename="bob", team=None), "contradictory"),
        (event("expert", feed="econ", expert_id="ann", at=T0, rename="bob", forget=True), "contradictory"),
        (event("expert", feed="econ", expert_id="ann", at=T0, rename="ann"), "contradictory"),
        (event("expert", feed="econ", expert_id="ann", at=T0, rename="b" * 257), "id-length"),
        (event("expert", feed="econ", expert_id="ann", at=T0, rename="ö" * 200), "id-length"),
        (event("expert", feed="econ", expert_id="ann", at=T0, forget=True, excluded=False), "contradictory"),
        (event("expert", feed="econ", expert_id="ann", at=T0 // 1000, excluded=True), "time-range"),
        (event("expert", feed="econ", expert_id="ann", at=T0, team=""), "id-length"),
        (event("expert", feed="econ", expert_id="ann", at=T0, team="ü" * 200), "id-length"),
        (event("expert", feed="econ/us", expert_id="ann", at=T0, excluded=True), "feed-name"),
        (event("feed", feed="econ"), "contradictory"),
        (event("feed", feed="econ", reset=True, delete=True), "contradictory"),
        (imported(), "import-refused"),
        (imported(part=1), "contradictory"),
        (imported(partition=0), "contradictory"),
        (imported(partitions=3), "contradictory"),
        (imported(partition=0, partitions=4), "import-refused"),
        (imported(partition=3, partitions=3), "import-refused"),
        (imported(data="no base64"), "wrong-type"),
        (forecast("ann", 0.5, T0), "unexpected-type"),
        (settings_event({"defaults": {"round_every": "often"}}), "settings-invalid"),
        (msgspec.json.encode({"type": "settings", "document": DOCUMENT, "hash": "0"}), "settings-invalid"),
        (None, "empty"),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_reason(value: bytes | None, reason: str) -> None:
    effects = control(value)

    assert [output.topic for output in effects.outputs] == [topics.DEAD_LETTERS]
    assert effects.counts == {("dead-letter", reason): 1}


def test_the_control_stage_keeps_nothing() -> None:
    stage: Stage = ControlStage(topic="t", partition=0, forecast_partitions=1, feed_log_partitions=1)

    assert not isinstance(stage, Stateful | Timed | PublishingStage)
