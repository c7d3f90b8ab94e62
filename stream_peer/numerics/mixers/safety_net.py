"""The safety net: back to the plain mean, step by step, where outcomes say that the mix does worse."""

import math

from stream_peer.numerics.losses.arguments import AT_LEAST_0, NUMBER, SHARE, checked

_NET_FLOOR = 0.001
_NET_STEP = 0.05


@checked(share=SHARE, sum_delta=NUMBER, sum_delta_squares=AT_LEAST_0)
def safety_net_step(share: float, sum_delta: float, sum_delta_squares: float) -> float:
    """Next share of the plain mean in the published mix, given how the mix has done against it.

    ``z = Σδ/√(Σδ² + .001)``, δ = (f-y)² - (b-y)² over resolved questions, f the mix before the net; the share moves
    towards ``clip((z-1)/2, 0, 1)`` by at most .05. Published mix = (1-share)·mix + share·uniform.

    Parameters
    ----------
    share : float
        The present share, in [0, 1].
    sum_delta, sum_delta_squares : float
        Σδ and Σδ² ≥ 0.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> safety_net_step(0.0, sum_delta=0.3, sum_delta_squares=0.01)
    0.05
    >>> safety_net_step(0.05, sum_delta=-0.3, sum_delta_squares=0.01)
    0.0
    """
    z = sum_delta / math.sqrt(sum_delta_squares + _NET_FLOOR)
    goal = min(max(0.5 * (z - 1.0), 0.0), 1.0)
    return min(max(goal, share - _NET_STEP), share + _NET_STEP)
