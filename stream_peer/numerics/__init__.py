"""Formulas: numpy in, numpy out. No clock, no file, no dice; every function can be checked against its docstring.

The source is Liu & Helmbold, *Online Learning Using Only Peer Prediction*. Docstrings say where in the paper a formula
stands, and where it differs, with the number of the erratum. `help(numerics.losses)` shows those of ``losses``.

losses: How far is a forecast from an answer?
    portable_log, portable_log_of, Sides, ProperLoss, TwoSidedLoss, squared_loss, SquaredLoss, LogLoss, SphericalLoss,
    SQUARED, LOG, SPHERICAL, LOSSES

answers: What stands in for the answer while it is unknown?
    MajorityAnswer, LeaveOneOut, votes, majority, leave_one_out

error_rates: How often is that wrong?
    ClassMomentTerms, class_moment_terms, ClassMomentSums, forgetting_factor, bucket_size, bucket_factors,
    TwoGroupRates, TwoGroupSums, MomentTerms, MomentSums, moment_terms, EstimateStatus, ErrorRate, PricedRates, priced,
    interval_ends, TeamVotes, team_votes, agreement_of_teams, class_terms_of_teams, share_of_ones, TruthSums,
    combine_with_truth, Contradiction, contradiction, early_contradiction, RevealShift, reveal_shift

dependence: Do experts err independently, as those estimates take for granted?
    find_blocks, ClassErrors, class_errors, Copies, find_copies, CrowdDistances, crowd_distances, CrowdSums, crowd_sums,
    find_followers, find_repeaters, N_SUBSAMPLES, FEWEST_QUESTIONS, ALARMING_Z, VoteMoments, Dependence, DependenceSums,
    RankAgreement, rank_agreement

drift: Are error rates and experts still what they were?
    Earlier, Changes, scan_for_changes, scan_of_sums, RATE_LIMIT, RateChange, agreement_change, measured_change,
    ExpertChanges, expert_limit, expert_changes

peer_losses: What does a loss against it say about the loss against the outcome?
    Rate, unit_peer_loss, unbiased_peer_loss

learners: Whom to follow?
    softmax, ada_normal_hedge, ada_normal_hedge_logs, hedge_rate, hedge

mixers: How to combine forecasts?
    median, logit_mean, SideBySide, mixers_side_by_side

agreement: What does the agreement of experts say about the mix, without outcomes?
    CrossAgreement, cross_agreement, agreement_evidence, peer_stretch

outer_layer: How much of each mixer, and what is published of the mix?
    outer_weights, safety_net_step, stretch_factor, stretched

coherent: What do mixed forecasts of options say together, or of thresholds?
    simplex_projection, isotonic_regression

category_losses: How far are forecasts of options from what happened, or of thresholds?
    multi_category_brier, ranked_probability_score

certificate: What can be promised?
    LEAST_INFORMATION, SUREST, noise_boundary, live_bounds, answer_variance, one_sided_boundary,
    confidence_at_all_times, regret_bounds

arguments: What do formulas take, and what do they refuse?
    FloatArray, IntArray, SmallIntArray, BoolArray, BitArray, Answers
"""

from stream_peer.numerics import (
    agreement,
    answers,
    arguments,
    category_losses,
    certificate,
    coherent,
    dependence,
    drift,
    error_rates,
    learners,
    losses,
    mixers,
    outer_layer,
    peer_losses,
)

__all__ = [
    "agreement",
    "answers",
    "arguments",
    "category_losses",
    "certificate",
    "coherent",
    "dependence",
    "drift",
    "error_rates",
    "learners",
    "losses",
    "mixers",
    "outer_layer",
    "peer_losses",
]
