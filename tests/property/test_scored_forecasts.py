"""No scored forecast changes once the outcome of its question is known, whatever comes in whatever order.

Events of three questions go through both stages: shuffled, with late forecasts, corrections, reopenings, moves and
annulments among them.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_peer.events import topics
from stream_peer.events.feed_log import OutcomeRevealed, read_feed_log
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.stage import Effects, LogRecord
from tests.feed_histories import Changelog, carry_out_rebuilds
from tests.feed_histories import stage as feed_stage_with
from tests.hypothesis_profiles import examples
from tests.unit.questions.question_log import DAY, HOUR, T0, Partition, forecast, question, resolution, tick

QUESTIONS = ("q0", "q1", "q2")
EXPERTS = ("ann", "bob", "cyd", "dan")
FEEDS = ("econ", "sport")
SETTINGS: dict[str, Any] = {"history": True, "round_every": "10h", "ledger_for": "9000d", "retract_for": "9000d"}

names = st.sampled_from(QUESTIONS)
moments = st.integers(0, 60).map(lambda hours: T0 + hours * HOUR)
maybe = moments | st.just(...)
changes = st.one_of(
    st.builds(forecast, st.sampled_from(EXPERTS), st.sampled_from([0.1, 0.6, 0.9, None]), moments, names),
    st.builds(lambda q, at, closes: question(q, at=at, closes_at=closes), names, moments, maybe),
    st.builds(lambda q, at, feed: question(q, at=at, feed=feed), names, moments, st.sampled_from(FEEDS)),
    st.builds(
        lambda outcome, at, q, closed: resolution(outcome, at, q, closed_at=closed),
        st.sampled_from([0, 1, 1, None, "open"]),
        moments,
        names,
        maybe,
    ),
    st.builds(tick, moments),
)


def ordinary() -> list[bytes]:
    """What a platform sends: each question opens, is forecast, closes and is resolved."""
    events = []
    for number, name in enumerate(QUESTIONS):
        opens = T0 + number * 15 * HOUR
        events.append(question(name, at=opens, opens_at=opens, closes_at=opens + 12 * HOUR, feed="econ"))
        events += [
            forecast(expert, 0.2 + 0.2 * place, opens + (1 + place) * HOUR, name)
            for place, expert in enumerate(EXPERTS[:3])
        ]
        events.append(resolution(number % 2, opens + 14 * HOUR, name))
    return events


def mingled(extra: Sequence[bytes], order: Sequence[int]) -> list[bytes]:
    """Ordinary events with others among them, each before the one of its number."""
    events: list[bytes] = []
    for number, event in enumerate(ordinary()):
        events += [other for other, place in zip(extra, order, strict=False) if place == number]
        events.append(event)
    return [*events, *(other for other, place in zip(extra, order, strict=False) if place >= len(ordinary()))]


def feed_log(events: Sequence[bytes]) -> list[LogRecord]:
    """What the question stage makes of them."""
    partition = Partition(now=T0 + 100 * DAY, **SETTINGS)
    partition.send(*events, tick(T0 + 90 * DAY))
    written = [output for output in partition.effects.outputs if output.topic == topics.FEED_LOG]
    return [
        LogRecord(offset, T0 + offset, output.key or b"", output.value or b"") for offset, output in enumerate(written)
    ]


def scored(stage: FeedStage) -> dict[tuple[str, str], tuple[bytes | None, int]]:
    """The scored forecast of each question in each feed; the revision says nothing while there is none."""
    return {
        (name, question_id): (entry.first_final, entry.revision if entry.first_final else -1)
        for name, feed in stage.feeds.by_name.items()
        for question_id, entry in feed.ledger.entries.items()
    }


def stays(log: Sequence[LogRecord], restart: int) -> FeedStage:
    """Fold a log, and look after each record whether a scored forecast changes that was there or may not come."""
    stage, changelog = feed_stage_with(), Changelog()
    known: dict[tuple[str, str], Any] = {}
    for record in log:
        event, effects = read_feed_log(record.value), Effects()
        stage.step(record, effects)
        if record.offset == restart:
            changelog.take(stage)
            stage = changelog.restored()
        now = scored(stage)
        known = {key: found for key, found in known.items() if key[0] in stage.feeds.by_name}  # of feeds that go on
        assert {key: now[key] for key in known} == known
        known |= {key: found for key, found in now.items() if found[0] is not None}
        if isinstance(event, OutcomeRevealed) and event.outcome in (0, 1):
            assert (event.feed, event.question_id) in known
        check_outputs(effects, stage)
    assert stage.agrees()
    return stage


def check_outputs(effects: Effects, stage: FeedStage) -> None:
    """What is published of a question has its scored forecast, which is of that revision or an earlier one."""
    for output in effects.outputs:
        if output.topic == topics.MIXED_FORECASTS and output.value is not None:
            record = msgspec.json.decode(output.value)
            entry = stage.feeds.feed(record["feed"]).ledger.entries[record["question"]]
            found = record["scored"]
            assert (found is None) == (not entry.first_final)
            if found is not None:
                assert found["revision"] == entry.revision <= record["revision"]
                if found["revision"] == record["revision"]:
                    assert {name: record[name] for name in found if name in record} == found


histories = st.lists(st.tuples(changes, st.integers(0, 18)), max_size=12)
everything = st.permutations(ordinary())


@settings(max_examples=examples(80), deadline=None)
@given(histories, st.integers(0, 40))
def test_late_lines_corrections_reopenings_moves_and_annulments_change_no_scored_forecast(
    history: list[tuple[bytes, int]], restart: int
) -> None:
    log = feed_log(mingled([change for change, _ in history], [place for _, place in history]))

    stage = stays(log, restart)

    straight = stays(log, -1)
    assert scored(stage) == scored(straight)
    changelog = Changelog()
    changelog.take(straight)
    assert scored(changelog.restored()) == scored(straight)
    stage.rebuild_all()
    carry_out_rebuilds(stage, log)
    assert scored(stage) == scored(straight)
    assert stage.feeds.by_name.keys() == straight.feeds.by_name.keys()
    for name, feed in stage.feeds.by_name.items():
        assert feed.buckets.sums.equals(straight.feeds.feed(name).buckets.sums)


@settings(max_examples=examples(40), deadline=None)
@given(everything, st.lists(changes, max_size=4), st.integers(0, 40))
def test_whatever_the_order_of_the_lines_no_scored_forecast_changes(
    events: list[bytes], more: list[bytes], restart: int
) -> None:
    stays(feed_log([*events, *more]), restart)


@settings(max_examples=examples(40), deadline=None)
@given(histories, st.sampled_from([{"loss": "log"}, {"min_experts": 2}, {"vote_rule": "own-median"}]))
def test_a_rebuild_under_another_meaning_leaves_the_scored_forecasts_and_their_scores(
    history: list[tuple[bytes, int]], meaning: dict[str, Any]
) -> None:
    log = feed_log(mingled([change for change, _ in history], [place for _, place in history]))
    stage = stays(log, -1)
    before, evaluations = scored(stage), evaluated(stage)

    for name in stage.feeds.by_name:
        stage.feeds.due.add(name)
    stage.feeds.book = feed_stage_with(**meaning).feeds.book
    carry_out_rebuilds(stage, log)

    assert scored(stage) == before
    assert evaluated(stage) == evaluations
    assert stage.agrees()


def evaluated(stage: FeedStage) -> dict[str, Sequence[tuple[int, int]]]:
    return {name: feed.buckets.sums.evaluations().feed for name, feed in stage.feeds.by_name.items()}
