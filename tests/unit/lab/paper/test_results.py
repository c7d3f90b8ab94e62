import json
import math

import numpy as np
import pytest

from stream_peer.lab.paper.results import (
    ClaimCheck,
    Mean,
    Size,
    as_json,
    at_least,
    at_most,
    band_shown,
    between,
    mean_of,
    near,
    none_of,
    shown,
)
from tests.unit.lab.paper.samples import sample_result


@pytest.mark.parametrize(("measured", "met"), [(0.3, True), (0.7, True), (0.2999, False), (math.nan, False)])
def test_a_number_meets_its_band_if_it_lies_within_or_at_an_end(measured: float, met: bool) -> None:
    assert ClaimCheck("x", "0.5", measured, 0.3, 0.7, "theory").met is met


def test_a_statistical_band_is_four_standard_errors_of_both_numbers_wide() -> None:
    check = near("x", Mean(10.0, 0.3), 9.0, error=0.4)

    assert [check.low, check.high] == pytest.approx([7.0, 11.0])


def test_one_repetition_says_nothing_and_misses_no_band() -> None:
    assert mean_of(np.array([3.0])) == (3.0, math.inf)
    assert near("x", mean_of(np.array([3.0])), 99.0).met


def test_bands_are_shown_by_their_ends() -> None:
    checks = [
        between("a", 1.0, 0.0, 2.0, "b"),
        at_most("a", 1.0, 2.0, "b"),
        at_least("a", 1.0, 2.0, "b"),
        none_of("a", 0),
    ]

    assert [band_shown(check) for check in checks] == ["0 to 2", "≤ 2", "≥ 2", "exactly 0"]
    assert [check.met for check in checks] == [True, True, False, True]


def test_numbers_that_are_zero_but_for_rounding_are_shown_as_zero() -> None:
    assert [shown(value) for value in (1.7e-16, 0.0004, -math.inf)] == ["0", "4.0e-04", "-∞"]


def test_results_for_a_machine_are_json_that_says_what_was_missed() -> None:
    found = as_json([sample_result(1), sample_result(2, missed=True)], size=Size.QUICK, seed=7)

    text = json.dumps(found, allow_nan=False)
    read = json.loads(text)
    assert (read["size"], read["seed"], read["met"]) == ("quick", 7, False)
    assert [claim["met"] for claim in read["claims"]] == [True, False]
    check = read["claims"][1]["checks"][1]
    assert (check["what"], check["measured"], check["low"], check["high"]) == ("violations", 3.0, 0.0, 0.0)
    assert (check["expected"], check["basis"], check["met"]) == ("0", "by theory", False)


def test_infinite_ends_and_numbers_are_null_for_a_machine() -> None:
    result = sample_result()._replace(checks=[at_most("x", -math.inf, 1.0, "b")])

    check = as_json([result], size=Size.FULL, seed=1)["claims"][0]["checks"][0]

    assert (check["measured"], check["low"], check["high"], check["met"]) == (None, None, 1.0, True)
