"""Which forecast of a question is scored, whatever is published later."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from stream_peer.events import topics
from stream_peer.events.feed_log import FeedLogRecord, Verdict
from stream_peer.events.outputs import MixedForecast
from stream_peer.feeds.columns import FEED, UNIT
from stream_peer.feeds.scored import scored_of
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.stage import Effects
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
    stage,
    withdrawn,
)

FIRST = {"ann": 0.9, "bob": 0.7, "cyd": 0.2}
LATER = {"ann": 0.9, "bob": 0.7, "cyd": 0.2, "dan": 0.6}
OTHERS = [
    round_of("a", {"ann": 0.9, "bob": 0.6, "cyd": 0.1}, final=True),
    outcome("a", 1),
    round_of("b", {"ann": 0.8, "bob": 0.3, "cyd": 0.4}, final=True),
    outcome("b", 0),
]
OPEN = [round_of("q", FIRST, boundary=1), round_of("q", FIRST, boundary=2, final=True)]
"""A question up to its close: its final round has the revision 1."""


def said(events: Sequence[FeedLogRecord], question: str = "q") -> list[dict[str, Any]]:
    """The records of a question, in their order."""
    feed_stage, effects, log = stage(), Effects(), log_of(events)
    for place, record in enumerate(log):
        feed_stage.step(record, effects)
        effects.outputs += carry_out_rebuilds(feed_stage, log[: place + 1])
        feed_stage.publish(effects)
    assert feed_stage.agrees()
    decoded = (msgspec.json.decode(o.value or b"{}") for o in effects.outputs if o.topic == topics.MIXED_FORECASTS)
    return [record for record in decoded if record["question"] == question]


def evaluated(feed_stage: FeedStage) -> float:
    return float(feed_stage.feeds.feed("f").buckets.sums.feed[FEED.at("evaluated")]) * UNIT


CHANGES = {
    "other forecasts": [round_of("q", LATER, boundary=2, final=True)],
    "an outcome, then other forecasts": [outcome("q", 1), *OTHERS, round_of("q", LATER, boundary=2, final=True)],
    "a close moved back": [withdrawn("q", boundary=2), round_of("q", FIRST, boundary=1, final=True)],
    "a question reopened and closed later": [
        round_of("q", FIRST, boundary=2),
        *OTHERS,
        round_of("q", LATER, boundary=3, final=True),
    ],
    "all rounds withdrawn, then others": [
        *(withdrawn("q", boundary=b) for b in (1, 2)),
        *OTHERS,
        round_of("q", LATER, boundary=1, final=True),
    ],
    "annulled, then resolved": [outcome("q", "annulled"), *OTHERS, outcome("q", 1)],
    "an outcome taken back": [outcome("q", 1), outcome("q", "open"), *OTHERS, round_of("q", LATER, boundary=2)],
    "an expert forgotten": [*OTHERS, outcome("q", 1), expert("nobody", forget=True), *OTHERS],
    "another meaning": [*OTHERS, settings({"defaults": {"loss": "log"}}), round_of("q", LATER, boundary=2)],
}


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_nothing_that_comes_later_changes_the_scored_forecast(changes: Sequence[FeedLogRecord]) -> None:
    before, first, *later = said([*OPEN, *changes])

    assert (before["final"], before["scored"]) == (False, None)
    assert (first["final"], first["scored"]["revision"], first["revision"]) == (True, 1, 1)
    assert {name: first["scored"][name] for name in ("mix", "stretched", "boundary", "selected")} == {
        name: first[name] for name in ("mix", "stretched", "boundary", "selected")
    }
    assert later
    assert [record["scored"] for record in later] == [first["scored"]] * len(later)


def test_a_correction_is_published_under_weights_that_know_more_and_is_not_scored() -> None:
    late = [*OPEN, outcome("q", 1), *OTHERS, round_of("q", LATER, boundary=2, final=True)]

    last = said(late)[-1]

    assert last["mix"] != last["scored"]["mix"]
    assert last["revision"] > last["scored"]["revision"]
    view = folded(log_of(late))[0].views()["f"]
    losses = [1 - last["scored"]["mix"]]
    losses += [said(late, "a")[-1]["scored"]["mix"] - 1, said(late, "b")[-1]["scored"]["mix"]]
    assert view.brier["mix"] == pytest.approx(sum(loss**2 for loss in losses) / 3)


@pytest.mark.parametrize(
    ("events", "boundary"),
    [
        ([round_of("q", FIRST, boundary=1), round_of("q", FIRST, boundary=2), outcome("q", 1)], 2),
        ([round_of("q", FIRST, boundary=2), withdrawn("q", boundary=2), outcome("q", 1)], None),
        ([outcome("q", 1)], None),
        ([round_of("q", FIRST, boundary=2, after_outcome=True), outcome("q", 1)], None),
    ],
    ids=["rounds, none final", "rounds withdrawn", "no round", "rounds known after an outcome elsewhere"],
)
def test_an_outcome_before_a_final_round_decides_once_for_all(
    events: Sequence[FeedLogRecord], boundary: int | None
) -> None:
    close = [outcome("q", "open"), round_of("q", LATER, boundary=1, final=True), outcome("q", 0)]

    last = said([*events, *OTHERS, *close])[-1]

    assert last["state"] == "resolved"
    if boundary is None:
        assert last["scored"] is None
    else:
        rounds = [record for record in said(events) if record["state"] == "scored"]
        assert last["scored"]["revision"] == rounds[-1]["revision"]
        assert last["scored"]["boundary"] == rounds[-1]["boundary"]


def test_a_scored_forecast_that_a_withdrawal_has_left_names_a_record_that_says_it() -> None:
    events = [round_of("q", FIRST, boundary=1), round_of("q", LATER, boundary=2), withdrawn("q", boundary=2)]

    *_, last = said([*events, outcome("q", 1)])

    (named,) = (record for record in said(events) if record["revision"] == last["scored"]["revision"])
    assert named["boundary"] == last["scored"]["boundary"] == said(events[:1])[0]["boundary"]
    assert named["mix"] == last["scored"]["mix"]


def test_the_scored_forecast_counts_only_while_the_question_is_resolved() -> None:
    path: list[tuple[Verdict, float]] = [(1, 1.0), ("open", 0.0), (0, 1.0), ("annulled", 0.0), (1, 1.0)]
    for length in range(len(path) + 1):
        feed_stage, effects = folded(log_of([*OPEN, *(outcome("q", value) for value, _ in path[:length])]))
        record = msgspec.convert(newest(effects.outputs, topics.MIXED_FORECASTS)["q"], MixedForecast)
        counts = path[length - 1][1] if length else 0.0

        assert evaluated(feed_stage) == counts
        assert (scored_of(record) is not None) == bool(counts)

    gone, effects = folded(log_of([*OPEN, outcome("q", 1), *(withdrawn("q", boundary=b) for b in (1, 2))]))
    record = msgspec.convert(newest(effects.outputs, topics.MIXED_FORECASTS)["q"], MixedForecast)
    assert (evaluated(gone), scored_of(record), record.scored is None) == (0.0, None, False)


def test_a_question_that_moves_is_scored_where_it_is_resolved_and_nowhere_if_it_was_resolved_before() -> None:
    left = [*(withdrawn("q", boundary=b) for b in (1, 2))]
    arrives = [round_of("q", LATER, boundary=2, feed="g", final=True), outcome("q", 1, feed="g")]
    afterwards = [round_of("q", LATER, boundary=2, feed="g", final=True, after_outcome=True), *arrives[1:]]

    open_then, _ = folded(log_of([*OPEN, *left, *arrives]))
    resolved_then, _ = folded(log_of([*OPEN, outcome("q", 1), *left, outcome("q", "open"), *afterwards]))

    for feed_stage, wanted in ((open_then, 1.0), (resolved_then, 0.0)):
        assert evaluated(feed_stage) == 0.0
        sums = feed_stage.feeds.feed("g").buckets.sums
        assert float(sums.feed[FEED.at("evaluated")]) * UNIT == wanted
        assert float(sums.feed[FEED.at("resolved")]) * UNIT == 1.0


def test_after_a_reset_a_round_of_a_question_that_was_resolved_is_no_forecast() -> None:
    again = round_of("q", LATER, boundary=2, final=True, after_outcome=True)

    last = said([*OPEN, outcome("q", 1), changed(reset=True), again])[-1]

    assert last["scored"] is None


def test_of_an_expert_who_is_forgotten_the_scored_forecast_keeps_no_forecast() -> None:
    events = [*OTHERS, *OPEN, outcome("q", 1)]
    first = said(events)[-1]["scored"]
    drawn = first["selected"]["expert"]
    other = next(name for name in FIRST if name != drawn)

    without_other, without_drawn = (said([*events, expert(name, forget=True)])[-1] for name in (other, drawn))

    assert without_other["scored"] == first
    assert without_other["mix"] != first["mix"]
    assert without_drawn["scored"] == {**first, "selected": None}
    feed_stage, _ = folded(log_of([*events, expert(drawn, forget=True)]))
    entry = feed_stage.feeds.feed("f").ledger.entries["q"]
    assert entry.first_final is not None
    assert len(entry.first_final) == len(entry.rounds[-1])
    changelog = Changelog()
    changelog.take(feed_stage)
    assert changelog.restored().feeds.feed("f").ledger.entries["q"].first_final == entry.first_final


def test_a_scored_forecast_of_which_nobody_is_left_stays_as_it_was_published() -> None:
    alone = [round_of("q", FIRST, boundary=1), round_of("q", {"dan": 0.4}, boundary=2, final=True)]
    first = said(alone)[-1]["scored"]

    open_then, resolved_then = (
        said([*alone, expert("dan", forget=True), *more])[-1]
        for more in ([round_of("q", LATER, boundary=3, final=True)], [outcome("q", 1)])
    )

    assert open_then["scored"] == resolved_then["scored"] == {**first, "selected": None}
    assert resolved_then["state"] == "resolved"


def test_a_rebuild_keeps_how_scored_forecasts_did_of_questions_that_have_left_the_ledger() -> None:
    short = {"ledger_for": "1h", "retract_for": "1h"}
    events = [*OTHERS, *OPEN, outcome("q", 1)]
    log = log_of(events)
    (late,) = log_of([round_of("late", FIRST, boundary=9)], len(log))
    log.append(late._replace(timestamp=late.timestamp + 86_400_000))
    feed_stage, _ = folded(log, stage(**short))
    before = feed_stage.views()["f"]
    assert [*feed_stage.feeds.feed("f").ledger.entries] == ["late"]

    (forget,) = log_of([expert("bob", forget=True)], len(log))
    after, _ = folded([forget._replace(timestamp=log[-1].timestamp)], feed_stage, log)

    assert after.agrees()
    assert after.views()["f"].brier == before.brier
    assert evaluated(after) == 3.0
