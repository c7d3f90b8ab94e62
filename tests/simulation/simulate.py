"""One seed: run its deployment, and judge it; make a seed that fails smaller."""

import gc
import hashlib
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple, TypeVar

import structlog

from stream_peer.events import topics
from tests.simulation.checker import problems
from tests.simulation.deployment import Deployment
from tests.simulation.mutants import mutated
from tests.simulation.plan import Plan, plan_of

T = TypeVar("T")


class Result(NamedTuple):
    """What became of a seed.

    ``events``: records of the input; ``errors``: what ended workers by themselves; ``digest``: of every byte on every
    topic, in its order, and of what happened when; ``seconds``: of computing.
    """

    seed: int
    problems: Sequence[str]
    events: int
    errors: Sequence[str]
    timeline: Sequence[str]
    digest: str
    seconds: float


def simulate(seed: int, mutant: str | None = None) -> Result:
    """Run the deployment of a seed until it is at rest, and compare what it left with the bare folds of its logs."""
    return carry_out(plan_of(seed), mutant)


def carry_out(plan: Plan, mutant: str | None = None) -> Result:
    """Run a plan, and judge what it left."""
    with _alone():
        return _judged(plan, mutant)  # nothing refers to its processes when what is left of them is collected


def _judged(plan: Plan, mutant: str | None) -> Result:
    began = time.process_time()
    with Deployment(plan) as deployment:
        with mutated(mutant):
            rests = deployment.run()
        found = list(problems(deployment)) if rests else ["it does not come to rest"]
    logs = deployment.broker.logs.items()
    count = sum(len(log.archive) for tp, log in logs if tp.topic in (topics.FORECAST_EVENTS, topics.CONTROL_EVENTS))
    written = [(tp, log.archive) for tp, log in sorted(logs)]
    digest = hashlib.sha256(repr((written, deployment.broker.timeline, deployment.loop.now)).encode()).hexdigest()
    seconds = time.process_time() - began
    return Result(plan.seed, found, count, deployment.errors, deployment.broker.timeline, digest, seconds)


def shrunk(plan: Plan, mutant: str | None = None, runs: int = 60) -> Plan:
    """Leave out faults and events of a plan that fails, as long as it fails."""
    left = [runs]

    def fails(smaller: Plan) -> bool:
        left[0] -= 1
        return left[0] >= 0 and bool(carry_out(smaller, mutant).problems)

    faults = _fewest(plan.faults, lambda some: fails(plan._replace(faults=some)))
    plan = plan._replace(faults=faults)
    keys = list(dict.fromkeys(sent.key for sent in plan.inputs if sent.topic == topics.FORECAST_EVENTS))

    def only(some: Sequence[str]) -> Plan:
        kept = [sent for sent in plan.inputs if sent.key in some or sent.topic != topics.FORECAST_EVENTS]
        return plan._replace(inputs=kept)

    return only(_fewest(keys, lambda some: fails(only(some))))


def _fewest(items: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> Sequence[T]:
    """Some of the items with which it fails still: halves are left out, then quarters, and so on."""
    size = len(items)
    while size > 1 or (size == 1 and items):
        size = max(1, size // 2)
        start = 0
        while start < len(items):
            fewer = [*items[:start], *items[start + size :]]
            if fails(fewer):
                items = fewer
            else:
                start += size
        if size == 1:
            break
    return items


@cache
def _freeze_once() -> None:
    """What is there stays: at its end a run collects its own alone."""
    gc.freeze()


@contextmanager
def _alone() -> Iterator[None]:
    """Without log lines, and without what coroutines of killed processes say when they are collected, here and now."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
    _freeze_once()
    gc.disable()  # in the middle of a run it would let killed processes go on with their ``finally``
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                yield
            finally:
                gc.collect()
    finally:
        gc.enable()
        sys.unraisablehook = hook
        structlog.reset_defaults()
