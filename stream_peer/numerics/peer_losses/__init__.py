"""Peer losses: scores against a noisy reference answer that, in expectation, rank like losses against the outcome.

Forms of one number (error rates η0 = P(ŷ=1 | y=0), η1 = P(ŷ=0 | y=1), d = 1 - η0 - η1), for any proper loss:

- `unit_peer_loss`, whose expectation is d·ℓ(p, y),
- `unbiased_peer_loss`, whose expectation is ℓ(p, y): comparable across questions and error rates.

Both are linear in the losses, so they price sums of losses as well as single ones. The forms that the paper writes,
what a wrong forecast costs and the paper's two flips are in `stream_peer.lab.formulas`.
"""

from stream_peer.numerics.peer_losses.scales import (
    LossParts,
    Rate,
    flipped_error_rate,
    loss_parts,
    peer_loss_range,
    unbiased_peer_loss,
    unit_peer_loss,
)

__all__ = [
    "LossParts",
    "Rate",
    "flipped_error_rate",
    "loss_parts",
    "peer_loss_range",
    "unbiased_peer_loss",
    "unit_peer_loss",
]
