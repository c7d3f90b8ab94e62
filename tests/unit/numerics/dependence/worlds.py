"""Votes of experts who err independently, or in one of the ways in which experts do not."""

import numpy as np

from stream_peer.numerics.arguments import BoolArray, SmallIntArray

N_QUESTIONS = 2_000


def world(kind: str, rng: np.random.Generator, n_experts: int) -> SmallIntArray:
    """Votes (questions, experts) of ±1, error rates from .2 to .45.

    ``none``: independent. ``clusters``: of four, three of whom copy the first half of the time. ``difficulty``: a
    normal shift of all log odds, of 1. ``herding``: a quarter of the votes follow the crowd so far. ``shock``: on a
    tenth of the questions everybody takes a coin for the outcome. ``outcome noise``: experts know how probable a yes
    is, with normal errors of 1 in the log odds, and the outcome is drawn from that.
    """
    votes, _ = world_and_outcomes(kind, rng, n_experts)
    return votes


def world_and_outcomes(kind: str, rng: np.random.Generator, n_experts: int) -> tuple[SmallIntArray, BoolArray]:
    outcomes = rng.random((N_QUESTIONS, 1)) < 0.5
    if kind == "outcome noise":
        probable = rng.uniform(0.02, 0.98, (N_QUESTIONS, 1))
        believed = np.log(probable / (1 - probable)) + rng.normal(size=(N_QUESTIONS, n_experts))
        return np.where(believed > 0.0, 1, -1).astype(np.int8), (rng.random((N_QUESTIONS, 1)) < probable)[:, 0]
    errors = rng.uniform(0.2, 0.45, n_experts)
    seen = outcomes
    if kind == "shock":
        seen = np.where(rng.random((N_QUESTIONS, 1)) < 0.1, rng.random((N_QUESTIONS, 1)) < 0.5, outcomes)
    odds = (1 - errors) / errors
    if kind == "difficulty":
        odds = odds * np.exp(rng.normal(size=(N_QUESTIONS, 1)))
    yes = (rng.random((N_QUESTIONS, n_experts)) < 1 / (1 + odds)) ^ seen
    if kind == "clusters":
        leaders = np.arange(n_experts) // 4 * 4
        yes = np.where(rng.random(yes.shape) < 0.5, yes[:, leaders], yes)
    if kind == "herding":
        _follow_the_crowd(yes, rng.random(yes.shape) < 0.25)
    return np.where(yes, 1, -1).astype(np.int8), outcomes[:, 0]


def _follow_the_crowd(yes: BoolArray, follows: BoolArray) -> None:
    for expert in range(1, yes.shape[1]):
        lead = 2 * yes[:, :expert].sum(axis=1) - expert
        yes[:, expert] = np.where(follows[:, expert] & (lead != 0), lead > 0, yes[:, expert])
