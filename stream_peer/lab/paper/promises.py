"""What the bounds promise of fixed-rate Hedge, in one call each."""

from typing import NamedTuple

from stream_peer.lab.formulas.apriori import direct_bound, printed_bound, repaired_bound
from stream_peer.lab.formulas.heterogeneous import heterogeneous_bound, heterogeneous_bound_printed
from stream_peer.lab.formulas.online import hedge_regret
from stream_peer.numerics.arguments import FloatArray

DELTA = 0.05
"""Every bound holds with probability .95, if it holds."""


class Promises(NamedTuple):
    """Values of three bounds in summed loss, also where they exceed the number of questions and so say nothing."""

    direct: float
    repaired: float
    printed: float


def promises(n_experts: int, questions: int, rate: float) -> Promises:
    """Direct bound, Theorem 3 repaired, and as printed, the error rate known."""
    online = hedge_regret(n_experts, questions)
    return Promises(
        *(
            bound(online, n_experts, questions, (rate, rate), DELTA).formula
            for bound in (direct_bound, repaired_bound, printed_bound)
        )
    )


class Heterogeneous(NamedTuple):
    """Bounds where the error rate changes from question to question: repaired, and Theorem 9 as printed."""

    repaired: float
    printed: float


def heterogeneous_promises(rates: FloatArray, best_loss: float, n_experts: int) -> Heterogeneous:
    """For the rates of all questions, after flipping."""
    online = hedge_regret(n_experts, rates.size)
    repaired = heterogeneous_bound(online, n_experts, rates.size, rates, best_loss, DELTA)
    printed = heterogeneous_bound_printed(online, n_experts, rates.size, rates, best_loss, DELTA)
    return Heterogeneous(repaired.formula, printed.formula)
