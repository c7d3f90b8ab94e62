"""Loss beside a reference's on the same questions: who answers what is easy has a small loss without skill."""

import math
from typing import NamedTuple

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.losses import FloatArray
from stream_peer.numerics.losses.arguments import Numbers, checked


class Skill(NamedTuple):
    """A forecaster's loss, and how hard its questions were.

    Attributes
    ----------
    questions : int
        On how many both are known.
    loss : float
        Its mean loss; smaller is better.
    difficulty : float
        The mean loss of the reference on the same questions. What it answers easily, everybody does.
    skill : float or None
        1 - loss/difficulty: 0 is as good as the reference, 1 is perfect. None if the difficulty is 0.
    deviation : float or None
        Standard deviation of ``skill``, were questions independent; None of fewer than two.
    """

    questions: int
    loss: float
    difficulty: float
    skill: float | None
    deviation: float | None


@checked(losses=Numbers("n", low=0.0), reference_losses=Numbers("n", low=0.0))
def skill_score(losses: FloatArray, reference_losses: FloatArray) -> Skill:
    """Skill against a reference, on the questions that the forecaster answered.

    With means L and D of the two: ``skill = 1 - L/D``, and its deviation by linearising the ratio,
    ``√(Σ (ℓ_t - (L/D)·d_t)²/(n·(n - 1)))/D``. Losses of two who answered different questions are not comparable,
    their skills are more so: an expert who answers only what is easy has a small L *and* a small D.

    Parameters
    ----------
    losses : (n,) float64
        The forecaster's, ≥ 0, of the questions that it answered; n ≥ 1.
    reference_losses : (n,) float64
        The reference's on the same questions, ≥ 0; here the plain mean of all forecasts.

    Returns
    -------
    Skill

    Raises
    ------
    FormulaInputError
        If there are none, lengths differ, or a loss is negative or NaN.

    Notes
    -----
    Not in the paper. The reference contains the forecaster, one of many.

    Examples
    --------
    >>> import numpy as np
    >>> found = skill_score(np.array([0.1, 0.3]), np.array([0.2, 0.3]))
    >>> [round(float(value), 3) for value in (found.loss, found.difficulty, found.skill, found.deviation)]
    [0.2, 0.25, 0.2, 0.24]
    """
    _check(losses, reference_losses)
    n = losses.size
    loss, difficulty = (float(np.add.reduce(each)) / n for each in (losses, reference_losses))
    if not difficulty > 0.0:
        return Skill(n, loss, difficulty, None, None)
    ratio = loss / difficulty
    if n == 1:
        return Skill(n, loss, difficulty, 1.0 - ratio, None)
    apart = losses - ratio * reference_losses
    deviation = math.sqrt(float(np.add.reduce(apart * apart)) / (n * (n - 1.0))) / difficulty
    return Skill(n, loss, difficulty, 1.0 - ratio, deviation)


def _check(losses: FloatArray, reference_losses: FloatArray) -> None:
    if losses.shape != reference_losses.shape or losses.ndim != 1 or not losses.size:
        msg = f"losses have shapes {losses.shape!r} and {reference_losses.shape!r}: must be (n,), (n,), n >= 1"
        raise FormulaInputError(msg)
    if not (np.minimum.reduce(losses) >= 0.0 and np.minimum.reduce(reference_losses) >= 0.0):
        msg = (
            f"the smallest losses are {np.minimum.reduce(losses)!r}, {np.minimum.reduce(reference_losses)!r}: negative"
        )
        raise FormulaInputError(msg)
