"""Cases about whom to trust, on a service that a chronicle is told; its worker is killed halfway, on real Kafka."""

import json
import math
from collections.abc import Iterator, Mapping
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stream_peer.events import topics
from tests.integration.support import judged
from tests.integration.support.chronicle import Chronicle, Told, strict
from tests.integration.support.client import KafkaClient
from tests.integration.support.judged import METHODS, PASTS
from tests.integration.support.lives import LIVES, replayed
from tests.integration.support.service import Service, service
from tests.integration.support.worlds import unanimous
from tests.property.test_status_steps import MIX_STEP, PAPER_STEP, SELECT_STEP

pytestmark = pytest.mark.real_kafka

DEFAULTS = {"history": True, "vote_rule": "half", "publish_every": "0s", "guard": "off"}


@pytest.fixture(scope="module")
def ended(kafka: KafkaClient, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """What became of the feeds of all cases."""
    chronicle, directory = Chronicle(), tmp_path_factory.mktemp("chronicle")
    judged.tell_accounts(chronicle)
    judged.tell_opinions(chronicle)
    judged.tell_rates(chronicle)
    judged.tell_subsets(chronicle)
    judged.tell_late_ones(chronicle)
    with service(kafka, directory, defaults=DEFAULTS, feeds=chronicle.settings, **LIVES) as made:
        made.set_up(STREAM_PEER_INSTANCE="w1")
        fill(made, directory)
        return chronicle.tell(made)


def fill(made: Service, directory: Path) -> None:
    """Two feeds come with a long past."""
    history, file = directory / "history.jsonl", directory / "aged.feed.gz"
    history.write_text("".join(json.dumps(event) + "\n" for event in judged.aged()))
    made.run("replay", str(history), "--export", f"{judged.AGED}={file}")
    made.run("import", str(file))
    made.run("import", str(file), "--as", judged.AGED_WITHOUT)
    made.settle()


def states(told: Told, feed: str) -> set[str]:
    """The states that a feed was ever in."""
    return {record["status"] for record in told.weights(feed)}


def gauge(told: Told, feed: str, name: str, **labels: str) -> list[float]:
    """Values of a feed's samples with these labels."""
    wanted = {("feed", feed), *labels.items()}
    return [value for (found, *on), value in told.shown[feed].items() if found == name and wanted <= set(on)]


def test_one_revision_has_one_content_although_the_worker_was_killed(ended: Told) -> None:
    feeds = list(ended.chronicle.chapters)

    assert len(feeds) > 40
    assert not [found for feed in feeds for found in ended.published.contradictions(feed)]


# --- C16: many accounts, one mind ---


@pytest.mark.case("C16")
@pytest.mark.parametrize("guard", judged.GUARDS)
@pytest.mark.parametrize("likeness", judged.LIKENESS)
def test_accounts_of_one_mind_raise_an_alarm_that_names_them_within_200_questions(
    ended: Told, likeness: str, guard: str
) -> None:
    feed = f"c16{likeness}-{guard}"
    records, rates = ended.weights(feed), ended.published.of(feed)[topics.ERROR_RATES]
    (alarm,) = [record for record in records if record["questions"] == judged.ALARM_BY]

    assert "ok" not in states(ended, feed)
    for record in (alarm, records[-1]):
        assert record["status"] == "dependent"
        assert [sorted(group["experts"]) for group in record["groups"]] == [judged.ACCOUNTS]
        assert any(all(account in reason for account in judged.ACCOUNTS) for reason in record["status_reasons"])
        assert record["certificate"] is None
    assert {record["trust"] for _, record in rates} == {"warming-up", "dependent"}
    assert {answer["trust"] for answer in ended.published.answers(feed).values()} == {"warming-up", "dependent"}
    assert gauge(ended, feed, "stream_peer_trust_state", state="dependent") == [1.0]
    assert gauge(ended, feed, "stream_peer_grouped_experts") == [float(len(judged.ACCOUNTS))]
    assert ended.shown_again[feed] == ended.shown[feed]
    assert "groups" not in ended.weights(judged.ALONE)[-1]
    assert states(ended, judged.ALONE) == {"warming-up", "ok"}


def right(told: Told, feed: str) -> float:
    """Share of right answers from the alarm on, as fair coins would decide ties."""
    last = told.published.answers(feed)
    answers = [last[f"{feed}-q{number}"] for number in range(judged.ALARM_BY, len(judged.TRUTH))]
    truth = judged.TRUTH[judged.ALARM_BY :].tolist()
    return math.fsum(
        0.5 if answer["tie"] else answer["reference_answer"] == true
        for answer, true in zip(answers, truth, strict=True)
    ) / len(truth)


@pytest.mark.case("C16")
@pytest.mark.parametrize("likeness", judged.LIKENESS)
def test_with_the_guard_on_answers_are_as_good_as_without_the_accounts(ended: Told, likeness: str) -> None:
    unguarded, guarded = (right(ended, f"c16{likeness}-{guard}") for guard in ("off", "on"))

    assert guarded >= right(ended, judged.ALONE) > 0.9
    assert unguarded < 0.7


# --- C17: unanimous vote, opposite answer ---


@pytest.mark.case("C17")
@pytest.mark.parametrize("method", METHODS)
def test_what_all_experts_agree_on_is_the_answer_in_every_mode_and_state(ended: Told, method: str) -> None:
    seen: set[str] = set()
    for past, asked in PASTS.items():
        feed = f"c17{past}-{method}"
        last = ended.published.last(feed)
        seen |= states(ended, feed)
        for number in range(2 * len(unanimous())):
            key, side = f"{feed}-q{len(asked) + number}", number % 2
            answer, mixed = last[topics.REFERENCE_ANSWERS][key], last[topics.MIXED_FORECASTS][key]
            assert (answer["reference_answer"], answer["tie"]) == (side, False)
            assert (mixed["mix"] > 0.5) == bool(side)

    assert seen == {"warming-up", "ok", "low-evidence", "dependent", "uninformative", "contradicted"}


def majority(forecasts: Mapping[str, float]) -> int | None:
    """What most say; None: as many say yes as no."""
    sides = [said > 0.5 for said in forecasts.values()]
    yes = sum(sides)
    return None if 2 * yes == len(sides) else int(2 * yes > len(sides))


@pytest.mark.case("C17")
@pytest.mark.parametrize("method", METHODS)
def test_no_vote_is_ever_read_the_other_way_round(ended: Told, method: str) -> None:
    for past in PASTS:
        feed = f"c17{past}-{method}"
        last = ended.published.last(feed)
        for key, forecasts in ended.forecasts(feed).items():
            of_all, scored = last[topics.REFERENCE_ANSWERS][key], last[topics.PEER_LOSSES][key]["experts"]
            assert method == "guarded" or majority(forecasts) in (None, of_all["reference_answer"])
            if method != "half":  # the others vote by another rule, or only some of them are asked
                continue
            for expert in scored:
                others = {name: said for name, said in forecasts.items() if name != expert["id"]}
                assert majority(others) in (None, expert["reference_answer"])


@pytest.mark.case("C17")
@pytest.mark.parametrize("past", ["split", "unlucky"])
@pytest.mark.parametrize("method", ["half", "medians", "auto", "guarded"])
def test_answers_that_say_nothing_raise_an_alarm_that_everybody_sees(ended: Told, method: str, past: str) -> None:
    feed, trusted = f"c17{past}-{method}", f"c17trusted-{method}"
    weights, rates = ended.weights(feed)[-1], ended.published.last(feed)[topics.ERROR_RATES][feed]

    assert weights["status"] == "uninformative"
    assert weights["status_reasons"]
    assert weights["certificate"] is None
    assert [expert["select"] for expert in weights["experts"]] == pytest.approx([1 / 6] * 6)  # nothing is learnt
    assert rates["status"] == "uninformative"
    assert rates["status_reasons"]
    assert max(rates["zero"], rates["one"]) < 0.5
    assert gauge(ended, feed, "stream_peer_trust_state", state="uninformative") == [1.0]
    assert gauge(ended, feed, "stream_peer_trust_state", state="ok") == [0.0]
    assert not gauge(ended, feed, "stream_peer_certificate_regret")
    assert gauge(ended, trusted, "stream_peer_trust_state", state="ok") == [1.0]
    assert gauge(ended, trusted, "stream_peer_certificate_regret")
    assert ended.shown_again[feed] == ended.shown[feed]


# --- C18: error rates that cannot be told ---


def uncertain() -> Iterator[str]:
    return (
        f"c18-{s:g}-{crowd}-{preset}" for s in judged.SHARES for crowd in judged.CROWDS for preset in judged.PRESETS
    )


@pytest.mark.case("C18")
def test_error_rates_always_have_a_status_and_an_interval(ended: Told) -> None:
    seen = set()
    for feed in uncertain():
        records = [record for _, record in ended.published.of(feed)[topics.ERROR_RATES]]
        assert records[-1]["effective_questions"] > 0
        for rates in records:
            seen.add(rates["status"])
            assert bool(rates["status_reasons"]) == (rates["status"] != "ok")
            assert 0.0 <= rates["low"] <= (rates["zero"] + rates["one"]) / 2 <= rates["high"] <= 0.5
            if rates["effective_questions"] < 50:
                assert rates["status"] in ("insufficient", "uninformative")

    assert seen == {"ok", "insufficient", "balanced", "uninformative"}


@pytest.mark.case("C18")
def test_nothing_that_is_published_or_shown_is_not_a_number(ended: Told) -> None:
    records = [message for messages in ended.published.records.values() for message in messages]
    told_of = {strict(message.value)["feed"] for message in records if message.value}
    shown = [value for gauges in (*ended.shown.values(), *ended.shown_again.values()) for value in gauges.values()]

    assert set(uncertain()) <= told_of
    assert len(shown) > 100
    assert all(map(math.isfinite, shown))


def moved(before: Mapping[str, Any], after: Mapping[str, Any], kind: str) -> float:
    former: dict[str, float] = {expert["id"]: expert[kind] for expert in before["experts"]}
    return max(abs(float(expert[kind]) - former[expert["id"]]) for expert in after["experts"])


@pytest.mark.case("C18")
@pytest.mark.parametrize("preset", judged.PRESETS)
def test_no_weight_jumps_when_the_status_of_error_rates_changes(ended: Told, preset: str) -> None:
    changes = []
    for feed in uncertain():
        for before, after in pairwise(ended.weights(feed)):
            one_later = after["questions"] == before["questions"] + 1
            if one_later and before["error_rate"]["status"] != after["error_rate"]["status"] and preset in feed:
                changes.append((moved(before, after, "mix"), moved(before, after, "select")))

    assert len(changes) >= 3
    most = (PAPER_STEP, PAPER_STEP) if preset == "paper" else (MIX_STEP, SELECT_STEP)
    assert np.all(np.max(changes, axis=0) <= most)


# --- C19: experts answer different subsets ---


@pytest.mark.case("C19")
def test_who_skips_questions_weighs_no_more_than_a_twin_that_answers_like_all_together(ended: Told) -> None:
    twin, absent = (ended.experts(judged.TWIN)[name] for name in ("e4", "e5"))

    assert (twin["coverage"], absent["coverage"]) == (1.0, 0.5)
    assert 0.5 * twin["mix"] < absent["mix"] <= twin["mix"]
    events = chain.from_iterable(ended.chronicle.chapters[judged.TWIN])
    assert ended.published.order_free(judged.TWIN) == replayed(events, judged.TWIN, guard="off")


@pytest.mark.case("C19")
def test_who_skips_questions_is_followed_as_much_as_a_twin_that_reads_the_published_weights(ended: Told) -> None:
    """The twin follows weights that are up to twenty questions old, and of a mean forecast the loss is a bit less."""
    twin, absent = (ended.experts(judged.FOLLOWED)[name] for name in ("e4", "e5"))

    assert (twin["coverage"], absent["coverage"]) == (1.0, 0.5)
    assert twin["select"] > 0.2
    assert absent["select"] == pytest.approx(twin["select"], rel=0.3)


@pytest.mark.case("C19")
def test_who_answers_only_easy_questions_does_not_outrank_equal_skill_on_all(ended: Told) -> None:
    ahead = []
    for feed in judged.PICKY:
        full, picky = (ended.experts(feed)[name] for name in ("e0", "e1"))
        assert (full["coverage"], picky["coverage"]) == (1.0, 0.5)
        assert picky["peer_loss"] < full["peer_loss"] - 0.02  # a mean of its losses would favour the picky one
        ahead.append((picky["select"] - full["select"], picky["mix"] - full["mix"]))

    select, mix = np.mean(ahead, axis=0)
    assert mix < 0.0
    # Selection weights depend on the order in which partitions are read; in one order: test_picky_experts.py.
    assert select < 0.3


# --- C20: cold start and temporary absence ---


def check_sums(told: Told, feed: str) -> None:
    for kind in ("mix", "select"):
        assert math.fsum(expert[kind] for expert in told.experts(feed).values()) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.case("C20")
def test_who_joins_at_question_10000_starts_as_everybody_did_and_the_others_keep_their_ratios(ended: Told) -> None:
    """It joins on a question on which all agree, so that what it weighs then is what it started with.

    ``neutral`` was there on the very first question only, on which all agreed as well.
    """
    before, after = ended.experts(judged.AGED_WITHOUT), ended.experts(judged.AGED)
    late, others = after["late"], sorted(before)

    assert sorted(after) == sorted([*others, "late"])
    check_sums(ended, judged.AGED)
    assert ended.weights(judged.AGED)[-1]["questions"] == judged.ROUNDS + 2
    assert (late["questions"], late["coverage"]) == (1.0, pytest.approx(1 / (judged.ROUNDS + 2), rel=1e-6))
    for kind in ("mix", "select"):
        assert late[kind] == pytest.approx(after["neutral"][kind], rel=1e-9)
    assert 0.01 < late["select"] < 0.99
    kept = 1.0 - late["select"]
    for expert in others:
        assert after[expert]["select"] == pytest.approx(kept * before[expert]["select"], rel=1e-6, abs=1e-11)


@pytest.mark.case("C20")
def test_who_returns_finds_its_record_as_if_it_had_never_been_away(ended: Told) -> None:
    away, stayed = (ended.published.order_free(feed) for feed in (judged.AWAY, judged.STAYED))

    for topic in topics.KEYED_BY_FEED:
        assert away[topic] == stayed[topic]
    gone = next(record for record in reversed(ended.weights(judged.AWAY)) if record["questions"] == 6 * judged.EVENLY)
    (left,) = [expert for expert in gone["experts"] if expert["id"] == "e5"]
    assert (left["questions"], left["coverage"]) == (3 * judged.EVENLY, 0.5)
    assert left["mix"] > 0.0
    assert ended.experts(judged.AWAY)["e5"]["questions"] == 5 * judged.EVENLY
    check_sums(ended, judged.AWAY)


@pytest.mark.case("C20")
def test_joining_twice_is_the_same_as_once(ended: Told) -> None:
    once, twice = (ended.published.order_free(feed) for feed in (judged.ONCE, judged.TWICE))

    assert twice == once
    assert ended.experts(judged.TWICE)["e5"]["questions"] == 5 * judged.EVENLY
    assert len(gauge(ended, judged.TWICE, "stream_peer_expert_weight", expert="e5", kind="mix")) == 1
    check_sums(ended, judged.TWICE)
    assert not ended.published.contradictions(judged.TWICE)
