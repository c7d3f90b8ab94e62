"""What shows that a topic was made anew, what is said of it, and where a partition begins then."""

from collections.abc import Mapping

import pytest
from structlog.testing import capture_logs

from stream_peer.errors import RecreatedTopicError
from stream_peer.kafka.worker.port import TopicPartition
from stream_peer.kafka.worker.recreated import (
    Begin,
    Choice,
    InputLog,
    Known,
    Recreation,
    begin,
    decide,
    examine,
    examine_sources,
    topic_generation,
)
from stream_peer.log.changelog import OUTLIVES, LogOrigin, Recovered
from stream_peer.log.stage import Stateful
from tests.unit.kafka.worker.fakes import RebuildingStage, SumStage

pytestmark = pytest.mark.case("C29")

HERE = TopicPartition("forecast-events", 3)
OLD, NEW = "355cab72-150b-4efa-abe6-2ea2d295b254", "ed43d407-bb1c-42a7-800f-671241293161"
NO_STATE = Known(Recovered(-1, None, {}), LogOrigin())


class Stage(RebuildingStage):
    """Remembers how it was begun."""

    def __init__(self) -> None:
        super().__init__()
        self.begun: list[tuple[int, int, bool]] = []
        self.based = -1

    def rebase(self, base: int) -> None:
        self.based = base

    def begin_topic(self, generation: int, base: int, *, keep: bool) -> None:
        self.begun.append((generation, base, keep))


def state(applied: int, topic_id: str = OLD, base: int = 0) -> Known:
    """What a changelog says of a partition."""
    return Known(Recovered(applied, b"head", {b"k": b"v"}), LogOrigin(topic_id, base))


def start(stage: Stateful, known: Known, found: InputLog, choice: Choice = "keep") -> Begin:
    """How a partition begins."""
    return begin(stage, known, found, examine(HERE, "changelog", known, found), choice)


@pytest.mark.parametrize(
    ("known", "found", "evidence"),
    [
        (state(9), InputLog(NEW, 0, 100), f"has the id {NEW}, and the state was folded from {OLD}, up to offset 9"),
        (state(9), InputLog(OLD, 0, 9), "ends at offset 9, and the state covers offset 9"),
        (state(9, ""), InputLog("", 0, 3), "ends at offset 3, and the state covers offset 9"),
        (NO_STATE, InputLog(OLD, 0, 9, 5), f"holds no state, though its group has read {HERE.topic}-3 up to offset 4"),
        (state(9), InputLog(OLD, 0, 10), None),
        (state(9), InputLog("", 0, 10), None),
        (state(9, ""), InputLog(NEW, 0, 10), None),
        (state(9), InputLog(OLD, 5, 10), None),
        (state(9), InputLog(OLD, 0, 10, None), None),
        (NO_STATE, InputLog(OLD, 0, 9), None),
        (NO_STATE, InputLog(OLD, 0, 9, 0), None),
    ],
)
def test_a_recreated_topic_is_known_by_its_id_or_its_end_and_a_changelog_by_the_groups_offset(
    known: Known, found: InputLog, evidence: str | None
) -> None:
    finding = examine(HERE, "changelog", known, found)

    assert (finding.evidence if finding else None) == evidence
    if finding:
        assert finding.topic == ("changelog" if known is NO_STATE else HERE.topic)


def findings(known: Known, found: InputLog) -> Mapping[TopicPartition, Recreation]:
    """As `Ownership` collects them, of two partitions."""
    finding = examine(HERE, "changelog", known, found)
    assert finding
    return {HERE: finding, TopicPartition(HERE.topic, 4): finding._replace(partition=4)}


def test_who_shall_stop_says_in_one_sentence_what_was_found_and_what_can_be_chosen() -> None:
    with capture_logs() as logs, pytest.raises(RecreatedTopicError) as caught:
        decide(findings(state(9), InputLog(NEW, 0, 100)), "stop")

    assert str(caught.value) == (
        f"topic forecast-events was deleted and recreated: partition 3 has the id {NEW}, and the state was folded from "
        f"{OLD}, up to offset 9; on_recreated: keep will keep what is known, and go on with the new topic from its "
        "start; rebuild will drop what is known, and fold the new topic from its start; stop (in force) leaves "
        "everything as it is"
    )
    assert caught.value.exit_code == 78
    assert logs == []


@pytest.mark.parametrize(("choice", "action"), [("keep", "keep what is known"), ("rebuild", "drop what is known")])
def test_who_goes_on_says_in_one_line_a_topic_what_will_be_done(choice: Choice, action: str) -> None:
    with capture_logs() as logs:
        decide(findings(state(9), InputLog(NEW, 0, 100)), choice)

    (line,) = logs
    assert (line["topic"], line["partitions"], line["choice"]) == (HERE.topic, [3, 4], choice)
    assert line["action"].startswith(action)


@pytest.mark.parametrize("choice", ["keep", "rebuild"])
def test_lost_state_is_folded_from_what_the_log_still_holds_whatever_is_chosen(choice: Choice) -> None:
    with capture_logs() as logs:
        decide(findings(NO_STATE, InputLog(OLD, 0, 9, 5)), choice)

    (line,) = logs
    assert (line["topic"], line["action"]) == ("changelog", "fold what forecast-events still holds, from its start")


@pytest.mark.parametrize("choice", ["keep", "rebuild"])
def test_offsets_begin_anew_under_another_generation_and_above_all_revisions(choice: Choice) -> None:
    stage = Stage()
    stage.revision = 500

    found = start(stage, state(9), InputLog(NEW, 0, 40), choice)

    assert found == Begin(LogOrigin(NEW, 501, OUTLIVES if choice == "keep" else 40), -1, 0, must_checkpoint=True)
    assert stage.begun == [(topic_generation(NEW), 501, choice == "keep")]
    assert stage.loaded == (b"head", {b"k": b"v"})


def test_without_ids_a_recreated_topic_has_another_generation_too() -> None:
    stage = Stage()

    found = start(stage, state(9, ""), InputLog("", 0, 3))

    assert found.origin == LogOrigin("", 11, OUTLIVES)
    assert stage.begun == [(11, 11, True)]


def test_a_state_goes_on_behind_its_head_and_learns_the_id_of_its_topic() -> None:
    stage = Stage()

    assert start(stage, state(9, "", 70), InputLog(OLD, 0, 20)) == Begin(LogOrigin(OLD, 70), 9, 10)
    assert (stage.begun, stage.based) == ([], 70)


def test_a_first_start_names_its_topic_and_settles_where_it_begins_if_not_at_the_start() -> None:
    stage = Stage()

    with capture_logs() as logs:
        early = start(stage, NO_STATE, InputLog(OLD, 5, 20))
        late = start(stage, NO_STATE, InputLog(OLD, 5, 20, begin=20))

    assert early == Begin(LogOrigin(OLD), -1, 0)
    assert late == Begin(LogOrigin(OLD), 19, 20, must_checkpoint=True)
    assert stage.begun == [(topic_generation(OLD), 0, True)] * 2
    assert [(line["event"], line["records"]) for line in logs] == [("input_skipped", 15)]


def test_lost_state_that_its_log_holds_is_folded_anew_and_other_lost_state_from_the_start() -> None:
    found = InputLog(OLD, 0, 20, 15, begin=20)

    whole, rest = start(Stage(), NO_STATE, found), start(SumStage(), NO_STATE, found)

    assert whole == Begin(LogOrigin(OLD, whole_at=20), 14, 15, must_checkpoint=True)
    assert rest == Begin(LogOrigin(OLD, whole_at=20), -1, 0)


def test_state_of_another_release_cannot_be_kept_without_the_log_that_it_came_from() -> None:
    stage = Stage()
    stage.needs_rebuild = True

    with pytest.raises(RecreatedTopicError, match="on_recreated: rebuild"):
        start(stage, state(9), InputLog(NEW, 0, 40), "keep")


def test_a_topic_without_state_is_known_by_what_the_feed_log_met_of_it() -> None:
    met = [{0: topic_generation(OLD), 1: 0}, {0: topic_generation(OLD), 2: topic_generation(NEW)}]

    assert list(examine_sources("control-events", NEW, met)) == [("control-events", 0)]
    assert examine_sources("control-events", OLD, met[:1]) == {}


def test_of_a_topic_without_state_nothing_is_said_to_be_dropped_or_kept() -> None:
    findings = examine_sources("control-events", NEW, [{0: topic_generation(OLD)}])

    with pytest.raises(RecreatedTopicError) as refused:
        decide(findings, "stop")
    with capture_logs() as lines:
        decide(findings, "rebuild")

    assert "keep or rebuild will both hear what the new topic says" in str(refused.value)
    assert lines[0]["action"].startswith("hear what the new topic says, from its start; settings in force stay")


def test_a_generation_is_exact_in_every_json_reader_and_0_where_there_are_no_ids() -> None:
    assert topic_generation("") == 0
    assert 0 < topic_generation(NEW) < 2**53
    assert topic_generation(OLD) != topic_generation(NEW)
