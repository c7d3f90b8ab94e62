"""The preset ``paper`` against a slow twin that follows its description word by word, on arbitrary histories."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from stream_peer.events import topics
from stream_peer.events.feed_log import OutcomeRevealed, Round, RoundWithdrawn
from stream_peer.feeds.columns import EXPERT
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.stage import Effects
from tests.feed_histories import Changelog, folded, log_of, newest, outcome, round_of, stage
from tests.feed_variants import crowd, variant
from tests.hypothesis_profiles import examples
from tests.property.test_feed_stage import by_revision
from tests.property.test_feed_stage_twin import Event, histories
from tests.slow_paper import SlowPaper


def near(value: float | None) -> Any:
    return None if value is None else pytest.approx(value, rel=1e-9, abs=1e-9)


def follow(twin: SlowPaper, event: Event) -> None:
    if isinstance(event, Round):
        forecasts = dict(zip(event.experts, event.probabilities, strict=True))
        twin.round(event.question_id, event.boundary, forecasts, event.weight)
    elif isinstance(event, RoundWithdrawn):
        twin.withdraw(event.question_id, event.boundary)
    else:
        twin.outcome(event.question_id, event.outcome)


def compare(history: list[Event]) -> SlowPaper:
    """The stage and its twin after every record; the twin at the end."""
    feed_stage, twin = stage(preset="paper"), SlowPaper()
    for event, record in zip(history, log_of(history), strict=True):
        effects = Effects()
        feed_stage.step(record, effects)
        feed_stage.publish(effects)
        follow(twin, event)
        for weights in newest(effects.outputs, topics.WEIGHTS).values():
            check_weights(weights, twin)
        if isinstance(event, Round):
            check_round(effects, event, twin)
    return twin


def check_weights(weights: dict[str, Any], twin: SlowPaper) -> None:
    listed = twin.listed()
    select = twin.select(listed)
    assert {row["id"]: row["select"] for row in weights["experts"]} == {e: near(select[e]) for e in listed}
    assert {row["id"]: row["mix"] for row in weights["experts"]} == {e: near(select[e]) for e in listed}
    assert {row["id"]: row["peer_loss"] for row in weights["experts"]} == {e: near(twin.peer_loss(e)) for e in listed}
    assert {row["id"]: row["questions"] for row in weights["experts"]} == {
        e: near(twin.questions_of(e)) for e in listed
    }
    assert min(weights["error_rate"]["zero"], 0.4) == near(twin.rate())
    assert weights["error_rate"]["zero"] == weights["error_rate"]["one"]
    assert weights["certificate"] is None
    assert weights["stretch"] == 0.0


def check_round(effects: Effects, event: Round, twin: SlowPaper) -> None:
    """What was said of the question's latest round, of which the record need not be news."""
    known = twin.questions[event.question_id]
    said = known.rounds[max(known.rounds)]
    losses = newest(effects.outputs, topics.PEER_LOSSES)[event.question_id]
    mixed = newest(effects.outputs, topics.MIXED_FORECASTS)[event.question_id]
    assert {row["id"]: row["reference_answer"] for row in losses["experts"]} == dict.fromkeys(said.p, said.answer)
    priced = {e: near(said.unbiased(e, twin.rate())) for e in said.p}
    assert {row["id"]: row["peer_loss"] for row in losses["experts"]} == priced
    assert mixed["mix"] == near(sum(w * said.p[e] for e, w in said.select.items()))
    assert mixed["stretched"] == near(mixed["mix"])
    if known.evidence == "open":
        assert losses["state"] == ("scored" if said.counts else "low-evidence")


@settings(max_examples=examples(40))
@given(histories)
def test_the_preset_paper_says_what_its_description_says(history: list[Event]) -> None:
    compare(history)


def test_a_long_history_agrees_to_its_end_and_learns_an_error_rate() -> None:
    twin = compare(crowd(75))

    rates = [said.rate for known in twin.questions.values() for said in known.rounds.values()]
    assert rates[0] == 0.25
    assert len({round(rate, 6) for rate in rates}) > 20


def test_a_restart_at_any_record_changes_no_bytes_under_the_preset_paper() -> None:
    log = log_of(crowd(30))
    known = by_revision(folded_with_all(log).outputs)
    feed_stage, changelog, effects = stage(preset="paper"), Changelog(), Effects()

    for record in log:
        feed_stage.step(record, effects)
        feed_stage.publish(effects)
        changelog.take(feed_stage)
        feed_stage = changelog.restored(preset="paper")
        assert feed_stage.agrees()

    assert by_revision(effects.outputs) == known


def folded_with_all(log: Any) -> Effects:
    feed_stage, effects = stage(preset="paper"), Effects()
    for record in log:
        feed_stage.step(record, effects)
        feed_stage.publish(effects)
    return effects


def test_the_settings_of_the_preset_are_restored_with_the_state() -> None:
    """A worker that was started with other settings goes on under those that its feed has."""
    log = log_of(crowd(20))
    half, changelog = folded(log[:20], stage(preset="paper"))[0], Changelog()
    changelog.take(half)

    _, after = folded(log[20:], changelog.restored())
    _, plain = folded(log[20:], half)

    def without_settings(effects: Effects) -> list[Any]:
        return [msgspec.json.decode(output.value or b"") | {"settings": ""} for output in effects.outputs]

    assert without_settings(after) == without_settings(plain)


@pytest.mark.case("C15")
def test_a_round_without_group_a_counts_for_nothing_and_says_so() -> None:
    twin = SlowPaper()
    of_b = [e for e in (f"e{k}" for k in range(40)) if twin.groups({e: 0.5})[1]][:6]
    before = crowd(20)

    without, _ = folded(log_of(before), stage(preset="paper"))
    with_it, effects = folded(log_of([*before, round_of("lone", dict.fromkeys(of_b, 0.9))]), stage(preset="paper"))

    answer = newest(effects.outputs, topics.REFERENCE_ANSWERS)["lone"]
    assert (answer["state"], answer["reference_answer"], answer["votes"]) == ("low-evidence", 1, 6)
    one, two = (feed_stage.views()["f"].weights for feed_stage in (without, with_it))
    assert (one.experts, one.questions, one.error_rate) == (two.experts, two.questions, two.error_rate)


@pytest.mark.case("C15")
def test_a_round_without_group_b_is_scored_and_says_nothing_of_the_error_rate() -> None:
    twin = SlowPaper()
    of_a = [e for e in (f"e{k}" for k in range(40)) if twin.groups({e: 0.5})[0]][:6]
    before = crowd(20)

    without, _ = folded(log_of(before), stage(preset="paper"))
    with_it, effects = folded(log_of([*before, round_of("lone", dict.fromkeys(of_a, 0.9))]), stage(preset="paper"))

    assert newest(effects.outputs, topics.REFERENCE_ANSWERS)["lone"]["state"] == "scored"
    one, two = (feed_stage.views()["f"].weights for feed_stage in (without, with_it))
    assert two.questions == one.questions + 1
    assert one.error_rate == two.error_rate


def test_an_outcome_leaves_f_as_it_is_and_an_annulment_takes_it_away() -> None:
    before, question = crowd(20), "q19"
    rest = [event for event in before if event.question_id != question]

    def select(*events: Round | OutcomeRevealed | RoundWithdrawn) -> dict[str, float]:
        view = folded(log_of(events), stage(preset="paper"))[0].views()["f"]
        return {expert.id: expert.select for expert in view.weights.experts}

    plain = select(*before)
    assert select(*before, outcome(question, 0)) == plain
    assert select(*before, outcome(question, 1)) == plain
    assert select(*before, outcome(question, "annulled")) == select(*rest) != plain
    assert select(*before, outcome(question, "annulled"), outcome(question, "open")) == plain


@pytest.mark.parametrize("chosen", [{"preset": "paper"}, variant(pricing="frozen")])
def test_a_round_of_too_few_voters_adds_nothing_to_selection_even_when_its_outcome_comes(
    chosen: dict[str, Any],
) -> None:
    few = [round_of("few", {"e0": 0.9, "e9": 0.2}), outcome("few", 1)]

    one, two = (folded(log_of(history), stage(**chosen))[0] for history in (crowd(20), [*crowd(20), *few]))

    def regrets(feed_stage: FeedStage) -> list[int]:
        feed = feed_stage.feeds.feed("f")
        return list(feed.buckets.sums.matrix[EXPERT.at("regret"), feed.places([f"e{k}" for k in range(10)])])

    assert regrets(one) == regrets(two)
    assert any(regrets(one))
