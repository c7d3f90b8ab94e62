"""How far a feed's numbers can be trusted: the signs against them (votes, outcomes, equal experts), and the state."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from stream_peer.events.outputs import TrustState
from stream_peer.feeds.columns import EXPERT, SCALE, UNIT
from stream_peer.feeds.methods.method import Evidence, Method
from stream_peer.feeds.reading.rates import Rates, outcome_reasons, said_against
from stream_peer.feeds.reading.weights import PeerTrust
from stream_peer.feeds.sums import Sums
from stream_peer.numerics.arguments import FloatArray, unchecked
from stream_peer.numerics.dependence import (
    FEWEST_QUESTIONS,
    ClassErrors,
    Dependence,
    DependenceSums,
    class_errors,
)
from stream_peer.numerics.dependence.rank_agreement import RankAgreement, rank_agreement
from stream_peer.numerics.error_rates.rate import FEWEST_EFFECTIVE_QUESTIONS, LEAST_Z
from stream_peer.settings.feed.model import FeedSettings, TrustSettings

_class_errors = unchecked(class_errors)
_dependence_of, _dependence_totals = unchecked(DependenceSums.reading), unchecked(DependenceSums.totals)

FEWEST_RANKED = 8
"""So many experts are needed for a rank correlation that says something."""

JUDGED_EACH = 20
"""And so many questions of each of them, with an outcome."""

MOST_RANKED = 1_000
"""More are not looked at: those that came first stand for all, and a record costs the same in every feed."""

_ENOUGH = int(JUDGED_EACH * SCALE) - 2**20  # sums are rounded: twenty questions must not look like a trace too few


class NamedGroup(NamedTuple):
    """Experts by their ids who say the same, or (``follower``) what the crowd had said before."""

    experts: Sequence[str]
    kind: str = "copies"


class VoteDependence:
    """The fourth-moment gap of the votes by a rule, of which the deviation is computed once somebody asks for it.

    Each record asks whether z exceeds a limit. It does not where the gap is not above 0, as mostly with experts who
    err independently, and that takes a fraction of the time.
    """

    __slots__ = ("_classes", "_found", "_is_above_zero", "_subsamples", "effective_questions")

    def __init__(self, subsamples: FloatArray) -> None:
        self._subsamples = DependenceSums(subsamples)
        self.effective_questions, self._is_above_zero = _dependence_totals(self._subsamples)
        self._found: Dependence | None = None
        self._classes: tuple[float, ClassErrors | None] | None = None

    @property
    def found(self) -> Dependence:
        """The gap with its deviation, from 50 effective questions on."""
        if self._found is None:
            self._found = _dependence_of(self._subsamples, FEWEST_EFFECTIVE_QUESTIONS)
        return self._found

    def class_errors(self, voters: float) -> ClassErrors | None:
        """How often majorities of so many voters err on each outcome, if they are misled on one."""
        if self._classes is None or self._classes[0] != voters:
            found = _class_errors(self._subsamples, voters)
            self._classes = voters, None if found is None or found.misled_outcome is None else found
        return self._classes[1]

    @property
    def z(self) -> float | None:
        """The gap in standard deviations, if it is known."""
        return self.found.z

    def exceeds(self, z: float) -> bool:
        """Whether the gap is of more standard deviations than these, at least 0."""
        return self._is_above_zero and self.found.exceeds(z)


class Signs(NamedTuple):
    """What speaks against a feed's numbers.

    Attributes
    ----------
    dependence : VoteDependence or Dependence
        The fourth-moment gap of the votes by the rule in force, from 50 effective questions on.
    ranks : RankAgreement, optional
        How alike peer losses and true losses rank the experts; None while that cannot be judged.
    groups : sequence of NamedGroup
        Experts who say the same.
    """

    dependence: VoteDependence | Dependence
    ranks: RankAgreement | None = None
    groups: Sequence[NamedGroup] = ()


def dependence_key(sums: Sums, rule: int) -> bytes:
    """What ``read_dependence`` depends on; outcomes do not change it."""
    key: bytes = sums.votes[rule].tobytes()
    return key


def read_dependence(sums: Sums, rule: int) -> VoteDependence:
    """The fourth-moment gap of the votes by a rule."""
    return VoteDependence(np.multiply(sums.votes[rule], UNIT, dtype=np.float64))


def read_ranks(sums: Sums) -> RankAgreement | None:
    """How alike mean peer losses and mean true losses rank experts with questions enough; None with too few of them.

    Both are taken on the same questions, those with an outcome, and from those present.
    """
    counts = sums.matrix[EXPERT.at("judged")]
    enough = np.flatnonzero(counts >= _ENOUGH)[:MOST_RANKED]
    if len(enough) < FEWEST_RANKED:
        return None
    peer, true = sums.matrix[EXPERT.span("judged_peer", "judged_true"), enough] / counts[enough]
    return unchecked(rank_agreement)(peer, true)


_VOTERS_MARGIN = 0.25
_RATES_LEAVE = 0.75
_RATES_LIMIT = 0.8
_WARM_AGAIN = 0.9
_CONTRADICTED_LEAVE = 2.0
_DEPENDENT_LEAVE = 2.0 / 3.0
"""Of ``trust.dependence_z``."""
_RANKS_Z, _RANKS_LEAVE = 2.0, 1.0
_FIRST_OUTCOMES = 10.0
"""From so many resolved questions on, reasons say what outcomes show, even before there is an alarm."""
_MOST_GROUPS, _MOST_NAMES = 10, 10

SHRINK_STEP = 0.05
"""By how much the share of uniform weights moves at most with a record that changes a question."""

SHRINK: Mapping[TrustState, float] = {"dependent": 0.1, "contradicted": 0.25, "uninformative": 1.0}
"""Where it moves to. In the other states to 0.

Experts who share errors are still ranked by peer losses, mostly: on six real sets with one of the first two alarms,
weights that were not shrunk had .53 to 1.01 times the loss of uniform ones. So these keep most of what is learnt, and a
part is insured; where outcomes speak against it more is. Where reference answers are like coins nothing is learnt.
"""


class Trust(NamedTuple):
    """A state and why it is so; ``ok`` has no reasons."""

    state: TrustState
    reasons: tuple[str, ...]


UNTRIED: TrustState = "warming-up"


def next_trust(
    before: TrustState,
    rates: Rates,
    mean_voters: float | None,
    settings: FeedSettings,
    signs: Signs | None = None,
    evidence: Evidence = "votes",
) -> Trust:
    """The state after a record, given the one before it: the first of these that holds.

    ``low-evidence``: fewer than ``min_experts`` voters a question; left at a quarter voter more.
    ``uninformative``: the error rates sum to more than .8 (left at .75), or the votes (under the preset ``paper`` the
    answers of the groups) do not tell them.
    ``dependent``, of experts found to say the same; ``contradicted``, see below; ``dependent``, of votes that show it.
    ``warming-up``: fewer effective questions than ``trust.warm_up_questions``; back again below nine tenths of it.

    ``dependent`` needs 200 effective questions: a group that says the same, or a fourth-moment gap of the votes of more
    than ``trust.dependence_z`` standard deviations (left at two thirds of them). ``contradicted``: error rates come out
    as no two kinds of questions would make them; more reference answers were wrong than they allow, by three standard
    deviations (left at two); of 50 resolved questions or more so many were wrong that it exceeds
    ``trust.measured_error_rate`` by a standard deviation (left below the limit itself); or the rank correlation of
    peer losses and losses against outcomes is below ``trust.rank_correlation`` by two (left at one).

    Parameters
    ----------
    before : TrustState
    rates : Rates
    mean_voters : float or None
        Voters a question; None before the first question.
    settings : FeedSettings
    signs : Signs, optional
    evidence : str
        What the method reads error rates from.

    Returns
    -------
    Trust
    """
    if mean_voters is not None:
        limit = settings.min_experts + (_VOTERS_MARGIN if before == "low-evidence" else 0.0)
        if mean_voters < limit:
            return Trust("low-evidence", (f"{mean_voters:.2f} voters a question, {settings.min_experts} are needed",))
    if rates.estimate.status != "insufficient":
        alarm = _uninformative(before, rates, evidence)
        alarm = alarm or _at_odds(before, rates, signs, settings.trust, evidence)
        if alarm:
            return alarm
    suspected = _first_signs(signs, settings.trust)
    enough = max(settings.trust.warm_up_questions, FEWEST_QUESTIONS if suspected else 0.0)
    questions = rates.estimate.effective_questions
    if questions < enough * (_WARM_AGAIN if before == "ok" else 1.0):
        denied = _by_measured(rates, settings.trust.measured_error_rate, is_so=False, fewest=_FIRST_OUTCOMES)
        known = f"{questions:.0f} of {enough:g} effective questions"
        return Trust("warming-up", (known, *suspected, *(f"so far {reason}" for reason in denied)))
    return Trust("ok", ())


def _uninformative(before: TrustState, rates: Rates, evidence: str) -> Trust | None:
    """Whether reference answers say too little."""
    total = rates.estimate.zero + rates.estimate.one
    if total > (_RATES_LEAVE if before == "uninformative" else _RATES_LIMIT):
        return Trust("uninformative", (f"error rates sum to {total:.3f}: reference answers say next to nothing",))
    if rates.status == "uninformative":
        return Trust("uninformative", (f"{evidence} vary no more from question to question than random votes would",))
    return None


def _at_odds(
    before: TrustState, rates: Rates, signs: Signs | None, limits: TrustSettings, evidence: str
) -> Trust | None:
    """Whether experts say the same, outcomes or votes deny the error rates, or votes depend on each other.

    Whatever holds is among the reasons; the state is that of the first.
    """
    groups = _named(signs) if signs and rates.estimate.effective_questions >= _fewest(before) else []
    votes = _by_votes(before, signs.dependence, limits) if signs else []
    denied = _contradicted(before, rates, signs, limits, evidence)
    reasons = (*groups, *denied, *votes)
    if not reasons:
        return None
    return Trust("contradicted" if denied and not groups else "dependent", reasons)


def _contradicted(
    before: TrustState, rates: Rates, signs: Signs | None, limits: TrustSettings, evidence: str
) -> list[str]:
    """What of outcomes, and of votes, denies the error rates or the ranking by peer losses."""
    is_so = before == "contradicted"
    reasons = [*_by_outcomes(rates, is_so=is_so), *_by_measured(rates, limits.measured_error_rate, is_so=is_so)]
    if signs is not None and signs.ranks is not None:
        reasons += _by_ranks(signs.ranks, limits.rank_correlation, is_so=is_so)
    if not reasons and rates.status == "contradicted":
        reasons.append(f"{evidence} are not those of independent experts on two kinds of questions")
    return reasons


def _by_outcomes(rates: Rates, *, is_so: bool) -> list[str]:
    """What outcomes say against error rates estimated without them."""
    found = rates.contradiction
    if found is None or not found.z > (_CONTRADICTED_LEAVE if is_so else LEAST_Z):
        return []
    return outcome_reasons(rates) if found.found else [said_against(found)]


def _by_measured(rates: Rates, limit: float, *, is_so: bool, fewest: float = FEWEST_EFFECTIVE_QUESTIONS) -> list[str]:
    """Whether too many reference answers were wrong, whatever was expected."""
    measured, resolved = rates.measured, rates.resolved
    if measured is None or resolved < fewest:
        return []
    margin = 0.0 if is_so else math.sqrt(limit * (1.0 - limit) / resolved)
    if measured < limit + margin:
        return []
    return [
        f"{measured:.1%} of the reference answers to {resolved:.0f} resolved questions were wrong: from {limit:.0%} on"
        " they are no guide to who is right"
    ]


def _by_ranks(ranks: RankAgreement, limit: float, *, is_so: bool) -> list[str]:
    """Whether peer losses rank experts otherwise than outcomes do."""
    if not unchecked(RankAgreement.below)(ranks, limit) > (_RANKS_LEAVE if is_so else _RANKS_Z):
        return []
    return [
        f"peer losses and outcomes rank {ranks.experts} experts with a correlation of {ranks.correlation:.2f}, and"
        f" {limit:g} is wanted: who agrees with the others is not who is right"
    ]


def _by_votes(before: TrustState, found: VoteDependence | Dependence, limits: TrustSettings) -> list[str]:
    """Whether votes depend on each other, as far as there are questions enough."""
    limit = limits.dependence_z * (_DEPENDENT_LEAVE if before == "dependent" else 1.0)
    if found.effective_questions < _fewest(before) or not found.exceeds(limit):
        return []
    return [_said_of_votes(found)]


def _fewest(before: TrustState) -> float:
    """Effective questions from which on experts may be called dependent."""
    return FEWEST_QUESTIONS * (_WARM_AGAIN if before == "dependent" else 1.0)


def _first_signs(signs: Signs | None, limits: TrustSettings) -> list[str]:
    """What is already suspected of a feed of which too little is known for an alarm."""
    if signs is None:
        return []
    is_dependent = signs.dependence.exceeds(limits.dependence_z)
    suspected = [f"so far {_said_of_votes(signs.dependence)}"] if is_dependent else []
    return [*(f"so far {reason}" for reason in _named(signs)), *suspected]


def _said_of_votes(found: VoteDependence | Dependence) -> str:
    return (
        f"votes are unlike those of independent experts (z = {found.z:.1f}): experts share errors, or questions differ"
        " in difficulty or in who answers them; the error rate may be estimated far too low"
    )


def _named(signs: Signs) -> list[str]:
    """Each group of experts that say the same, in words."""
    return [
        f"{_names(group.experts)} {'say the same' if group.kind == 'copies' else 'say what the crowd had said before'}"
        for group in signs.groups[:_MOST_GROUPS]
    ]


def _names(group: Iterable[str]) -> str:
    """Names of a group, of a large one the first."""
    names = list(group)
    shown = ", ".join(names[:_MOST_NAMES])
    return f"{shown} and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else shown


def next_shrink(before: float, state: TrustState, method: Method) -> float:
    """The share of uniform weights in published selection weights after a record that changed a question.

    It moves towards that of the state by at most .05. Under the preset ``paper`` it is 0: weights are as printed there.

    Parameters
    ----------
    before : float
        In [0, 1].
    state : TrustState
    method : Method

    Returns
    -------
    float
        In [0, 1].
    """
    target = SHRINK.get(state, 0.0) if method.adjusts else 0.0
    return _towards(target, before, SHRINK_STEP)


PEER_TRUST: Mapping[TrustState, PeerTrust] = {
    "ok": PeerTrust(2.0, 1.0),
    "warming-up": PeerTrust(1.0, 0.5),
    "low-evidence": PeerTrust(1.0, 0.0),
    "dependent": PeerTrust(1.0, 0.0),
    "contradicted": PeerTrust(0.25, 0.0),
    "uninformative": PeerTrust(0.0, 0.0),
}
"""How much the agreement of experts counts. Only where they err independently does it say how bold the mix may be."""

STRETCH_OUTCOMES = 40.0
"""With so many outcomes, half of the stretch that peers ask for counts in every state: outcomes correct it by then."""

PEER_STEP = 0.05
"""By how much the prior share of the peer mixer, and the part of the stretch that counts, move at most a record."""


def next_peer_trust(
    before: PeerTrust, state: TrustState, evidence: float, prior_peer: float, resolved: float
) -> PeerTrust:
    """How much the agreement of experts counts after a record that changed a question.

    It moves towards that of the state, as far as votes agree more than by chance, by at most .05. Of the stretch at
    least m/(m+40) counts in every state, m the resolved questions.

    Parameters
    ----------
    before : PeerTrust
    state : TrustState
    evidence : float
        In [0, 1], see `agreement_evidence`.
    prior_peer : float
        The prior share of the settings, which is multiplied.
    resolved : float
        m ≥ 0.
    """
    goal = PEER_TRUST[state]
    stretch = max(goal.stretch, resolved / (resolved + STRETCH_OUTCOMES))
    step = PEER_STEP / max(prior_peer, PEER_STEP)
    return PeerTrust(
        _towards(evidence * goal.prior, before.prior, step),
        _towards(evidence * stretch, before.stretch, PEER_STEP),
    )


def _towards(goal: float, before: float, step: float) -> float:
    return round(min(max(goal, before - step), before + step), 12)


def certifies(state: TrustState) -> bool:
    """Whether a certificate means anything in this state."""
    return state in ("ok", "warming-up")
