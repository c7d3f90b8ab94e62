"""Formulas: numpy in, numpy out. No clock, no file, no dice; every function can be checked against its docstring.

One module, one question:

- ``losses``: how far is a forecast from an answer?
- ``references``: what stands in for the answer while it is unknown?
- ``error_rates``: how often is that wrong?
- ``peer_losses``: what does a loss against it say about the loss against the outcome?
- ``learners``: whom to follow?
- ``mixers``: how to combine?
- ``bounds``: what can be promised?

A measure of dependence among experts would be a module ``dependence`` beside them. The source is Liu & Helmbold,
*Online Learning Using Only Peer Prediction*; docstrings say where a formula differs from the paper, and why.
"""

from stream_peer.numerics.bounds import LEAST_INFORMATION, live_certificate, noise_boundary
from stream_peer.numerics.error_rates import (
    ClassMomentSums,
    ClassMomentTerms,
    ErrorRate,
    EstimateStatus,
    HorvitzThompsonSums,
    MomentSums,
    MomentTerms,
    PricedRates,
    TruthSums,
    VoteMixture,
    block_factors,
    block_size,
    class_moment_terms,
    combine_with_truth,
    discounted,
    forgetting_factor,
    interval_ends,
    known_error_rate,
    moment_terms,
    priced,
    revealed_error_bound,
    vote_mixture,
)
from stream_peer.numerics.learners import ada_normal_hedge, softmax
from stream_peer.numerics.losses import (
    BoolArray,
    FloatArray,
    IntArray,
    SmallIntArray,
    check_probabilities,
    squared_loss,
)
from stream_peer.numerics.mixers import (
    logit_mean,
    outer_weights,
    peer_mixer,
    safety_net_step,
    stretch_factor,
    stretched,
    truth_fast,
    truth_slow,
)
from stream_peer.numerics.peer_losses import peer_loss, unbiased_peer_loss, unit_peer_loss
from stream_peer.numerics.references import LeaveOneOut, MajorityAnswer, leave_one_out, majority, votes

__all__ = [
    "LEAST_INFORMATION",
    "BoolArray",
    "ClassMomentSums",
    "ClassMomentTerms",
    "ErrorRate",
    "EstimateStatus",
    "FloatArray",
    "HorvitzThompsonSums",
    "IntArray",
    "LeaveOneOut",
    "MajorityAnswer",
    "MomentSums",
    "MomentTerms",
    "PricedRates",
    "SmallIntArray",
    "TruthSums",
    "VoteMixture",
    "ada_normal_hedge",
    "block_factors",
    "block_size",
    "check_probabilities",
    "class_moment_terms",
    "combine_with_truth",
    "discounted",
    "forgetting_factor",
    "interval_ends",
    "known_error_rate",
    "leave_one_out",
    "live_certificate",
    "logit_mean",
    "majority",
    "moment_terms",
    "noise_boundary",
    "outer_weights",
    "peer_loss",
    "peer_mixer",
    "priced",
    "revealed_error_bound",
    "safety_net_step",
    "softmax",
    "squared_loss",
    "stretch_factor",
    "stretched",
    "truth_fast",
    "truth_slow",
    "unbiased_peer_loss",
    "unit_peer_loss",
    "vote_mixture",
    "votes",
]
