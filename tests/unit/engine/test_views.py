import msgspec
import pytest

from stream_peer.adapters.feed_records import FeedRecords
from stream_peer.adapters.history import History
from stream_peer.engine.stage import Output
from stream_peer.engine.views import LARGEST, FeedView, published
from stream_peer.events import topics
from stream_peer.events.outputs import ErrorRateSummary, PeerLosses, ScoredExpert, Weights, encode_output
from tests.feed_histories import folded, log_of, newest, outcome, round_of, settings, stage

RATES = ErrorRateSummary(zero=0.1, one=0.1, low=0.0, high=0.2, status="ok", measured=None)


def losses_of(n_experts: int, id_length: int) -> PeerLosses:
    experts = [
        ScoredExpert(id=f"{k:0{id_length}d}", probability=0.5, reference_answer=1, peer_loss=0.25, outcome_loss=None)
        for k in range(n_experts)
    ]
    return PeerLosses(
        feed="f",
        revision=1,
        at="2026-01-01T00:00:00Z",
        settings="0",
        question="q",
        trust="ok",
        state="scored",
        boundary=None,
        rounds=1,
        error_rate=RATES,
        experts=experts,
    )


def decoded(outputs: list[Output]) -> list[PeerLosses]:
    return [msgspec.json.decode(output.value or b"", type=PeerLosses) for output in outputs]


def test_small_records_stay_whole() -> None:
    (output,) = published(topics.PEER_LOSSES, "q", losses_of(3, 4), 5)

    assert (output.topic, output.key, output.timestamp, output.partition) == (topics.PEER_LOSSES, b"q", 5, None)
    assert output.headers == (("schema", b"1"), ("settings", b"0"))
    assert b"part" not in (output.value or b"")


def test_large_records_are_split_by_expert_and_nobody_is_lost() -> None:
    record = losses_of(20_000, 200)
    outputs = published(topics.PEER_LOSSES, "q", record, 5)
    parts = decoded(outputs)

    assert [output.key for output in outputs] == [b"q/%d" % number for number in range(len(parts))]
    assert all(len(output.value or b"") <= LARGEST for output in outputs)
    assert [(part.part, part.parts) for part in parts] == [(k, len(parts)) for k in range(len(parts))]
    assert [expert for part in parts for expert in part.experts] == record.experts
    assert {tuple(output.headers) for output in outputs} == {(("schema", b"1"), ("settings", b"0"))}


def weights_of(n_experts: int, id_length: int, groups: list[list[int]]) -> Weights:
    names = [f"{k:0{id_length}d}" for k in range(n_experts)]
    listed = {"mix": 0.1, "select": 0.1, "questions": 1, "coverage": 1, "peer_loss": None, "outcome_loss": None}
    found = {"kind": "copies", "agreement": 1.0, "expected": 0.2, "questions": 50}
    return msgspec.convert(
        {
            "feed": "f",
            "revision": 1,
            "at": "2026-01-01T00:00:00Z",
            "settings": "0",
            "status": "ok",
            "status_reasons": [],
            "questions": 1,
            "resolved": 0,
            "error_rate": RATES,
            "certificate": None,
            "mixer": {"mean": 1, "peer": 0, "truth_slow": 0, "truth_fast": 0},
            "stretch": 0,
            "select_shrink": 0,
            "experts": [{"id": name, "resolved": 0, "team": None, **listed} for name in names],
            "groups": [{"experts": [names[place] for place in group], **found} for group in groups],
        },
        Weights,
    )


@pytest.mark.parametrize("id_length", [8, 250])
@pytest.mark.parametrize("size", [2, 5000])
def test_groups_are_split_as_their_experts_are_however_many_and_large(id_length: int, size: int) -> None:
    groups = [list(range(first, 10_000, 10_000 // size)) for first in range(10_000 // size)]
    whole = weights_of(10_000, id_length, groups)
    records, history = FeedRecords(), History()

    outputs = published(topics.WEIGHTS, "f", whole, 5)
    for output in outputs:
        records.add_weights(output.key or b"", output.value)
        history.add(output.topic, output.value, output.headers, output.key)

    assert max(len(output.value or b"") for output in outputs) <= LARGEST
    assert len(outputs) < 2 + 2 * len(encode_output(whole)) / LARGEST
    for output in outputs:
        part = msgspec.json.decode(output.value or b"", type=Weights)
        assert {name for group in part.groups or [] for name in group.experts} <= {one.id for one in part.experts}
    for joined in (records.weights("f"), history.feeds["f"].weights):
        assert joined is not None
        assert joined.experts == whole.experts
        assert [group.experts for group in joined.groups or []] == [group.experts for group in whole.groups or []]


def test_every_output_says_schema_and_settings_in_its_headers_as_in_its_value() -> None:
    stage, before = folded(log_of([round_of("q", {"a": 0.9, "b": 0.8, "c": 0.7})]))
    _, after = folded(log_of([settings({"defaults": {"confidence": 0.9}}), outcome("q", 0)], first=1), stage)

    outputs = [*before.outputs, *after.outputs]
    assert {output.topic for output in outputs} == {*topics.KEYED_BY_FEED, *topics.KEYED_BY_QUESTION}
    for output in outputs:
        fields = msgspec.json.decode(output.value or b"")
        assert dict(output.headers) == {"schema": b"%d" % fields["schema"], "settings": fields["settings"].encode()}
    assert len({id(output.headers) for output in outputs}) == 2


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
