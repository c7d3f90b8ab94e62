"""Peer losses: scores against a noisy reference answer that, in expectation, rank like losses against the outcome.

Forms of one number (error rates η0 = P(ŷ=1 | y=0), η1 = P(ŷ=0 | y=1), d = 1 - η0 - η1), for any proper loss:

- `unit_peer_loss`, whose expectation is d·ℓ(p, y), and `natarajan_peer_loss`, the same written otherwise,
- `unbiased_peer_loss`, whose expectation is ℓ(p, y): comparable across questions and error rates,
- `peer_loss`, the paper's, which is the first plus η for the squared loss and one common rate, and
  `savage_correction`, which does the same for any other loss.

The first and third are linear in the losses, so they price sums of losses as well as single ones. Modules:

- ``scales``: the three losses of a question, and the two scales on which they are priced
- ``forms``: as the paper writes them
- ``gaps``: what a wrong forecast costs in expectation
- ``flips``: the paper's two flips, which gain nothing
"""

from stream_peer.numerics.peer_losses.flips import (
    FlippedQuestion,
    flip_answer,
    flip_question,
    flipped_error_rate,
    rates_after_flip,
)
from stream_peer.numerics.peer_losses.forms import natarajan_peer_loss, peer_loss, savage_correction
from stream_peer.numerics.peer_losses.gaps import calibration_gap, noisy_label_gap, noisy_probability
from stream_peer.numerics.peer_losses.scales import (
    LossParts,
    Rate,
    loss_parts,
    peer_loss_range,
    unbiased_peer_loss,
    unit_peer_loss,
)

__all__ = [
    "FlippedQuestion",
    "LossParts",
    "Rate",
    "calibration_gap",
    "flip_answer",
    "flip_question",
    "flipped_error_rate",
    "loss_parts",
    "natarajan_peer_loss",
    "noisy_label_gap",
    "noisy_probability",
    "peer_loss",
    "peer_loss_range",
    "rates_after_flip",
    "savage_correction",
    "unbiased_peer_loss",
    "unit_peer_loss",
]
