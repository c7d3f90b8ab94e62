"""All claims, one after the other or in several processes, with the same numbers either way."""

import multiprocessing
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import NamedTuple, TypeAlias

import numpy as np

from stream_peer.lab.paper.blow_up import blow_up
from stream_peer.lab.paper.certificates import certificates
from stream_peer.lab.paper.estimators import estimators
from stream_peer.lab.paper.heterogeneous import heterogeneous
from stream_peer.lab.paper.limited_truth import limited_truth
from stream_peer.lab.paper.results import Result, Size
from stream_peer.lab.paper.sublinear import sublinear_regret
from stream_peer.lab.paper.wrong_expert import wrong_expert

Claim: TypeAlias = Callable[[np.random.Generator, Size], Result]

CLAIMS: Mapping[int, Claim] = {
    1: sublinear_regret,
    2: wrong_expert,
    3: blow_up,
    4: limited_truth,
    5: heterogeneous,
    6: estimators,
    7: certificates,
}

_LONGEST_FIRST = (1, 7, 4, 6, 3, 2, 5)


class Done(NamedTuple):
    """A claim that was re-run, and how long it took."""

    result: Result
    seconds: float


def rerun(number: int, size: Size, seed: int) -> Done:
    """Re-run one claim. Each has random numbers of its own, so no claim changes another's."""
    begun = time.perf_counter()
    result = CLAIMS[number](np.random.default_rng([seed, number]), size)
    return Done(result, time.perf_counter() - begun)


def rerun_all(size: Size, seed: int, processes: int) -> Iterator[Done]:
    """Re-run every claim and give each as soon as it is there.

    Parameters
    ----------
    size : Size
        How much to simulate.
    seed : int
        Equal seeds give equal results, whatever the number of processes.
    processes : int
        With 1 everything runs in this process.
    """
    if processes <= 1:
        yield from (rerun(number, size, seed) for number in CLAIMS)
        return
    context = multiprocessing.get_context("spawn")  # a fork would copy whatever threads the caller has
    others = set(multiprocessing.active_children())
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        try:
            running = [pool.submit(rerun, number, size, seed) for number in _LONGEST_FIRST]
            for finished in as_completed(running):
                yield finished.result()
        except BaseException:  # whoever interrupts us, or has seen enough, need not wait for what is running
            for process in set(multiprocessing.active_children()) - others:
                process.terminate()
            raise
