"""Whatever breaks, state and outputs are those of the bare folds; and a mechanism that is broken is found out."""

import os
import subprocess
import sys

import pytest

from tests.simulation.mutants import FOUND_BY, HARMLESS, MUTANTS, SECOND, UNLEASED
from tests.simulation.plan import plan_of
from tests.simulation.simulate import carry_out, shrunk, simulate

SEEDS = (*range(20), 607, 2531, 7099, 8745, 8984)
"""Besides the first ones, those that have found a fault."""
OTHER_SEEDS = range(100)
"""A change of the mechanism may let another seed find a mutant first."""


@pytest.mark.parametrize("seed", SEEDS)
def test_a_deployment_ends_as_the_bare_folds_of_its_logs_do_whatever_breaks(seed: int) -> None:
    result = simulate(seed)
    assert not result.problems, "\n".join(result.timeline)


@pytest.mark.parametrize(("mutant", "seed"), FOUND_BY.items())
def test_a_broken_mechanism_is_found(mutant: str, seed: int) -> None:
    assert any(finds(mutant, other) for other in (seed, *OTHER_SEEDS))


def finds(mutant: str, seed: int) -> bool:
    """Whether it is the mutant that a seed finds."""
    return bool(simulate(seed, mutant).problems) and not (mutant in SECOND and simulate(seed, UNLEASED).problems)


@pytest.mark.parametrize("mutant", HARMLESS)
@pytest.mark.parametrize("seed", range(4))
def test_a_change_that_another_promise_makes_harmless_breaks_nothing(mutant: str, seed: int) -> None:
    assert not simulate(seed, mutant).problems


def test_a_deployment_that_fails_is_made_smaller_and_fails_still() -> None:
    plan = plan_of(0)

    smaller = shrunk(plan, "the order of batches is not checked", runs=12)

    assert len(smaller.inputs) + len(smaller.faults) < len(plan.inputs) + len(plan.faults)
    assert carry_out(smaller, "the order of batches is not checked").problems


def test_what_workers_write_and_when_depends_on_neither_process_nor_hash_seed() -> None:
    command = [sys.executable, "-m", "tests.simulation", "4", "--first", "3", "--digest"]
    running = [
        subprocess.Popen(command, env={**os.environ, "PYTHONHASHSEED": seed}, stdout=subprocess.PIPE) for seed in "12"
    ]
    one, other = (process.communicate()[0].splitlines()[:4] for process in running)

    assert one == other
    assert len(set(one)) == 4


def test_each_mutant_is_found() -> None:
    assert FOUND_BY.keys() == MUTANTS.keys()
