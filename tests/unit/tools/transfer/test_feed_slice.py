"""What of the feed-log moves with a feed, and that the feed is the same where its slice is appended."""

from collections.abc import Sequence

import msgspec
import pytest

from stream_peer.errors import FeedTransferError
from stream_peer.events import topics
from stream_peer.events.feed_log import (
    AnyFeedLogRecord,
    ExpertChanged,
    FeedLogRecord,
    Round,
    RoundWithdrawn,
    SettingsChanged,
)
from stream_peer.feeds.stage import FeedStage
from stream_peer.tools.transfer.feed_file import Line, RecordLine
from stream_peer.tools.transfer.reshape import Pseudonyms, all_with_pseudonyms, renamed
from tests.feed_histories import (
    Changelog,
    carry_out_rebuilds,
    changed,
    expert,
    folded,
    log_of,
    newest,
    outcome,
    round_of,
    settings,
    without_evaluations,
)
from tests.feed_transfers import FORECASTS, PAST, exported_lines, import_log, lines_of
from tests.former_release import former_import, former_lines

NAMES = Pseudonyms(b"a key of some length", questions=True)


def records_of(lines: Sequence[Line]) -> list[AnyFeedLogRecord]:
    return [line.record for line in lines if isinstance(line, RecordLine)]


def exported(events: Sequence[FeedLogRecord]) -> list[AnyFeedLogRecord]:
    return records_of(exported_lines(events))


def assert_same_feed(one: FeedStage, other: FeedStage) -> None:
    """The same experts and sums, but for scored forecasts: where one was published, it stays as it was."""
    feed, twin = one.feeds.feed("f"), other.feeds.feed("f")
    assert feed.roster.stored() == twin.roster.stored()
    assert without_evaluations(feed.buckets.sums).equals(without_evaluations(twin.buckets.sums))
    assert one.agrees()


def test_records_of_the_feed_and_settings_about_it_are_in_a_file_and_no_others() -> None:
    document = {"defaults": {"min_experts": 2}, "feeds": {"f": {"grace": "1s"}, "g": {}}}
    events = [settings(document), *PAST[:3], round_of("other", FORECASTS, feed="g"), changed("g", delete=True)]

    first, *rest = exported(events)

    assert isinstance(first, SettingsChanged)
    assert first.document == {"defaults": {"min_experts": 2}, "feeds": {"f": {"grace": "1s"}}}
    assert [type(record) for record in rest] == [ExpertChanged, Round, Round]
    assert {record.feed for record in rest} == {"f"}


def test_settings_of_a_file_are_not_appended() -> None:
    log = import_log(exported_lines([settings({"defaults": {"min_experts": 2}}), *PAST]))

    assert [record.offset for record in log] == list(range(len(PAST)))
    assert {record.key for record in log} == {b"f"}


def test_nothing_from_before_a_deletion_moves_and_all_from_before_a_reset_does() -> None:
    deleted = exported([round_of("q1", FORECASTS), expert("ann", rename="eve"), changed(delete=True), *PAST])
    reset = exported([*PAST, changed(reset=True), round_of("q1", FORECASTS)])

    assert len(deleted) == len(PAST)
    assert len(reset) == len(PAST) + 2


def test_repeats_are_left_out() -> None:
    log = log_of(PAST)
    again = [*log, *(record._replace(offset=len(log) + record.offset) for record in log)]
    feed_stage, _ = folded(again)

    assert len(records_of(lines_of(feed_stage, again))) == len(PAST)


def test_parts_of_a_round_are_put_together() -> None:
    whole = round_of("big", FORECASTS)
    parts = [
        msgspec.structs.replace(
            whole, experts=whole.experts[a:b], probabilities=whole.probabilities[a:b], part=number, parts=2
        )
        for number, (a, b) in enumerate([(0, 2), (2, 4)])
    ]

    (record,) = exported([*parts, parts[0]])

    assert isinstance(record, Round)
    assert (record.experts, record.part, record.parts) == (whole.experts, 0, 1)


@pytest.mark.case("C22")
def test_experts_who_were_forgotten_are_in_no_line_and_refused_where_the_feed_goes() -> None:
    events = [
        *PAST,
        expert("cyd", rename="zoe"),
        expert("zoe", team="blue"),
        round_of("alone", {"cyd": 0.4}),
        round_of("n", {"ann": 0.2, "zoe": 0.9}),
        expert("cyd", forget=True),
        expert("bob", rename="rob"),
    ]
    log = log_of(events)
    there, _ = folded(log)
    lines = lines_of(there, log)
    moved = import_log(lines)

    here, _ = folded(moved)

    assert not [name for name in (b'"cyd"', b'"zoe"') if name in msgspec.json.encode(lines)]
    assert [type(record) for record in records_of(lines)][-3:] == [RoundWithdrawn, Round, ExpertChanged]
    assert here.feeds.feed("f").roster.stored() == there.feeds.feed("f").roster.stored()
    assert_same_feed(here, there)
    more = log_of([round_of("m", {"cyd": 0.3, "ann": 0.4}), expert("zoe", team="red")], len(moved))
    _, effects = folded(more, here)
    assert [row["id"] for row in newest(effects.outputs, topics.PEER_LOSSES)["m"]["experts"]] == ["ann"]
    assert effects.counts["dead-letter", "forgotten"] == 1


@pytest.mark.case("C22")
def test_who_was_forgotten_here_does_not_come_back_with_a_feed() -> None:
    before = log_of([expert("ann", forget=True)])
    here, _ = folded([*before, *import_log(exported_lines(), first=1)])

    assert here.feeds.feed("f").roster.experts == ["bob", "cyd", "dan"]
    assert here.agrees()


@pytest.mark.case("C22")
def test_a_digest_takes_out_an_expert_whom_a_reset_feed_still_knows() -> None:
    log = log_of([*PAST, expert("cyd", forget=True)])
    lines = lines_of(folded(log)[0], log)
    known = log_of([round_of("own", FORECASTS), changed(reset=True)])

    here, _ = folded([*known, *import_log(lines, first=2)])

    assert "cyd" not in here.feeds.feed("f").roster.experts
    assert here.agrees()


def test_after_a_move_other_settings_score_its_rounds_again_and_a_rebuild_gives_the_same() -> None:
    lines = exported_lines()
    changes = log_of([settings({"defaults": {"loss": "log"}}), outcome("q5", 1)], 100)
    log = [*import_log(lines), *changes]
    plain = [*log_of(PAST), *changes]

    here, there = folded(log)[0], folded(plain)[0]
    changelog = Changelog()
    changelog.take(here)
    head = msgspec.msgpack.decode(changelog.head or b"")
    changelog.head = msgspec.msgpack.encode([0, *head[1:]])
    again = changelog.restored()
    carry_out_rebuilds(again, log)

    assert here.feeds.feed("f").settings.loss == "log"
    assert_same_feed(here, there)
    assert_same_feed(again, here)


def test_another_name_is_in_every_line() -> None:
    lines = [renamed(line, "f", "g") for line in exported_lines([settings({"feeds": {"f": {"grace": "1s"}}}), *PAST])]

    assert b'"f"' not in msgspec.json.encode(lines)


def test_pseudonyms_stand_in_every_line_in_place_of_ids() -> None:
    events = [*PAST, expert("ann", rename="eve"), expert("eve", team="blue"), round_of("n", {"ann": 0.1, "bob": 0.2})]
    plain = exported_lines(events)

    lines = list(all_with_pseudonyms(plain, NAMES))

    text = msgspec.json.encode(lines)
    assert not [
        name for name in ("ann", "bob", "cyd", "dan", "eve", "red", "blue", "q1") if f'"{name}"'.encode() in text
    ]
    assert len(lines) == len(plain) - 1  # nobody is renamed
    here, there = folded(import_log(lines))[0].feeds.feed("f"), folded(log_of(events))[0].feeds.feed("f")
    assert sorted(here.roster.experts) == sorted(map(NAMES.expert, there.roster.experts))
    assert {NAMES.expert(expert): NAMES.team(team) for expert, team in there.roster.teams.items()} == here.roster.teams


def test_a_feed_that_an_earlier_release_moved_moves_again_as_it_is_and_only_so() -> None:
    past = log_of(PAST)
    former = former_import(former_lines(folded(past)[0], past[-1].offset))
    log = [*former, *log_of([round_of("n", {"ann": 0.1, "bob": 0.2, "cyd": 0.7}), outcome("q4", 1)], len(former))]
    there, _ = folded(log)

    lines = lines_of(there, log)
    here, _ = folded(import_log(lines))

    assert_same_feed(here, there)
    with pytest.raises(FeedTransferError, match="without --as or pseudonyms"):
        list(all_with_pseudonyms(lines, NAMES))
    with pytest.raises(FeedTransferError, match="without --as or pseudonyms"):
        [renamed(line, "f", "g") for line in lines]
    forgotten = [*log, *log_of([expert("ann", forget=True)], len(log))]
    with pytest.raises(FeedTransferError, match="experts were forgotten since"):
        lines_of(folded(forgotten)[0], forgotten)
