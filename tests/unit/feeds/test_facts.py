import struct
from typing import Any

import msgspec
import numpy as np
import pytest

from stream_peer.feeds.facts import Facts, boundary_of, losses_of, mix_of, unpack
from stream_peer.feeds.methods.method import Method
from stream_peer.feeds.shadow_mixers import ShadowForecast
from stream_peer.numerics.agreement import CrossAgreement
from tests.unit.feeds.sample_facts import METHOD, facts_of, scoring_inputs

AT_HALF = Method(mixes_at_half=True)
WHOLE = {"rule": 1, "counts": 1, "final": 1, "answer": 1, "tie": 1, "groups": 26, "half_voters": 7, "half_yes": 4}
CLASSES, FOURTH = (0.5, 0.25, 0.125, 0.75, 0.375), (0.5, 0.3, 0.2, 0.1)
NO_CLASSES, NO_FOURTH = (-1.0,) * 5, (-1.0,) * 4
RATES, OWN, PUBLISHED, SPREAD = (0.125, 0.25), (0.31, 0.32, 0.33), (0.41, 0.42, 0.43), 0.51
MOMENTS, GAP, SUBSAMPLE = (0.61, -0.62, 0.63), 0.81, 24.0
COMBINED = (0.71, 0.72, 0.73, 0.74, 0.75, 0.76, 0.77, 0.78, 0.79)
EXPERTS, FORECASTS, SELECT = (2, 5, 700_000), (0.9, 1 / 3, 0.0), (0.5, 0.3, 0.2)
BITS = bytes([0b0101, 0b1110, 0b0000])
"""From the right: answer, tie, vote (01 for yes, 11 for no, 00 for none)."""


def stored(selected: int, classes: tuple[float, ...], fourth: tuple[float, ...], shadows: bytes = b"") -> bytes:
    """Facts in the form that every release has stored them in."""
    numbers = (*RATES, *OWN, *PUBLISHED, SPREAD, *MOMENTS, *classes, *COMBINED, GAP, *fourth, SUBSAMPLE)
    head = struct.pack("<qBBBBBBiiiii32d", 1_700_000_000_123, *WHOLE.values(), 6, selected, 3, *numbers)
    return head + struct.pack("<3i6d", *EXPERTS, *FORECASTS, *SELECT) + BITS + shadows


CASES: list[tuple[int, tuple[float, ...], tuple[float, ...], bytes]] = [
    (1, CLASSES, FOURTH, b""),
    (-1, NO_CLASSES, NO_FOURTH, struct.pack("<q2d", -7, 0.4, 0.3)),
]


@pytest.mark.parametrize(("selected", "classes", "fourth", "shadows"), CASES)
def test_stored_facts_are_read_and_stored_again_byte_for_byte(
    selected: int, classes: tuple[float, ...], fourth: tuple[float, ...], shadows: bytes
) -> None:
    packed = stored(selected, classes, fourth, shadows)

    facts = unpack(packed)

    assert facts.pack() == packed
    assert msgspec.structs.astuple(mix_of(packed)) == COMBINED
    assert boundary_of(packed) == facts.boundary == 1_700_000_000_123
    assert msgspec.structs.astuple(facts.votes) == (1, True, 1, True, 26, 7, 4, 6)
    assert msgspec.structs.astuple(facts.losses) == (*RATES, OWN, PUBLISHED, SPREAD, GAP)
    assert msgspec.structs.astuple(facts.mix) == COMBINED
    assert (facts.moments.pair, facts.moments.rest, facts.moments.ones, facts.moments.subsample) == (*MOMENTS, 24)
    assert facts.experts.tolist() == [*EXPERTS]
    assert (facts.answers.tolist(), facts.ties.tolist(), facts.cast.tolist()) == ([1, 0, 0], [0, 1, 0], [1, -1, 0])


def test_what_there_is_not_of_facts_is_none() -> None:
    whole, without = (unpack(stored(*case)) for case in CASES)

    assert (whole.selected, whole.moments.classes, whole.moments.fourth, whole.shadows) == (1, CLASSES, FOURTH, ())
    assert (without.selected, without.moments.classes, without.moments.fourth) == (None, None, None)
    assert without.shadows == (ShadowForecast(-7, 0.4, 0.3),)


@pytest.mark.parametrize("thresholds", [None, [0.4] * 50])
def test_packed_facts_come_back_bit_for_bit(thresholds: list[float] | None) -> None:
    generator = np.random.default_rng(5)
    under = scoring_inputs(50, thresholds=thresholds)
    facts = facts_of(generator.random(50).tolist(), boundary=1_700_000_000_123, under=under)

    again = unpack(facts.pack())

    assert _plain(again) == _plain(msgspec.structs.replace(facts, expert_losses=None))
    np.testing.assert_array_equal(losses_of(again, METHOD), facts.expert_losses)
    assert len(facts.pack()) <= 50 * 21 + 300


@pytest.mark.parametrize("case", CASES)
def test_an_agreement_is_stored_behind_what_the_release_before_stored(
    case: tuple[int, tuple[float, ...], tuple[float, ...], bytes],
) -> None:
    former = stored(*case)
    facts = msgspec.structs.replace(unpack(former), agreement=CrossAgreement(0.25, -0.125, 0.5))

    packed = facts.pack()

    assert packed == former + struct.pack("<3dx", 0.25, -0.125, 0.5)
    assert (unpack(packed).agreement, unpack(packed).shadows) == (facts.agreement, facts.shadows)
    assert unpack(former).agreement is None


def test_answers_at_one_half_are_stored_beside_those_of_the_vote_rule_where_they_differ() -> None:
    """By own medians all others say yes to each, at one half no; a former release reads the byte as before."""
    under, at_half = scoring_inputs(3, thresholds=[0.1, 0.1, 0.1]), scoring_inputs(3)
    forecasts = [0.2, 0.3, 0.4]

    former, facts = (facts_of(forecasts, under=under, method=method) for method in (METHOD, AT_HALF))

    assert facts.mixer_answers is not None
    assert facts.mixer_answers.tolist() == facts_of(forecasts, under=at_half).answers.tolist() == [0, 0, 0]
    assert facts.answers.tolist() == unpack(facts.pack()).answers.tolist() == [1, 1, 1]
    again = unpack(facts.pack())
    assert again.mixer_answers is not None
    assert again.mixer_answers.tolist() == [0, 0, 0]
    assert former.mixer_answers is unpack(former.pack()).mixer_answers is None
    assert bytes(byte & 0b1111 for byte in facts.pack()[-3:]) == former.pack()[-3:]


def test_answers_at_one_half_that_are_those_of_the_vote_rule_are_not_stored_again() -> None:
    agreeing = facts_of([0.7, 0.8, 0.9], under=scoring_inputs(3, thresholds=[0.5, 0.5, 0.6]), method=AT_HALF)

    assert agreeing.mixer_answers is None
    assert facts_of([0.7, 0.8, 0.1], method=AT_HALF).mixer_answers is None


def _plain(facts: Facts) -> dict[str, Any]:
    values = msgspec.structs.asdict(facts)
    return {name: _value(value) for name, value in values.items()}


def _value(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return msgspec.structs.astuple(value) if isinstance(value, msgspec.Struct) else value
