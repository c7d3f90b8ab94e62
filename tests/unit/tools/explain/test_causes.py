"""What each cause is, on histories in which little else happens."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from stream_peer.events.feed_log import FeedLogRecord, decode_feed_log
from stream_peer.log.stage import Effects
from stream_peer.tools.explain.causes import CAUSES, Cause, WeightReading, explain, weight_reading
from tests.feed_histories import carry_out_rebuilds, changed, expert, log_of, outcome, round_of, stage
from tests.feed_histories import settings as applied
from tests.feed_variants import crowd
from tests.unit.feeds.alarms.test_groups import Attack

THREE = {"ann": 0.9, "bob": 0.8, "cleo": 0.2}


def moved(events: Sequence[FeedLogRecord], name: str, **defaults: Any) -> list[list[Cause]]:
    """The terms of an expert, record by record."""
    feed_stage, log, before = stage(**defaults), log_of(events), None
    found: list[list[Cause]] = []
    for number, record in enumerate(log):
        feed_stage.step(record, Effects())
        carry_out_rebuilds(feed_stage, log[: number + 1])
        feed = feed_stage.feeds.by_name.get("f")
        after: WeightReading | None = None if feed is None else weight_reading(feed)
        found.append(explain(before, decode_feed_log(record.value or b""), after, [name]).get(name, []))
        before = after
    return found


def causes(terms: list[Cause]) -> list[str]:
    return [term.kind for term in terms]


def test_whoever_is_in_the_first_round_begins_at_an_equal_weight() -> None:
    ((listing, *others),) = moved([round_of("q0", THREE)], "ann")

    assert listing.kind == "listing"
    assert (listing.mix, listing.select) == pytest.approx((1 / 3, 1 / 3), abs=1e-12)
    assert {term.kind for term in others} <= {"peer-loss", "others", "re-pricing"}


def test_only_whoever_is_in_a_round_is_moved_by_its_own_forecast() -> None:
    events = [round_of("q0", THREE), round_of("q1", {"bob": 0.9, "cleo": 0.8, "dan": 0.9})]

    assert "peer-loss" in causes(moved(events, "bob")[1])
    assert set(causes(moved(events, "ann")[1])) <= {"listing", "others", "re-pricing"}


def test_being_near_to_the_others_is_a_provisional_mark_and_the_outcome_another() -> None:
    events = [*(round_of(f"q{n}", THREE) for n in range(3)), outcome("q0", 0)]

    (near,), (far,) = (
        [term for term in moved(events, name)[2] if term.kind == "peer-loss"] for name in ("bob", "cleo")
    )
    (told,) = (term for term in moved(events, "cleo")[3] if term.kind == "truth")

    assert near.mix > 0 > far.mix
    assert told.select > 0


def test_a_newcomer_takes_from_everybody() -> None:
    events = [round_of("q0", THREE), round_of("q1", {**THREE, "dan": 0.9})]

    (listing,) = (term for term in moved(events, "ann")[1] if term.kind == "listing")

    assert listing.mix < 0
    assert causes(moved(events, "dan")[1])[0] == "listing"


def test_where_a_feed_forgets_who_was_not_there_ages() -> None:
    quiet = [round_of(f"q{n}", {"bob": 0.9, "cleo": 0.8, "dan": 0.7}) for n in range(1, 40)]
    events = [round_of("q0", THREE), *quiet]

    aged = [terms for terms in moved(events, "ann", memory=5) if "ageing" in causes(terms)]

    assert aged
    assert all("peer-loss" not in causes(terms) for terms in aged)
    assert not any("ageing" in causes(terms) for terms in moved(events, "ann"))


@pytest.mark.parametrize(
    ("event", "name", "cause"),
    [
        (expert("bob", excluded=True), "ann", "listing"),
        (expert("ann", excluded=True), "ann", "listing"),
        (expert("bob", forget=True), "ann", "listing"),
        (changed(reset=True), "ann", "operator"),
        (changed(delete=True), "ann", "operator"),
        (applied({"defaults": {"preset": "paper"}}), "cleo", "settings"),
    ],
)
def test_controls_and_settings_are_told_in_one_term(event: FeedLogRecord, name: str, cause: str) -> None:
    events = [*(round_of(f"q{n}", THREE) for n in range(4)), outcome("q0", 1), event]

    assert causes(moved(events, name)[-1]) == [cause]


def test_every_cause_of_a_question_comes_about_in_a_crowd() -> None:
    found = Counter(cause for terms in moved(crowd(60), "e3") for cause in causes(terms))

    assert set(CAUSES) - {"ageing", "settings", "operator", "guard", "shrinkage", "safety-net"} == set(found)


def test_the_safety_net_moves_weights_where_following_the_others_does_harm() -> None:
    rounds = [round_of(f"q{n}", {**THREE, "dan": 0.85}) for n in range(60)]
    events = [*rounds, *(outcome(f"q{n}", 0) for n in range(30, 60))]

    most, least = (
        [term for terms in moved(events, name) for term in terms if term.kind == "safety-net"]
        for name in ("cleo", "ann")
    )

    assert least[0].mix > 0 > most[0].mix
    assert all(term.select == 0 for term in (*least, *most))


def test_caution_brings_the_chance_of_being_followed_nearer_to_an_equal_one() -> None:
    rounds = [round_of(f"q{n}", {**THREE, "dan": 0.85}) for n in range(120)]
    events = [*rounds, *(outcome(f"q{n}", 0) for n in range(30, 120))]

    found = [term for terms in moved(events, "ann") for term in terms if term.kind == "shrinkage"]

    assert found
    assert all(term.mix == 0 for term in found)


def test_with_the_guard_on_experts_who_say_the_same_lose_to_all_others() -> None:
    rounds = Attack(200).rounds()

    copy, good = (
        [term for terms in moved(rounds, name, guard="on") for term in terms if term.kind == "guard"]
        for name in ("copy1", "good1")
    )

    assert len(copy) == len(good) == 1
    assert copy[0].mix < 0 < good[0].mix
    assert copy[0].select <= 0 <= good[0].select
    assert not any("guard" in causes(terms) for terms in moved(rounds, "copy1"))


def test_who_is_unknown_has_no_terms() -> None:
    assert moved([round_of("q0", THREE)], "nobody") == [[]]
