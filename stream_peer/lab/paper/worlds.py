"""What the simulations draw: outcomes, reference answers as noisy copies of them, and experts of known quality."""

import numpy as np

from stream_peer.numerics import BoolArray, FloatArray


def outcomes(rng: np.random.Generator, chances: FloatArray) -> FloatArray:
    """Outcomes, 0. or 1., each 1 with its chance."""
    return (rng.random(chances.shape) < chances).astype(np.float64)


def flipped(values: FloatArray | BoolArray, where: BoolArray) -> FloatArray:
    """Values of 0 and 1, turned into the other where told so."""
    return np.not_equal(values, where).astype(np.float64)


def shrunk(chances: FloatArray, shrinkage: FloatArray | float) -> FloatArray:
    """Forecasts of experts who know the chances and shrink them: ``½ + κ·(p - ½)``. κ = 1 is perfect, 0 knows nothing.

    The expected squared loss of κ exceeds that of the perfect expert by ``(1 - κ)²·E(p - ½)²``. A squared loss against
    a reference answer of error rate η prefers κ to the perfect expert if and only if ``1 - 4η < κ < 1``.
    """
    return np.asarray(0.5 + shrinkage * (chances - 0.5), dtype=np.float64)
