"""What both stages do when an expert is renamed: weight and past go on under the new id."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from stream_peer.errors import FeedTransferError, RejectedEvent
from stream_peer.events import topics
from stream_peer.events.feed_log import FeedLogRecord
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.ids import Names
from stream_peer.log.stage import Effects
from stream_peer.tools.transfer.feed_file import Header
from stream_peer.tools.transfer.feed_import import Landing
from stream_peer.tools.transfer.reshape import Pseudonyms, all_with_pseudonyms
from tests import feed_histories as history
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
)
from tests.feed_transfers import import_log, lines_of
from tests.unit.questions.question_log import DAY, GRACE, HOUR, T0, Partition, delete, event, forecast, forget, question
from tests.unit.questions.question_log import stage as question_stage
from tests.unit.questions.test_moved import empty, import_into
from tests.unit.questions.test_moved import lines_of as question_lines

FORECASTS = {"ann": 0.9, "bob": 0.7, "cyd": 0.2, "dan": 0.8}
PAST: list[FeedLogRecord] = [
    *(round_of(f"q{k}", {**FORECASTS, "cyd": 0.1 * k}, boundary=k % 3, final=True) for k in range(8)),
    *(outcome(f"q{k}", k % 2) for k in range(4)),  # type: ignore[arg-type]
]
CLOSE = T0 + 2 * DAY


def rename(expert_id: str, new: str, feed: str = "econ") -> bytes:
    return event("expert", feed=feed, expert_id=expert_id, at=T0, rename=new)


def opened(**defaults: Any) -> Partition:
    partition = Partition(**defaults)
    partition.send(question(feed="econ", opens_at=T0, closes_at=CLOSE))
    for name, probability in FORECASTS.items():
        partition.send(forecast(name, probability, T0 + HOUR), now=T0 + HOUR)
    return partition


def last_round(partition: Partition) -> dict[str, float]:
    partition.pass_to(CLOSE + GRACE)
    return partition.told.forecasts()[CLOSE]


def reasons(effects: Effects) -> list[str]:
    return [detail for (kind, detail), count in effects.counts.items() if kind == "dead-letter" for _ in range(count)]


def weights(outputs: Effects) -> dict[str, Any]:
    return newest(outputs.outputs, topics.WEIGHTS)["f"]


# --- ids ---


def test_every_id_that_an_expert_ever_had_leads_to_the_first_one() -> None:
    names = Names()
    for before, after in (("ann", "anna"), ("anna", "hanna"), ("ann", "ann"), ("hanna", "anna")):
        names.give(before, after)

    assert {names.first(name) for name in ("ann", "anna", "hanna")} == {"ann"}
    assert names.shown("ann") == "anna"
    assert names.all_of("hanna") == ["ann", "hanna", "anna"]


@pytest.mark.parametrize(("before", "after"), [("bob", "anna"), ("bob", "ann")])
def test_an_id_of_a_renamed_expert_is_given_to_no_other(before: str, after: str) -> None:
    names = Names({"ann": ["anna"]})

    with pytest.raises(RejectedEvent, match="already"):
        names.give(before, after)

    assert names.given == {"ann": ["anna"]}


# --- questions ---


@pytest.mark.parametrize("restarts", [False, True])
def test_forecasts_under_the_new_id_and_the_old_one_count_for_one_expert(*, restarts: bool) -> None:
    partition = opened()
    partition.control(rename("dan", "dan-2"))
    if restarts:
        partition.restart(question_stage())
    partition.send(forecast("dan-2", 0.3, T0 + 2 * HOUR), now=T0 + 2 * HOUR)
    partition.send(forecast("dan", 0.4, T0 + 3 * HOUR), now=T0 + 3 * HOUR)
    batch = event("forecasts", question_id="q", at=T0 + 4 * HOUR, forecasts={"dan-2": 0.5, "ann": 0.6})
    partition.send(batch, now=T0 + 4 * HOUR)

    assert last_round(partition) == {**FORECASTS, "ann": 0.6, "dan": 0.5}


def test_a_withdrawal_under_the_new_id_takes_back_what_was_said_under_the_old_one() -> None:
    partition = opened()
    partition.control(rename("dan", "dan-2"))
    partition.send(forecast("dan-2", None, T0 + 2 * HOUR), now=T0 + 2 * HOUR)

    assert "dan" not in last_round(partition)


def test_what_was_said_under_the_new_id_before_the_rename_came_counts_for_the_expert_too() -> None:
    partition = opened(round_every="1d")
    partition.send(forecast("dan-2", 0.3, T0 + 2 * HOUR), now=T0 + 2 * HOUR)
    partition.pass_to(T0 + DAY + GRACE)
    partition.control(rename("dan", "dan-2"))

    assert partition.told.forecasts()[T0 + DAY] == {**FORECASTS, "dan": 0.3}


def test_an_expert_of_another_feed_keeps_its_id() -> None:
    partition = opened()
    partition.control(rename("dan", "dan-2", feed="sport"))
    partition.send(forecast("dan-2", 0.3, T0 + 2 * HOUR), now=T0 + 2 * HOUR)

    assert last_round(partition) == {**FORECASTS, "dan-2": 0.3}


def test_a_question_that_comes_to_the_feed_later_knows_its_renamed_experts() -> None:
    partition = Partition()
    partition.control(rename("dan", "dan-2"))
    partition.send(question(opens_at=T0, closes_at=CLOSE), forecast("dan-2", 0.3, T0), forecast("ann", 0.4, T0))
    partition.send(question(feed="econ", at=T0 + HOUR), now=T0 + HOUR)

    assert last_round(partition) == {"ann": 0.4, "dan": 0.3}


@pytest.mark.parametrize("named", ["dan", "dan-2", "dan-3"])
def test_erasing_any_id_of_an_expert_erases_all_of_them(named: str) -> None:
    partition = opened()
    partition.control(rename("dan", "dan-2"))
    partition.control(rename("dan-2", "dan-3"))
    partition.send(forecast("dan-2", 0.3, T0 + 2 * HOUR), now=T0 + 2 * HOUR)
    partition.control(forget(named))
    for name in ("dan", "dan-2", "dan-3"):
        partition.send(forecast(name, 0.5, T0 + 3 * HOUR), now=T0 + 3 * HOUR)

    assert partition.count("dead-letter", "forgotten") == 3
    assert b"dan" not in partition.stage.snapshot().head
    assert set(last_round(partition)) == {"ann", "bob", "cyd"}


def test_nobody_is_renamed_from_or_to_an_erased_id() -> None:
    partition = opened()
    partition.control(forget("dan"))
    partition.control(rename("dan", "new"))
    partition.control(rename("ann", "dan"))

    assert partition.count("dead-letter", "forgotten") == 2
    assert set(last_round(partition)) == {"ann", "bob", "cyd"}


def test_names_end_with_their_feed() -> None:
    partition = opened()
    partition.control(rename("dan", "dan-2"))
    partition.control(delete())
    partition.send(question(feed="econ", opens_at=T0, closes_at=CLOSE), forecast("dan-2", 0.3, T0 + 2 * HOUR))

    assert last_round(partition) == {"dan-2": 0.3}


def test_names_outlive_the_topic_that_told_of_them() -> None:
    partition = opened()
    partition.control(rename("dan", "dan-2"))
    partition.stage.begin_topic(7, 0, keep=False)
    partition.send(question(feed="econ", opens_at=T0, closes_at=CLOSE), forecast("dan-2", 0.3, T0 + 2 * HOUR))

    assert last_round(partition) == {"dan": 0.3}


def test_imported_questions_know_experts_by_the_names_that_the_file_tells() -> None:
    there = opened()
    lines = question_lines(there, names={"dan": ["dan-2"]})
    here = empty(now=T0 + HOUR)
    import_into(here, lines)
    here.send(forecast("dan-2", 0.3, T0 + 2 * HOUR), now=T0 + 2 * HOUR)

    assert last_round(here) == {**FORECASTS, "dan": 0.3}


def test_who_was_erased_here_under_a_later_id_is_not_imported_under_an_earlier_one() -> None:
    here = empty(now=T0 + HOUR)
    here.control(forget("dan-2"))
    import_into(here, question_lines(opened(), names={"dan": ["dan-2"]}))
    here.send(forecast("dan", 0.3, T0 + 2 * HOUR), now=T0 + 2 * HOUR)

    assert here.count("dead-letter", "forgotten") == 1
    assert set(last_round(here)) == {"ann", "bob", "cyd"}


# --- feeds ---


def test_outputs_show_the_newest_id_in_its_place_of_the_order_and_the_numbers_stay() -> None:
    log = [*PAST, round_of("last", FORECASTS, final=True), outcome("last", 1)]
    _, plain = folded(log_of(log))
    _, effects = folded(log_of([*PAST, expert("ann", rename="zoe"), *log[len(PAST) :]]))

    before = {row.pop("id"): row for row in weights(plain)["experts"]}
    after = {row.pop("id"): row for row in weights(effects)["experts"]}
    assert list(after) == ["bob", "cyd", "dan", "zoe"]
    assert after["zoe"] == pytest.approx(before["ann"])
    losses = newest(effects.outputs, topics.PEER_LOSSES)["last"]["experts"]
    assert [row["id"] for row in losses] == ["bob", "cyd", "dan", "zoe"]
    selected = [newest(one.outputs, topics.MIXED_FORECASTS)["last"]["selected"] for one in (plain, effects)]
    assert {"ann": "zoe"}.get(selected[0]["expert"], selected[0]["expert"]) == selected[1]["expert"]


def test_controls_reach_a_renamed_expert_by_all_of_its_ids() -> None:
    log = [*PAST, expert("ann", rename="zoe"), expert("zoe", team="red"), expert("ann", excluded=True)]
    feed_stage, effects = folded(log_of([*log, expert("dan", team="red")]))

    roster = feed_stage.feeds.feed("f").roster
    assert (roster.teams, roster.excluded) == ({"ann": "red", "dan": "red"}, {"ann"})
    assert [row["id"] for row in weights(effects)["experts"]] == ["bob", "cyd", "dan"]


@pytest.mark.parametrize("new", ["bob", "dan", "zoe"])
def test_an_id_that_the_feed_knows_is_refused(new: str) -> None:
    log = log_of([*PAST, expert("dan", rename="zoe"), expert("ann", rename=new)])
    _, effects = folded(log)

    assert reasons(effects) == ["contradictory"]
    assert [row["id"] for row in weights(effects)["experts"]] == ["ann", "bob", "cyd", "zoe"]


@pytest.mark.parametrize("newer", ["zo", "ann"])
def test_an_expert_is_renamed_again_and_back(newer: str) -> None:
    _, effects = folded(log_of([*PAST, expert("ann", rename="zoe"), expert("zoe", rename=newer)]))

    assert reasons(effects) == []
    assert sorted(row["id"] for row in weights(effects)["experts"]) == sorted(["bob", "cyd", "dan", newer])


def test_a_rename_is_published_at_once() -> None:
    feed_stage, _ = folded(log_of(PAST))
    effects = Effects()
    (record,) = log_of([expert("dan", rename="dana")], len(PAST))
    feed_stage.step(record, effects)
    feed_stage.publish(effects, ["f"])

    assert [row["id"] for row in weights(effects)["experts"]] == ["ann", "bob", "cyd", "dana"]


def test_a_round_under_both_ids_is_one_of_the_first() -> None:
    log = log_of([*PAST, expert("ann", rename="zoe"), round_of("x", {**FORECASTS, "zoe": 0.1}, final=True)])
    feed_stage, effects = folded(log)

    assert feed_stage.feeds.feed("f").roster.experts == ["ann", "bob", "cyd", "dan"]
    losses = newest(effects.outputs, topics.PEER_LOSSES)["x"]["experts"]
    assert {row["id"]: row["probability"] for row in losses} == {"bob": 0.7, "cyd": 0.2, "dan": 0.8, "zoe": 0.9}


@pytest.mark.parametrize("named", ["ann", "zoe"])
def test_an_erasure_by_any_id_leaves_nothing_of_the_expert(named: str) -> None:
    log = log_of([*PAST, expert("ann", rename="zoe"), expert(named, forget=True), round_of("x", FORECASTS)])
    feed_stage, effects = folded(log)

    assert feed_stage.feeds.feed("f").roster.experts == ["bob", "cyd", "dan"]
    assert [row["id"] for row in weights(effects)["experts"]] == ["bob", "cyd", "dan"]
    assert not feed_stage.feeds.feed("f").roster.names.given
    more = [expert("zoe", team="red"), expert("bob", rename="ann")]
    _, later = folded(log_of(more, len(log)), feed_stage, log)
    assert reasons(later) == ["forgotten", "forgotten"]


def restored(feed_stage: FeedStage) -> FeedStage:
    changelog = Changelog()
    changelog.take(feed_stage)
    return changelog.restored()


def lost_and_rebuilt(feed_stage: FeedStage) -> FeedStage:
    feed_stage.rebuild_all()
    carry_out_rebuilds(feed_stage, RENAMED)
    return feed_stage


def rebuilt(feed_stage: FeedStage) -> FeedStage:
    change = log_of([history.settings({"defaults": {"loss": "log"}})], len(RENAMED))
    return folded(change, feed_stage, RENAMED)[0]


RENAMED = log_of([*PAST, expert("ann", rename="zoe"), expert("zoe", rename="zo")])


@pytest.mark.parametrize("way", [restored, lost_and_rebuilt, rebuilt])
def test_names_survive(way: Callable[[FeedStage], FeedStage]) -> None:
    feed_stage, _ = folded(RENAMED)

    after = way(feed_stage)

    assert [row.id for row in after.views()["f"].weights.experts] == ["bob", "cyd", "dan", "zo"]
    assert after.feeds.feed("f").roster.names.given == {"ann": ["zoe", "zo"]}


def test_a_reset_keeps_names_and_a_deleted_feed_has_none() -> None:
    feed_stage, _ = folded([*RENAMED, *log_of([changed(reset=True)], len(RENAMED))])
    assert feed_stage.feeds.feed("f").roster.names.given
    feed_stage, _ = folded([*RENAMED, *log_of([changed(delete=True)], len(RENAMED))])
    assert not feed_stage.feeds.feed("f").roster.names.given


def test_an_exported_feed_has_its_names_with_it() -> None:
    there, _ = folded(RENAMED)

    here, _ = folded(import_log(lines_of(there, RENAMED), first=40))

    assert here.feeds.feed("f").roster.names.given == {"ann": ["zoe", "zo"]}
    assert [row.id for row in here.views()["f"].weights.experts] == ["bob", "cyd", "dan", "zo"]


def test_a_feed_in_which_experts_were_renamed_takes_up_no_other_before_it_is_deleted() -> None:
    renamed = log_of([expert("eve", rename="ann"), changed(reset=True)])
    deleted = log_of([changed(delete=True)], 2)
    landing = Landing("f", "digest")

    for record in renamed:
        landing.add(record)
    with pytest.raises(FeedTransferError, match="feed f has renamed experts; delete it before"):
        landing.check()
    landing.add(*deleted)
    landing.check()


def test_pseudonyms_hide_names() -> None:
    there, _ = folded(RENAMED)
    names = Pseudonyms(b"a key of some length", questions=False)

    header, *lines = all_with_pseudonyms(lines_of(there, RENAMED), names)

    assert isinstance(header, Header)
    assert header.names == {}
    assert not [name for name in ("ann", "zoe", "zo") if f'"{name}"' in msgspec.json.encode(lines).decode()]
