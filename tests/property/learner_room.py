"""All learners behind one signature, and pools of experts for them."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from hypothesis import strategies as st

from stream_peer.lab.formulas.learners import ada_hedge, fixed_share, follow_the_leader, top_committee
from stream_peer.numerics.arguments import BoolArray, FloatArray
from stream_peer.numerics.learners import ada_normal_hedge, hedge

Learner: TypeAlias = Callable[[FloatArray, FloatArray, BoolArray | None], FloatArray]
"""Regrets, sums of absolute regrets, who is awake: weights."""


def _fixed_share(regrets: FloatArray, absolute: FloatArray, awake: BoolArray | None) -> FloatArray:
    """One step from weights that differ; scaled to those awake, who had a part of the whole."""
    before = (1.0 + absolute) / np.add.reduce(1.0 + absolute, axis=-1, keepdims=True)
    after = fixed_share(before, regrets, 0.3, 0.05, awake)
    if awake is None:
        return after
    present = np.where(awake, after, 0.0)
    total = np.add.reduce(present, axis=-1, keepdims=True)
    return np.divide(present, total, out=np.zeros(present.shape), where=total > 0.0)


LEARNERS: dict[str, Learner] = {
    "ada_normal_hedge": lambda regrets, absolute, awake: ada_normal_hedge(regrets, absolute, awake=awake),
    "hedge": lambda regrets, _, awake: hedge(regrets, 0.3, awake=awake),
    "ada_hedge": lambda regrets, _, awake: ada_hedge(regrets, 2.0, 10, awake=awake),
    "fixed_share": _fixed_share,
    "follow_the_leader": lambda regrets, _, awake: follow_the_leader(regrets, awake),
    "top_committee": lambda regrets, _, awake: top_committee(regrets, 3, awake),
}

pools = st.lists(st.tuples(st.floats(-50.0, 50.0), st.floats(0.0, 200.0)), min_size=1, max_size=10)
tied_pools = st.lists(st.tuples(st.integers(-2, 3).map(float), st.integers(0, 3).map(float)), min_size=1, max_size=10)


def columns(pool: list[tuple[float, float]]) -> tuple[FloatArray, FloatArray]:
    """Regrets and their absolute sums."""
    regrets, absolute = zip(*pool, strict=True)
    return np.array(regrets), np.array(absolute)
