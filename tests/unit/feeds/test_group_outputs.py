"""The records of groups: when they are published, by which feed, and what stands in them."""

import random
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import pytest

from stream_peer.events import topics
from stream_peer.events.feed_log import FeedLogRecord, GroupChanged, HandedOver, QuestionArrived, QuestionMoved, Source
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.stage import Effects
from tests.feed_histories import changed, expert, folded, log_of, newest, outcome, round_of, stage, withdrawn

SRC = Source("forecast-events", 0, 0, 0, 0)
EXPERTS = ("ann", "bob", "cyd", "dan")
CHAIR = {"Ada": 0.6, "Bo": 0.5, "Cy": 0.2}
CPI = {"3": 0.5, "2": 0.6, "10": 0.9, "2026-06-01": 0.2, "2026-01-01": 0.3}


def told(group: str = "chair", feed: str = "f", options: int = 3) -> GroupChanged:
    return GroupChanged(src=SRC, feed=feed, group_id=group, options=options)


def rounds(said: Mapping[str, float], group: str = "chair", sign: str = "=", **more: Any) -> list[FeedLogRecord]:
    of_parts = [round_of(f"{group}::{sign}{name}", dict.fromkeys(EXPERTS, p), **more) for name, p in said.items()]
    return [*of_parts, told(group, more.get("feed", "f"))]


def published(effects: Effects, group: str = "chair") -> list[Any]:
    outputs = [one for one in effects.outputs if one.topic == topics.MIXED_GROUPS and one.key == group.encode()]
    return [None if one.value is None else msgspec.json.decode(one.value) for one in outputs]


def mixes(record: Any, kind: str = "options") -> dict[str, float | None]:
    return {part["name"]: None if part["mix"] is None else round(part["mix"], 6) for part in record[kind]}


def test_options_sum_to_one_and_the_group_is_published_once_for_all_its_parts() -> None:
    _, effects = folded(log_of([*rounds(CHAIR), *rounds({"Bo": 0.8}, boundary=2, final=True)]))

    first, second = published(effects)
    assert mixes(first) == pytest.approx({"Ada": 0.5, "Bo": 0.4, "Cy": 0.1})
    assert mixes(second) == pytest.approx({"Ada": 0.4, "Bo": 0.6, "Cy": 0.0})
    assert (first["boundary"], second["boundary"]) == ("2023-11-14T23:13:20Z", "2023-11-15T00:13:20Z")
    assert not second["final"], "other options are open"
    raw = [newest(effects.outputs, topics.MIXED_FORECASTS)[f"chair::={name}"]["stretched"] for name in CHAIR]
    assert sum(raw) > 1 == pytest.approx(sum(part["stretched"] for part in second["options"]))


def test_the_probabilities_of_thresholds_never_fall_numbers_and_times_apart() -> None:
    _, effects = folded(log_of(rounds(CPI, "cpi", "<=", final=True)))

    (record,) = published(effects, "cpi")
    assert list(mixes(record, "cdf")) == ["2", "3", "10", "2026-01-01", "2026-06-01"]
    assert list(mixes(record, "cdf").values()) == pytest.approx([0.55, 0.55, 0.9, 0.25, 0.25])
    assert record["final"]
    assert "options" not in record


def test_options_without_a_round_have_the_rest_and_outcomes_are_shown() -> None:
    events = [*rounds({"Ada": 0.5, "Bo": 0.3}), *rounds(CHAIR, boundary=2), withdrawn("chair::=Cy", boundary=2)]
    events += [outcome("chair::=Ada", 0), outcome("chair::=Bo", 1), told()]

    _, effects = folded(log_of(events))

    first, _, last = published(effects)
    assert mixes(first) == pytest.approx({"Ada": 0.5, "Bo": 0.3})
    assert mixes(last) == pytest.approx({"Ada": 0.55, "Bo": 0.45, "Cy": None})
    assert [part["outcome"] for part in last["options"]] == [0, 1, None]


def test_a_feed_has_a_certificate_until_it_has_a_group_and_publishes_nothing_of_groups() -> None:
    dice = random.Random(1)
    asked = [round_of(f"q{number}", {one: dice.choice((0.2, 0.7)) for one in EXPERTS}) for number in range(9)]

    feed_stage, alone = folded(log_of([*asked, told("q")]), stage(method_version=2))
    _, grouped = folded(log_of(rounds(CHAIR), len(asked) + 1), feed_stage)

    assert newest(alone.outputs, topics.WEIGHTS)["f"]["certificate"] is not None
    assert newest(grouped.outputs, topics.WEIGHTS)["f"]["certificate"] is None
    assert not [one for one in alone.outputs if one.topic == topics.MIXED_GROUPS]


def test_an_erased_expert_leaves_the_records_of_its_groups() -> None:
    events = [*rounds(CHAIR), *rounds(CHAIR, "other"), expert("zed", forget=True)]
    said = dict.fromkeys(EXPERTS, 0.6) | {"zed": 0.0}
    events.insert(3, round_of("chair::=Ada", said))
    log = log_of(events)

    _, effects = folded(log)

    before, after = published(effects)
    assert mixes(after) == pytest.approx({"Ada": 0.5, "Bo": 0.4, "Cy": 0.1}) != mixes(before)
    assert after["revision"] == log[-1].offset
    assert len(published(effects, "other")) == 1


def test_a_deleted_feed_ends_its_groups() -> None:
    _, effects = folded(log_of([*rounds(CHAIR), *rounds(CPI, "cpi", "<="), changed(delete=True)]))

    assert published(effects)[-1] is None is published(effects, "cpi")[-1]


def test_nothing_more_is_said_of_a_group_of_which_a_part_left_the_ledger() -> None:
    others = [round_of(name, dict.fromkeys(EXPERTS, 0.5)) for name in ("q1", "q2")]
    events = [*rounds(CHAIR), *others, told()]

    _, effects = folded(log_of(events), stage(ledger_max=3))

    assert len(published(effects)) == 1


def moved(number: int, name: str) -> list[FeedLogRecord]:
    part = f"chair::={name}"
    return [QuestionArrived(src=SRC, feed="f", question_id=part, move=number, origin="old")]


def handed(*names: str) -> list[FeedLogRecord]:
    return [HandedOver(src=SRC, feed="f", question_id=f"chair::={name}", move=1) for name in names]


ARRIVED = [one for name in CHAIR for one in moved(1, name)]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([*ARRIVED, *rounds(CHAIR), *handed("Ada", "Bo")], 0),
        ([*ARRIVED, *rounds(CHAIR), *handed("Ada", "Bo", "Cy")], 1),
        ([*ARRIVED, *handed("Ada", "Bo", "Cy"), *rounds(CHAIR)], 1),
        ([*ARRIVED, *handed("Ada"), *rounds(CHAIR), *handed("Bo", "Cy")], 1),
    ],
)
def test_a_group_that_moved_is_published_once_all_its_parts_were_handed_over(
    events: Iterable[FeedLogRecord], expected: int
) -> None:
    log = log_of(events)

    for restart in range(len(log)):  # the owner changes at any moment
        effects = Effects()
        feed_stage, _ = folded_into(stage(), log[:restart], effects)
        feed_stage, _ = folded_into(restarted(feed_stage), log[restart:], effects)
        assert len(published(effects)) == expected
        assert all(mixes(one) == pytest.approx({"Ada": 0.5, "Bo": 0.4, "Cy": 0.1}) for one in published(effects))


def folded_into(into: FeedStage, log: Any, effects: Effects) -> tuple[FeedStage, Effects]:
    for record in log:
        into.step(record, effects)
    return into, effects


def restarted(former: FeedStage) -> FeedStage:
    found = former.snapshot()
    after = stage()
    after.load(found.head, {key: value for key, value in found.entries.items() if value is not None})
    for _ in after.recount():
        pass
    return after


def test_a_feed_that_a_part_has_left_says_nothing_more_of_the_group_nor_ends_it() -> None:
    leaves = QuestionMoved(src=SRC, feed="f", question_id="chair::=Ada", move=1, to="new")
    events = [*rounds(CHAIR), leaves, withdrawn("chair::=Ada"), told(), changed(delete=True)]

    _, effects = folded(log_of(events))

    assert len(published(effects)) == 1
