"""Which experts have gauges; what the gauges say is told in ``test_prometheus``."""

from stream_peer.adapters.prometheus.top_experts import TopExperts
from tests.unit.adapters.sample_history import weights


def test_an_expert_at_the_edge_of_the_top_keeps_its_series() -> None:
    top = TopExperts()
    first, _ = top.choose(weights(1, {"a": 0.4, "b": 0.3, "c": 0.2, "d": 0.1}).experts, 2)
    second, rest = top.choose(weights(2, {"a": 0.4, "b": 0.24, "c": 0.26, "d": 0.1}).experts, 2)
    third, _ = top.choose(weights(3, {"a": 0.4, "b": 0.1, "c": 0.3, "d": 0.2}).experts, 2)

    assert [expert.id for expert in first] == ["a", "b"]
    assert [expert.id for expert in second] == ["a", "b"]
    assert [expert.id for expert in rest] == ["c", "d"]
    assert [expert.id for expert in third] == ["a", "c"]
