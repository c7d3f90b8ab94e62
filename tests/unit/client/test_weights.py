"""What a consumer does with the weights of a feed."""

import random
from typing import Any

import msgspec
import pytest

from stream_peer.events.outputs import encode_output
from stream_peer_client import ForecastRangeError, Mixed, NoWeightError, Weights
from stream_peer_client.newest import Newest
from tests.feed_outputs import expert, weights


def handed_out(stretch: float = 0.0, **mix: float) -> Weights:
    experts = [msgspec.structs.replace(expert(name), mix=share, select=share) for name, share in mix.items()]
    record = msgspec.structs.replace(weights(7), experts=experts, stretch=stretch)
    newest = Newest()
    newest.add(b"econ", encode_output(record))
    found = newest.weights("econ")
    assert found is not None
    return Weights.of(found)


def test_a_mix_is_the_mean_by_the_weights_of_those_who_are_there() -> None:
    found = handed_out(a=0.5, b=0.25, c=0.25)

    assert found.mix({"a": 0.2, "b": 0.8}) == pytest.approx(Mixed(0.4, 0.4), abs=1e-15)
    assert found.mix({"a": 0.2, "stranger": 1.0}).mix == 0.2
    assert found.mix({"a": 1.0, "b": 1.0, "c": 1.0}) == (1.0, 1.0)


@pytest.mark.parametrize(("stretch", "stretched"), [(0.0, 0.7), (0.5, 0.8), (-0.5, 0.6), (2.0, 1.0)])
def test_a_mix_is_stretched_away_from_one_half_and_cut(stretch: float, stretched: float) -> None:
    assert handed_out(stretch, a=1.0).mix({"a": 0.7}).stretched == pytest.approx(stretched, abs=1e-15)
    assert handed_out(stretch, a=1.0).mix({"a": 0.3}).stretched == pytest.approx(1.0 - stretched, abs=1e-15)


def test_of_nobody_with_a_weight_there_is_no_mix_and_nobody_to_follow() -> None:
    found = handed_out(a=1.0, b=0.0)

    for attempt in (lambda: found.mix({"b": 0.5}), lambda: found.mix({}), lambda: found.select(random.Random(), "b")):
        with pytest.raises(NoWeightError, match="none of these experts has a weight in econ"):
            attempt()


@pytest.mark.parametrize("forecast", [-0.01, 62, float("nan")])
def test_what_is_no_probability_is_refused_also_of_a_stranger(forecast: float) -> None:
    with pytest.raises(ForecastRangeError, match="the forecast of stranger is"):
        handed_out(a=1.0).mix({"a": 0.5, "stranger": forecast})


class Numbers(random.Random):
    """Draws the same number always."""

    def __init__(self, number: float) -> None:
        super().__init__()
        self._number = number

    def random(self) -> float:
        return self._number


@pytest.mark.parametrize(("number", "drawn"), [(0.0, "a"), (0.49, "a"), (0.51, "c"), (0.74, "c"), (0.76, "d")])
def test_one_expert_is_drawn_by_the_selection_weights(number: float, drawn: str) -> None:
    assert handed_out(a=0.5, b=0.0, c=0.25, d=0.25).select(Numbers(number)) == drawn


def test_only_who_is_there_is_drawn_and_who_has_no_weight_never() -> None:
    found = handed_out(a=0.5, b=0.0, c=0.25, d=0.25)

    assert [found.select(Numbers(number), ["d", "b", "c", "stranger"]) for number in (0.0, 0.6)] == ["d", "c"]
    assert found.select(Numbers(1.0 - 2**-53), ["c", "b"]) == "c"


def test_weights_do_not_change() -> None:
    found: Any = handed_out(a=1.0)

    with pytest.raises(AttributeError):
        found.stretch = 1.0
    with pytest.raises(TypeError):
        found.experts["b"] = found.experts["a"]
    assert isinstance(found.status_reasons, tuple)
