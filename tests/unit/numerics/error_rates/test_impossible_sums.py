"""Sums that no questions have give an error or a rate, and never NaN."""

import math
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_peer.errors import FormulaInputError
from stream_peer.lab.formulas.horvitz_thompson import HorvitzThompsonSums
from stream_peer.lab.formulas.three_references import ThreeReferenceClassSums, ThreeReferenceSums
from stream_peer.lab.formulas.two_groups import EqualGroupSums
from stream_peer.numerics.dependence import DependenceSums, VoteMoments
from stream_peer.numerics.error_rates import (
    ClassMomentSums,
    ClassMomentTerms,
    MomentSums,
    MomentTerms,
    TruthSums,
    TwoGroupSums,
)

KINDS: list[Any] = [
    MomentSums,
    ClassMomentSums,
    TwoGroupSums,
    EqualGroupSums,
    ThreeReferenceSums,
    ThreeReferenceClassSums,
    HorvitzThompsonSums,
    TruthSums,
]
CONTRIBUTIONS: dict[str, Any] = {
    "moments": partial(MomentSums.contribution, MomentTerms(0.2, 0.3)),
    "class moments": partial(ClassMomentSums.contribution, ClassMomentTerms(0.5, 0.3, 0.2, 0.5, 0.3)),
    "two groups": partial(TwoGroupSums.contribution, 1, 0),
    "three references": partial(ThreeReferenceSums.contribution, 1, 0, 1),
    "Horvitz and Thompson": partial(HorvitzThompsonSums.contribution, 0.5, 0.5),
    "outcomes": partial(TruthSums.contribution, 0.5, 1),
    "dependence": partial(DependenceSums.contribution, VoteMoments(0.5, 0.3, 0.2, 0.1), 3),
}

numbers = st.one_of(
    st.floats(-1000.0, 1000.0),
    st.sampled_from([0.0, 1.0, -1.0, 1e-308, 1e-300, 1e300, math.inf, -math.inf, math.nan, -1e-9, 1e16]),
)


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_an_estimate_is_a_number_or_the_sums_are_refused(kind: Any, data: st.DataObject) -> None:
    sums = kind(*(data.draw(numbers) for _ in fields(kind)))

    try:
        found = sums.estimate()
    except FormulaInputError:
        return
    assert not any(np.isnan(value) for value in (*found[:5], found.variance))


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_a_sum_of_weights_that_is_none_is_refused(kind: Any, wrong: float) -> None:
    with pytest.raises(FormulaInputError, match=r"no questions have these|within"):
        kind(wrong, *(1.0 for _ in fields(kind)[1:])).estimate()


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -0.5])
@pytest.mark.parametrize("contribution", CONTRIBUTIONS.values(), ids=CONTRIBUTIONS)
def test_a_weight_that_is_none_is_refused(contribution: Any, wrong: float) -> None:
    assert contribution(weight=0.5) is not None
    with pytest.raises(FormulaInputError, match="weight"):
        contribution(weight=wrong)
