import multiprocessing
import os
from typing import NoReturn

import pytest

from stream_peer.lab.paper import run
from stream_peer.lab.paper.results import Size
from stream_peer.lab.paper.run import CLAIMS, rerun
from tests.unit.lab.paper.samples import SEED


def test_a_claim_re_run_with_the_same_seed_gives_the_same_numbers_and_with_another_seed_others() -> None:
    once, again, other = (rerun(7, Size.QUICK, seed).result for seed in (SEED, SEED, 3))

    assert once == again
    assert [check.measured for check in other.checks] != [check.measured for check in once.checks]
    assert once.number == 7


def test_claims_are_numbered_in_the_order_of_the_report() -> None:
    assert list(CLAIMS) == [1, 2, 3, 4, 5, 6, 7]


def test_an_interrupt_ends_at_once_what_other_processes_simulate(monkeypatch: pytest.MonkeyPatch) -> None:
    others, simulating = set(multiprocessing.active_children()), list[int]()

    def interrupted(running: object) -> NoReturn:
        simulating.extend(child.pid or 0 for child in set(multiprocessing.active_children()) - others)
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "as_completed", interrupted)

    with pytest.raises(KeyboardInterrupt):
        list(run.rerun_all(Size.FULL, 1, 2))

    assert len(simulating) == 2
    for process in simulating:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
