"""Whatever breaks, state and outputs are those of the bare folds; and a mechanism that is broken is found out."""

import os
import subprocess
import sys

import pytest

from tests.simulation.mutants import MUTANTS
from tests.simulation.simulate import simulate

SEEDS = range(20)

FINDS = {
    "the order of batches is not checked": 3,
    "offsets that are missing count as proven": 3,
    "repeated records are folded again": 0,
    "the lease is ignored": 55,
}
"""Of some mutants a seed that finds them; ``python -m tests.simulation 1000 --mutant NAME`` finds each."""


@pytest.mark.parametrize("seed", SEEDS)
def test_a_deployment_ends_as_the_bare_folds_of_its_logs_do_whatever_breaks(seed: int) -> None:
    result = simulate(seed)
    assert not result.problems, "\n".join(result.timeline)


@pytest.mark.parametrize(("mutant", "seed"), FINDS.items())
def test_a_broken_mechanism_is_found(mutant: str, seed: int) -> None:
    assert simulate(seed, mutant).problems


def test_what_workers_write_and_when_depends_on_neither_process_nor_hash_seed() -> None:
    command = [sys.executable, "-m", "tests.simulation", "4", "--first", "3", "--digest"]
    running = [
        subprocess.Popen(command, env={**os.environ, "PYTHONHASHSEED": seed}, stdout=subprocess.PIPE) for seed in "12"
    ]
    one, other = (process.communicate()[0].splitlines()[:4] for process in running)

    assert one == other
    assert len(set(one)) == 4


def test_every_mutant_named_here_is_one() -> None:
    assert set(FINDS) <= set(MUTANTS)
