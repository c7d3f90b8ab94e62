"""Which experts have gauges; what the gauges say is told in ``test_prometheus``."""

from stream_peer.serve.metrics.top_experts import TopExperts
from tests.unit.tools.report.sample_history import weights


def chosen(top: TopExperts, mix: dict[str, float], count: int = 2) -> list[str]:
    leading = sorted(weights(1, mix).experts, key=lambda expert: -expert.mix)
    return [expert.id for expert in top.choose(leading, count)]


def test_an_expert_at_the_edge_of_the_top_keeps_its_series() -> None:
    top = TopExperts()
    assert chosen(top, {"a": 0.4, "b": 0.3, "c": 0.2, "d": 0.1}) == ["a", "b"]
    assert chosen(top, {"a": 0.4, "b": 0.24, "c": 0.26, "d": 0.1}) == ["a", "b"]
    assert chosen(top, {"a": 0.4, "b": 0.1, "c": 0.3, "d": 0.2}) == ["a", "c"]


def test_no_more_are_shown_than_there_is_room_for() -> None:
    top = TopExperts()
    assert chosen(top, {"a": 0.4, "b": 0.3, "c": 0.2, "d": 0.1}, 3) == ["a", "b", "c"]
    assert chosen(top, {"a": 0.4, "b": 0.3, "c": 0.2, "d": 0.1}, 1) == ["a"]
    assert chosen(top, {"a": 0.4, "b": 0.3, "c": 0.2, "d": 0.1}, 0) == []
