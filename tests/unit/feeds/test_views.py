import msgspec
import pytest

from stream_peer.events import topics
from stream_peer.events.outputs import Weights
from stream_peer.feeds.views import FeedView
from tests.feed_histories import folded, log_of, newest, outcome, round_of, settings, stage


def test_weights_list_experts_by_id_with_their_records() -> None:
    events = [
        round_of("q1", {"zoe": 0.9, "abe": 0.8, "may": 0.3}),
        round_of("q2", {"zoe": 0.9, "abe": 0.7, "bob": 0.6}),
        outcome("q1", 1),
    ]
    _, effects = folded(log_of(events))
    (value,) = [output.value for output in effects.outputs if output.topic == topics.WEIGHTS]
    weights = msgspec.json.decode(value or b"", type=Weights)

    assert [expert.id for expert in weights.experts] == ["abe", "bob", "may", "zoe"]
    by_id = {expert.id: expert for expert in weights.experts}
    assert (by_id["zoe"].questions, by_id["zoe"].coverage, by_id["zoe"].resolved) == (2.0, 1.0, 1.0)
    assert (by_id["may"].questions, by_id["may"].coverage, by_id["may"].peer_loss) == (1.0, 0.5, None)
    assert by_id["may"].outcome_loss == 0.49
    assert by_id["bob"].outcome_loss is None
    assert (weights.questions, weights.resolved) == (2.0, 1.0)
    assert sum(expert.select for expert in weights.experts) == pytest.approx(1.0, abs=1e-11)


def test_error_rates_show_what_outcomes_say() -> None:
    events = [round_of("q", {"a": 0.9, "b": 0.8, "c": 0.7}), outcome("q", 0)]
    _, effects = folded(log_of(events))

    rates = newest(effects.outputs, topics.ERROR_RATES)["f"]

    assert rates["from_truth"] == {"zero": 1.0, "one": None, "resolved": 1.0}
    assert rates["status"] == "insufficient"
    assert rates["status_reasons"]


def test_the_leading_experts_come_by_weight_and_the_totals_are_of_all() -> None:
    rounds = [round_of(f"q{n}", {"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.2}) for n in range(9)]
    made, _ = folded(log_of([settings({"defaults": {"top_experts": 2}}), *rounds]))

    view = made.views()["f"]

    assert len(view.leading) == 3  # two, and whoever may take their place
    mixes = [expert.mix for expert in view.leading]
    assert mixes == sorted((expert.mix for expert in view.weights.experts), reverse=True)[:3]
    assert view.totals == pytest.approx((1.0, 1.0))


def test_effective_experts_are_all_for_the_mean_and_fewer_for_favourites() -> None:
    said = {"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.2}
    even, _ = folded(log_of([round_of("q", said)]))
    known = [event for n in range(60) for event in (round_of(f"q{n}", said), outcome(f"q{n}", 1))]
    favours, _ = folded(log_of(known))

    assert even.views()["f"].effective_experts == pytest.approx(4.0, abs=0.2)
    assert 1.0 <= favours.views()["f"].effective_experts < 3.9


def test_the_best_expert_had_a_say_in_at_least_ten_and_half_of_what_was_resolved() -> None:
    def view_after(questions: int, lucky: int) -> FeedView:
        said = {"a": 0.8, "b": 0.7, "c": 0.4}
        rounds = [round_of(f"q{n:02d}", said | ({"z": 0.99} if n < lucky else {})) for n in range(questions)]
        outcomes = [outcome(f"q{n:02d}", 1) for n in range(questions)]
        return folded(log_of([*rounds, *outcomes]))[0].views()["f"]

    assert view_after(9, 9).best_brier is None
    assert view_after(30, 14).best_brier == pytest.approx(0.2**2)
    assert view_after(30, 15).best_brier == pytest.approx(0.01**2)


def test_regret_is_told_where_it_can_be_bounded_and_not_where_the_past_is_forgotten() -> None:
    log = log_of([round_of("q", {"a": 0.9, "b": 0.8, "c": 0.3}), outcome("q", 1)])

    def regret(**settings: object) -> float | None:
        made, _ = folded(log, stage(**settings))
        return made.views()["f"].select_regret

    assert regret() == pytest.approx((0.01 + 0.04 + 0.49) / 3 - 0.01)
    assert regret(memory=100) is None
    assert regret(method={"against": "everybody", "error_rate": "outcomes"}) is None
