"""One seed: run its deployment, and judge it."""

import gc
import hashlib
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import structlog

from stream_peer.events import topics
from tests.simulation.checker import problems
from tests.simulation.deployment import Deployment, plan_of
from tests.simulation.mutants import mutated


class Result(NamedTuple):
    """What became of a seed.

    ``events``: records of the input; ``errors``: what ended workers by themselves; ``digest``: of every byte on every
    topic, in its order, and of what happened when.
    """

    problems: Sequence[str]
    events: int
    errors: Sequence[str]
    timeline: Sequence[str]
    digest: str


def simulate(seed: int, mutant: str | None = None) -> Result:
    """Run the deployment of a seed until it is at rest, and compare what it left with the bare folds of its logs."""
    with _alone():
        return _simulate(seed, mutant)


def _simulate(seed: int, mutant: str | None) -> Result:
    deployment = Deployment(plan_of(seed))
    with mutated(mutant):
        rests = deployment.run()
    found = list(problems(deployment)) if rests else ["it does not come to rest"]
    logs = deployment.broker.logs.items()
    count = sum(len(log.archive) for tp, log in logs if tp.topic in (topics.FORECAST_EVENTS, topics.CONTROL_EVENTS))
    written = [(tp, log.archive) for tp, log in sorted(logs)]
    digest = hashlib.sha256(repr((written, deployment.broker.timeline, deployment.loop.now)).encode()).hexdigest()
    return Result(found, count, deployment.errors, deployment.broker.timeline, digest)


@contextmanager
def _alone() -> Iterator[None]:
    """Without log lines, and without what coroutines of killed processes say when they are collected, here and now."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
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
