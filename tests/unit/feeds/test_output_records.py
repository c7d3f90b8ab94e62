import msgspec
import pytest

from stream_peer.events import topics
from stream_peer.events.outputs import ErrorRateSummary, PeerLosses, ScoredExpert, Weights, encode_output
from stream_peer.events.topics import MAX_RECORD_BYTES
from stream_peer.feeds.outputs import published
from stream_peer.log.stage import Output
from stream_peer.serve.feed_records import FeedRecords
from stream_peer.tools.replay.history import ReplayHistory
from tests.feed_histories import folded, log_of, outcome, round_of, settings

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
        final=True,
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
    assert all(len(output.value or b"") <= MAX_RECORD_BYTES for output in outputs)
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
    records, history = FeedRecords(), ReplayHistory()

    outputs = published(topics.WEIGHTS, "f", whole, 5)
    for output in outputs:
        records.add_weights(output.key or b"", output.value)
        history.add(output.topic, output.value, output.headers, output.key)

    assert max(len(output.value or b"") for output in outputs) <= MAX_RECORD_BYTES
    assert len(outputs) < 2 + 2 * len(encode_output(whole)) / MAX_RECORD_BYTES
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
