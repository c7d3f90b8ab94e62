import msgspec
import pytest

from stream_peer.engine.stage import Output
from stream_peer.engine.views import LARGEST, published
from stream_peer.events import topics
from stream_peer.events.outputs import ErrorRateSummary, PeerLosses, ScoredExpert, Weights
from tests.feed_histories import folded, log_of, newest, outcome, round_of, settings

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
