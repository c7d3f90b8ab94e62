"""Bounds: what can be promised about the regret of following the selection weights.

``certificate`` has what follows from what was observed, at every moment: the live certificate, and its terms apart.
The bounds that the paper states before anything is seen are in `stream_peer.lab.formulas`.
"""

from stream_peer.numerics.bounds.certificate import (
    LEAST_INFORMATION,
    CertificateTerms,
    certificate_terms,
    live_bounds,
    live_certificate,
    noise_boundary,
    own_answer_spread,
    shared_answer_spread,
)

__all__ = [
    "LEAST_INFORMATION",
    "CertificateTerms",
    "certificate_terms",
    "live_bounds",
    "live_certificate",
    "noise_boundary",
    "own_answer_spread",
    "shared_answer_spread",
]
