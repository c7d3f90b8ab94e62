import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from stream_peer.errors import SettingsError
from stream_peer.events import topics
from stream_peer.events.feed_log import OutcomeRevealed, Round, decode_feed_log
from stream_peer.events.partitioning import partition_of
from stream_peer.log.stage import Output
from stream_peer.settings.feed.document import load_document
from stream_peer.tools.replay.file_events import RevealedShare
from stream_peer.tools.replay.files import FileLine
from stream_peer.tools.replay.replay import ReplayOptions, historical, replay, with_settings
from tests.order_free import COMPARED, order_free
from tests.unit.questions.question_log import DAY, HOUR, T0, event, forecast, question, resolution, settings_event
from tests.unit.tools.replay.file_lines import lines, season

QUICK = {"defaults": {"round_every": "9h", "vote_rule": "half"}}


def last_records(values: list[bytes], **options: Any) -> dict[tuple[str, bytes | None], Any]:
    """The last value of each key of each output topic."""
    kept: dict[tuple[str, bytes | None], Any] = {}

    def keep(output: Output) -> None:
        if output.topic in COMPARED:
            kept[output.topic, output.key] = msgspec.json.decode(output.value or b"")

    replay([lines(values)], ReplayOptions(document=QUICK, **options), write=keep)
    return kept


def test_a_file_becomes_weights_of_its_feed() -> None:
    result = replay([lines(season())])

    feed = result.history.feeds["econ"]
    assert feed.weights is not None
    assert feed.weights.questions == feed.weights.resolved == 40
    worst = min(feed.weights.experts, key=lambda expert: expert.mix)
    assert worst.id == "e4"
    assert result.events == len(season())
    assert result.refused == []
    assert result.ended == T0 + 39 * 5 * HOUR + 2 * DAY


def test_the_last_questions_close_even_if_nothing_comes_after_them() -> None:
    values = [question(opens_at=T0, closes_at=T0 + 9 * DAY), *(forecast(e, 0.7, T0 + HOUR) for e in ("a", "b", "c"))]

    result = replay([lines(values)])

    (forecasted,) = result.history.feeds["default"].forecasts.values()
    assert forecasted.mean == 0.7
    assert result.ended == T0 + 9 * DAY


@pytest.mark.parametrize(
    "options",
    [{"partitions": 4, "feed_log_partitions": 3}, {"shuffle": 1}, {"shuffle": 2, "partitions": 2}],
    ids=["partitions", "shuffled", "both"],
)
@pytest.mark.case("C14")
def test_other_interleavings_and_partitions_change_nothing_that_is_order_free(options: dict[str, Any]) -> None:
    straight, other = last_records(season()), last_records(season(), **options)

    assert {key: order_free(key[0], value) for key, value in straight.items()} == {
        key: order_free(key[0], value) for key, value in other.items()
    }
    assert len(straight) == 40 * len(topics.KEYED_BY_QUESTION) + len(topics.KEYED_BY_FEED)


def test_a_replay_repeats_itself_byte_by_byte() -> None:
    def written() -> Iterator[Output]:
        outputs: list[Output] = []
        replay([lines(season())], write=outputs.append)
        yield from outputs

    assert list(written()) == list(written())


def test_a_replay_that_publishes_at_its_end_only_says_the_same_of_questions_and_at_the_end() -> None:
    assert last_records(season(), publishes=False) == last_records(season())


def test_a_replay_that_publishes_at_its_end_only_writes_weights_once() -> None:
    outputs: list[Output] = []
    replay([lines(season())], ReplayOptions(publishes=False), write=outputs.append)

    assert [output.topic for output in outputs].count(topics.WEIGHTS) == 1


def test_the_feed_log_has_the_offsets_and_times_that_kafka_would_give() -> None:
    outputs: list[Output] = []
    replay([lines(season())], ReplayOptions(feed_log_partitions=3), write=outputs.append)

    log = [output for output in outputs if output.topic == topics.FEED_LOG]
    revisions = [
        msgspec.json.decode(output.value or b"")["revision"]
        for output in outputs
        if output.topic == topics.REFERENCE_ANSWERS
    ]
    assert {output.partition for output in log} == {partition_of("econ", 3)}
    assert revisions == list(range(len(log)))
    assert [output.timestamp for output in log] == sorted(output.timestamp for output in log)


def test_bad_lines_are_refused_with_their_place_and_change_nothing() -> None:
    values = season()
    bad: list[FileLine] = [
        FileLine("bad:1", b"{"),
        FileLine("bad:2", forecast("ann", 7, T0, "q000")),
        FileLine("bad:3", settings_event({"defaults": {"history": False}})),
        FileLine("bad:4", forecast("ann", 0.5, T0 + 40 * 365 * DAY, "q000")),
    ]

    result = replay([lines(values)[:40] + bad + lines(values)[40:]])

    clean = replay([lines(values)])
    assert [(line.place, line.reason) for line in result.refused] == [
        ("bad:1", "not-json"),
        ("bad:2", "probability-range"),
        ("bad:3", "not-supported"),
        ("bad:4", "time-range"),
    ]
    assert result.history.feeds["econ"].weights == clean.history.feeds["econ"].weights


def test_an_event_whose_question_only_the_engine_can_read_still_finds_its_partition() -> None:
    odd = b'{"type":"forecast","question_id":"q000","expert_id":"zed","probability":0.9,"at":"%s","closed_at":7}'
    values = [*season(questions=1)[:-1], odd.replace(b"%s", b"2026-03-02T11:00:00Z")]

    result = replay([lines(values)], ReplayOptions(partitions=16))

    (losses,) = result.history.feeds["econ"].losses.values()
    assert "zed" in {expert.id for expert in losses.experts}


def test_all_events_can_be_replayed_as_one_feed() -> None:
    values = season(questions=4, feed="a") + season(questions=4, feed=None)

    result = replay([lines(values)], ReplayOptions(feed_as="all"))

    assert list(result.history.feeds) == ["all"]


def test_only_the_revealed_share_of_outcomes_is_known() -> None:
    none, some = (replay([lines(season())], ReplayOptions(reveal=RevealedShare(share))) for share in (0.0, 0.5))

    unresolved, resolved = none.history.feeds["econ"].weights, some.history.feeds["econ"].weights
    assert unresolved is not None
    assert resolved is not None
    assert unresolved.resolved == 0
    assert 8 < resolved.resolved < 32
    assert none.counts["event", "round"] == 40


@pytest.mark.parametrize("seed", [0, 1])
def test_without_an_interval_a_question_is_scored_once_and_its_outcome_told_right_after(seed: int) -> None:
    outputs: list[Output] = []
    document = {"defaults": {"round_every": None}}

    replay([lines(season())], ReplayOptions(document, reveal=RevealedShare(0.5, seed)), write=outputs.append)

    log = [decode_feed_log(one.value or b"") for one in outputs if one.topic == topics.FEED_LOG]
    rounds = [record for record in log if isinstance(record, Round)]
    assert len({record.question_id for record in rounds}) == len(rounds) == 40
    assert all(record.final for record in rounds)
    outcomes = [(before, record) for before, record in pairwise(log) if isinstance(record, OutcomeRevealed)]
    assert 8 < len(outcomes) < 32
    for before, record in outcomes:
        assert isinstance(before, Round)
        assert before.question_id == record.question_id


def test_progress_is_told_up_to_the_end() -> None:
    seen: list[tuple[int, int]] = []

    replay([lines(season())], progress=lambda done, total: seen.append((done, total)))

    total = len(season())
    assert seen == [*((done, total) for done in range(0, total, 50)), (total, total)]


@pytest.mark.parametrize("days", [40 * 365, 71 * 365 + 18, 125 * 365])
def test_a_file_of_any_age_since_1900_is_scored_as_if_it_were_of_today(days: int) -> None:
    new = season(questions=12)
    old = [re.sub(rb"2026-[^\"]+Z", lambda at: _earlier(at[0], days), value) for value in new]

    assert old != new
    results = [replay([lines(values)]) for values in (new, old)]

    assert [result.refused for result in results] == [[], []]
    today, then = (result.history.feeds["econ"] for result in results)
    assert then.scores() == today.scores()
    assert today.weights is not None
    assert then.weights is not None
    assert then.weights.experts == today.weights.experts


def _earlier(at: bytes, days: int) -> bytes:
    return (datetime.fromisoformat(at.decode()) - timedelta(days=days)).isoformat().encode()


def test_an_empty_file_gives_nothing() -> None:
    result = replay([[]])

    assert result.events == result.ended == 0
    assert result.history.feeds == {}


def test_every_feed_is_historical_whatever_the_document_says() -> None:
    document = {"defaults": {"backdate_limit": "1h", "grace": "5s"}, "feeds": {"econ": {"history": False}, "b": None}}

    book = load_document(historical(document))

    for settings in (book.default, book.of("econ"), book.of("b")):
        assert settings.history
        assert settings.backdate_limit is settings.idle_after is None
        assert settings.grace == 5000


def test_single_settings_can_be_given_by_name() -> None:
    given = with_settings(
        {"defaults": {"grace": "5s"}}, ["round_every=1d", "mixer.peer_rate=0.5", "feeds.econ.min_experts=2"]
    )

    assert given == {
        "defaults": {"grace": "5s", "round_every": "1d", "mixer": {"peer_rate": 0.5}},
        "feeds": {"econ": {"min_experts": 2}},
    }


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: with_settings({}, ["round_every"]),
        lambda: with_settings({}, ["round_every={"]),
        lambda: with_settings({"defaults": {"round_every": "1d"}}, ["round_every.often=1"]),
        lambda: replay([[]], ReplayOptions(document=with_settings({}, ["no_such=1"]))),
    ],
)
def test_settings_that_are_wrong_are_named(wrong: Callable[[], object]) -> None:
    with pytest.raises(SettingsError, match=r"round_every|no_such"):
        wrong()


@pytest.mark.parametrize(
    "assignment", ["defaults=1", "defaults=[]", "feeds=3", "feeds=[1]", "feeds.econ=off", "feeds.econ=[[1]]"]
)
def test_a_section_without_settings_is_named_as_a_fault(assignment: str) -> None:
    with pytest.raises(SettingsError, match=assignment.partition("=")[0]):
        replay([[]], ReplayOptions(document=with_settings({}, [assignment])))


def test_single_settings_are_read_as_those_of_a_file() -> None:
    given = with_settings({}, ["guard=off", "seed=010", "grace=1:30", "feeds={1: {quorum: 7}, no: {stretch: true}}"])

    assert given["defaults"] == {"guard": "off", "seed": "010", "grace": "1:30"}
    assert given["feeds"] == {"1": {"quorum": 7}, "no": {"stretch": True}}


def test_an_outcome_in_a_file_is_told_when_the_file_has_it() -> None:
    values = [
        question(opens_at=T0, closes_at=T0 + DAY),
        *(forecast(e, 0.7, T0 + HOUR) for e in ("a", "b", "c")),
        forecast("a", 0.2, T0 + 2 * DAY),
        resolution(1, T0 + 3 * DAY),
    ]
    times = []

    def note(output: Output) -> None:
        if output.topic == topics.REFERENCE_ANSWERS:
            times.append(output.timestamp)

    replay([lines(values)], write=note)

    assert times == [T0 + 2 * DAY, T0 + 3 * DAY]


def test_events_that_come_before_their_question_leave_no_feed_behind() -> None:
    values = [
        *(forecast(e, 0.7, T0 + HOUR) for e in ("a", "b", "c")),
        forecast("a", 0.2, T0 + DAY),
        question(feed="econ", closes_at=T0 + 3 * DAY, at=T0 + 2 * DAY),
        forecast("b", 0.2, T0 + 3 * DAY),
    ]
    last: dict[tuple[str, bytes | None], bytes | None] = {}

    def note(output: Output) -> None:
        last[output.topic, output.key] = output.value

    result = replay([lines(values)], ReplayOptions(document=QUICK), write=note)

    assert result.history.feeds.keys() == {"econ"}
    assert {last[topic, b"default"] for topic in topics.KEYED_BY_FEED} == {None}
    assert b'"feed":"econ"' in (last[topics.MIXED_FORECASTS, b"q"] or b"")


def control(at: int, kind: str = "expert", **fields: Any) -> bytes:
    return event(kind, feed="econ", **({"at": at} if kind == "expert" else {}), **fields)


def without(expert_id: str, values: list[bytes]) -> list[bytes]:
    return [value for value in values if b'"expert_id":"%b"' % expert_id.encode() not in value]


@pytest.mark.parametrize("options", [{}, {"partitions": 3, "feed_log_partitions": 2}], ids=["one", "several"])
def test_an_expert_that_is_forgotten_is_as_if_it_had_never_been(options: dict[str, Any]) -> None:
    values = season()
    middle = len(values) // 2
    forgets = control(T0 + 4 * DAY, expert_id="e4", forget=True)

    forgotten = last_records([*values[:middle], forgets, *without("e4", values[middle:])], **options)

    never = last_records(without("e4", values), **options)
    assert {key: order_free(key[0], value) for key, value in forgotten.items()} == {
        key: order_free(key[0], value) for key, value in never.items()
    }
    assert len(never) == 40 * len(topics.KEYED_BY_QUESTION) + len(topics.KEYED_BY_FEED)


def test_an_expert_that_is_excluded_has_no_weight_and_gets_it_back_when_it_is_included() -> None:
    def listed(*controls: bytes) -> set[str]:
        weights = replay([lines([*season(), *controls])]).history.feeds["econ"].weights
        assert weights is not None
        return {expert.id for expert in weights.experts}

    end = T0 + 20 * DAY
    excluded, included = (control(end + n, expert_id="e1", excluded=not n) for n in range(2))

    assert listed() - listed(excluded) == {"e1"}
    assert listed(excluded, included) == listed()


def test_a_feed_that_is_reset_counts_from_there_on() -> None:
    values = season()
    middle = 12 * 20

    weights = replay([lines([*values[:middle], control(0, "feed", reset=True), *values[middle:]])]).history.feeds

    assert weights["econ"].weights is not None
    assert weights["econ"].weights.questions < 25


def test_controls_that_ask_for_nothing_are_refused_with_their_place() -> None:
    (refused,) = replay([[*lines(season(2)), FileLine("bad:1", control(T0, expert_id="e1"))]]).refused

    assert (refused.place, refused.reason) == ("bad:1", "contradictory")


def test_a_feed_that_is_deleted_is_not_reported() -> None:
    deleted = replay([lines([*season(3), *season(3, feed="other"), control(0, "feed", delete=True)])])

    assert set(deleted.history.feeds) == {"other"}
