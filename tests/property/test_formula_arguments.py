"""Every public formula refuses what has no meaning, whatever it is and wherever it comes."""

import inspect
import math
from dataclasses import is_dataclass
from typing import Any

import numpy as np
import pytest

from stream_peer import numerics
from stream_peer.errors import FormulaInputError
from stream_peer.numerics.error_rates import ErrorRate
from tests.property.formula_calls import OBJECTS, Call, calls, numbers_of, wrong

CALLS = list(calls())
ADD_UP = (".merge", ".scaled", ".joined")
"""Sums that are nonsense are refused where they are read, not where they are added."""

MAY_BE_NAN = {"agreement_change", "measured_change", "expert_changes"}
"""Rates and shares before a change, of nothing."""

SHARES = (0.0, 1.0)
POSITIVE = (0.0, math.inf)
RANGES = {
    "ada_hedge": SHARES,
    "ada_hedge_rate": (0.0, 1e290),
    "ada_normal_hedge": SHARES,
    "answers_of_all": SHARES,
    "answers_of_groups": SHARES,
    "answers_of_other_group": SHARES,
    "answers_of_others": SHARES,
    "bucket_factors": SHARES,
    "bucket_size": (1.0, math.inf),
    "class_moment_terms": SHARES,
    "class_terms_of_teams": SHARES,
    "consistency_band": SHARES,
    "expert_limit": (3.9, math.inf),
    "fixed_share": SHARES,
    "flipped_error_rate": (0.0, 0.5),
    "follow_the_leader": SHARES,
    "forgetting_factor": SHARES,
    "gradient_hedge": SHARES,
    "gradient_normal_hedge": SHARES,
    "hedge": SHARES,
    "hedge_rate": POSITIVE,
    "interval_ends": SHARES,
    "isotonic_fit": SHARES,
    "leave_one_out": SHARES,
    "logit_mean": (0.02 - 1e-12, 0.98 + 1e-12),
    "loss_parts": SHARES,
    "median": SHARES,
    "mixability_gap": POSITIVE,
    "mixers_side_by_side": SHARES,
    "moment_terms": (-1.0, 1.0),
    "noise_boundary": POSITIVE,
    "outer_weights": SHARES,
    "priced": SHARES,
    "safety_net_step": SHARES,
    "share_of_ones": SHARES,
    "shared_answer_spread": POSITIVE,
    "shared_with_all": SHARES,
    "softmax": SHARES,
    "squared_loss": SHARES,
    "stretch_factor": (-1.0, math.inf),
    "stretched": SHARES,
    "team_votes": (-1.0, 1.0),
    "top_committee": SHARES,
    "two_group_deviations": POSITIVE,
    "two_group_solution": SHARES,
    "votes": (-1.0, 1.0),
    "FiveMixerSums.weights": SHARES,
    "RankAgreement.below": (-math.inf, math.inf),
    "SlopeSums.estimate": SHARES,
    "LogLoss.scaled": SHARES,
    "SphericalLoss.__call__": SHARES,
    "SquaredLoss.__call__": SHARES,
}
"""What the docstrings promise of every number of a result; of an error rate see below."""


def names(call: Call) -> str:
    return call.name


def check(call: Call, result: Any) -> None:
    """Every number within the documented range."""
    low, high = RANGES.get(call.name, (-math.inf, math.inf))
    for number in numbers_of(result):
        assert low <= number <= high or (call.name in MAY_BE_NAN and math.isnan(number)), f"{number} of {result}"
    for rate in [result, *result] if isinstance(result, tuple) else []:
        if isinstance(rate, ErrorRate):
            assert 0.0 <= rate.low <= rate.high <= 1.0
            assert 0.0 <= rate.variance <= 0.25
            assert all(0.0 <= one <= 1.0 for one in (rate.zero, rate.one))


@pytest.mark.parametrize("call", CALLS, ids=names)
def test_a_formula_takes_what_is_right_as_arrays_lists_and_plain_numbers(call: Call) -> None:
    result = call.result()

    check(call, result)
    if call.name.startswith("check_"):
        return
    listed = {name: value.tolist() for name, value in call.arguments.items() if isinstance(value, np.ndarray)}
    for name, value in listed.items():
        assert [*map(repr, numbers_of(call.result(name, value)))] == [*map(repr, numbers_of(result))]


@pytest.mark.parametrize("call", CALLS, ids=names)
def test_a_formula_gives_a_value_within_its_range_or_refuses_its_arguments(call: Call) -> None:
    for name, right in call.arguments.items():
        others = wrong(right)
        if name == "self":
            others = (other for other in others if isinstance(other, type(right)))
        if call.name.endswith(ADD_UP):
            others = (other for other in others if not isinstance(other, type(right)) or isinstance(right, int | float))
        for other in others:
            try:
                result = call.result(name, other)
            except FormulaInputError:
                continue
            except Exception as fault:
                msg = f"{call.name}({name}={other!r}) raises {type(fault).__name__}: {fault}"
                raise AssertionError(msg) from fault
            try:
                check(call, result)
            except AssertionError as fault:
                msg = f"{call.name}({name}={other!r}) is {result!r}"
                raise AssertionError(msg) from fault


def test_every_class_with_formulas_has_an_object_to_call_them_on() -> None:
    rooms = [getattr(numerics, room) for room in numerics.__all__]
    public = [getattr(room, name) for room in rooms for name in room.__all__]
    classes = {found for found in public if inspect.isclass(found) and is_dataclass(found)}

    assert classes <= {*OBJECTS}
