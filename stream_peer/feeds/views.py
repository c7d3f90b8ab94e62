"""Outputs keyed by feed: readings of its sums."""

import math
from collections.abc import Mapping, Sequence
from itertools import repeat
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
import numpy as np

from stream_peer.events.outputs import (
    Certificate,
    DriftedExpert,
    DriftedRate,
    Drifting,
    ErrorRates,
    ErrorRateSummary,
    ExpertGroup,
    MixerShares,
    TruthRates,
    WeightedExpert,
    Weights,
)
from stream_peer.events.times import Milliseconds, to_iso
from stream_peer.feeds.columns import FEED, UNIT
from stream_peer.feeds.feed import Feed
from stream_peer.feeds.feed_reading import groups_of, read, signs_of, trust_of, weights_of
from stream_peer.feeds.medians import uninformative
from stream_peer.feeds.reading.certificate import Certified, read_certificate
from stream_peer.feeds.reading.published_rates import PublishedRates, class_errors_reason, published_rates
from stream_peer.feeds.reading.rates import Rates, outcome_reasons
from stream_peer.feeds.reading.reading import Reading
from stream_peer.feeds.reading.trust import Signs, Trust, certifies
from stream_peer.feeds.reading.weights import (
    DECIMALS,
    Records,
    published_weights,
    read_records,
    read_regret,
    varied,
)
from stream_peer.feeds.scored import low_evidence_share, read_scores, tie_share
from stream_peer.numerics.arguments import FloatArray, IndexArray
from stream_peer.numerics.losses import SQUARED

FEWEST_RESOLVED, LEAST_COVERAGE = 10.0, 0.5
"""In how many scored forecasts of resolved questions the best expert must have stood, and in what share of them."""
_WIDEST_BIN = 1 / 64
_STANDS_IN = "the rates are symmetric ones of the same votes"
_QUESTIONS, _RESOLVED, _EVALUATED = FEED.at("questions"), FEED.at("resolved"), FEED.at("evaluated")


class FeedView(NamedTuple):
    """The newest outputs of a feed, how many of its experts have metrics of their own, and what else is gauged.

    ``leading``: these experts and a few more, by their weights in the mix; ``totals``: of the two kinds of weights.
    ``dependence_z``, ``rank_correlation``: as of ``signs``; ``mean_voters``: a question. ``ties``, ``low_evidence``:
    shares of rounds, see ``scored``. None while not known; ``select_regret`` also where nothing can be
    certified. ``certificate_terms`` add up to the certificate, if there is one; ``brier``: mean squared loss of
    scored forecasts, empty before the first; ``best_brier``: that of the best expert who stood in half of them;
    ``updated``: when the feed last changed; ``acknowledged``: whether an operator knows of its state of trust.
    """

    weights: Weights
    error_rates: ErrorRates
    top_experts: int = 20
    leading: Sequence[WeightedExpert] = ()
    totals: tuple[float, float] = (0.0, 0.0)
    dependence_z: float | None = None
    rank_correlation: float | None = None
    mean_voters: float | None = None
    ties: float | None = None
    low_evidence: float | None = None
    select_regret: float | None = None
    certificate_terms: Mapping[str, float] = MappingProxyType({})
    brier: Mapping[str, float] = MappingProxyType({})
    best_brier: float | None = None
    effective_experts: float = 0.0
    updated: Milliseconds = 0
    acknowledged: bool = False


class ListedExperts(NamedTuple):
    """The experts with questions that count, sorted by id: their columns and published weights.

    ``reading``: what they were read from.
    """

    reading: Reading
    experts: IndexArray
    columns: FloatArray
    mix: FloatArray
    select: FloatArray


class NewestRecords(NamedTuple):
    """The newest records of a feed, and what the rest of its ``FeedView`` is read from once somebody asks for it.

    ``feed_sums``: sums of the feed at that moment.
    """

    weights: Weights
    error_rates: ErrorRates
    listed: ListedExperts
    records: Records
    certified: Certified | None
    feed_sums: Sequence[int]
    signs: Signs
    is_certifiable: bool
    top_experts: int
    updated: Milliseconds
    acknowledged: bool


def heading(feed: Feed) -> dict[str, Any]:
    """The fields that all outputs of a feed have, as of the last record that changed it."""
    path_state = feed.path_state
    return {
        "feed": feed.name,
        "revision": path_state.revision,
        "at": to_iso(path_state.at),
        "settings": feed.settings_hash,
    }


def summary(feed: Feed, reading: Reading, rates: Rates) -> ErrorRateSummary:
    """Error rates as they stand in most outputs."""
    return _summary(rates, _published(feed, reading, rates))


def _summary(rates: Rates, published: PublishedRates) -> ErrorRateSummary:
    estimate = rates.estimate
    return ErrorRateSummary(
        zero=estimate.zero,
        one=estimate.one,
        low=estimate.low,
        high=published.high,
        status=published.status,
        measured=published.measured,
    )


def _published(feed: Feed, reading: Reading, rates: Rates) -> PublishedRates:
    state, confidence = feed.path_state.trust, feed.settings.confidence
    class_errors = reading.class_errors if rates.rule == reading.rule else None
    return published_rates(rates, state, reading.stated_error, class_errors, confidence, feed.method)


def list_experts(feed: Feed) -> ListedExperts:
    """The newest weights of a feed."""
    reading = read(feed)
    experts = feed.roster.listed(reading.sums)
    columns = reading.columns(experts)
    if not len(experts):
        return ListedExperts(reading, experts, columns, np.zeros(0), np.zeros(0))
    path_state, groups = feed.path_state, feed.roster.held_groups(experts)
    weights = weights_of(feed, reading, experts, columns, reading.extent(len(experts)), groups)
    published = published_weights(weights, reading.mixing, path_state.net_share, path_state.shrink, groups)
    return ListedExperts(reading, experts, columns, *published)


def feed_records(feed: Feed, listed: ListedExperts) -> NewestRecords:
    """The outputs keyed by feed."""
    reading, path_state = listed.reading, feed.path_state
    trust, signs, feed_sums = trust_of(feed, reading), signs_of(feed, reading), reading.feed_sums
    records = read_records(listed.columns, reading.all_rates, feed.method)
    certified, common = _certified(feed, listed), heading(feed)
    published = _published(feed, reading, reading.rates)
    mean, peer, slow, fast = reading.mixing.shares
    weights = Weights(
        **common,
        status=trust.state,
        status_reasons=[*trust.reasons, *_lost(feed)],
        questions=_count(feed_sums, _QUESTIONS),
        resolved=_count(feed_sums, _RESOLVED),
        error_rate=_summary(reading.rates, published),
        mixer=MixerShares(mean=mean, peer=peer, truth_slow=slow, truth_fast=fast),
        stretch=reading.mixing.stretch if feed.settings.stretch else 0.0,
        select_shrink=path_state.shrink,
        certificate=None
        if certified is None
        else Certificate(regret_at_most=certified.bound, confidence=feed.settings.confidence),
        experts=_weighted_experts(feed, listed, records),
        shadows=feed.shadows.scores(reading.sums),
        drift=_drift(feed, listed),
        groups=_groups(feed, listed),
    )
    return NewestRecords(
        weights,
        _error_rates(feed, reading.rates, published, trust, common),
        listed,
        records,
        certified,
        list(feed_sums),
        signs,
        _is_certifiable(feed),
        feed.settings.top_experts,
        path_state.at,
        path_state.acknowledged is not None,
    )


def feed_view(said: NewestRecords) -> FeedView:
    """The records of a feed with all that is gauged of them."""
    listed, signs, feed_sums, certified = said.listed, said.signs, said.feed_sums, said.certified
    squares = float(np.square(listed.mix).sum())
    return FeedView(
        said.weights,
        said.error_rates,
        said.top_experts,
        _leading(said.weights.experts, listed, math.ceil(1.25 * said.top_experts)),
        (float(listed.mix.sum()), float(listed.select.sum())),
        signs.dependence.z,
        signs.ranks.correlation if signs.ranks else None,
        listed.reading.mean_voters,
        ties=tie_share(feed_sums),
        low_evidence=low_evidence_share(feed_sums),
        select_regret=read_regret(listed.columns, listed.reading.all_rates, listed.reading.method)
        if said.is_certifiable
        else None,
        certificate_terms=certified.terms if certified else {},
        brier=read_scores(feed_sums),
        best_brier=_best_brier(said),
        effective_experts=1.0 / squares if squares else 0.0,
        updated=said.updated,
        acknowledged=said.acknowledged,
    )


def _lost(feed: Feed) -> list[str]:
    lost = feed.path_state.lost
    return [f"{lost} records of the feed-log were gone before they were read"] if lost else []


def _groups(feed: Feed, listed: ListedExperts) -> list[ExpertGroup] | msgspec.UnsetType:
    """Experts who say the same, among those listed."""
    if not feed.path_state.groups:
        return msgspec.UNSET
    found, places = [], {place: place for place in listed.experts.tolist()}
    for group in filter(None, (group.without(places) for group in groups_of(feed))):
        said = msgspec.structs.asdict(group) | {"experts": sorted(feed.roster.shown[place] for place in group.experts)}
        found.append(ExpertGroup(**said))
    return found or msgspec.UNSET


def _drift(feed: Feed, listed: ListedExperts) -> Drifting | msgspec.UnsetType:
    """What drifts, the experts being among those listed."""
    found, shown = feed.path_state.drift, feed.roster.shown
    if found.experts:
        places = set(listed.experts.tolist())
    experts = [one for one in found.experts if one.place in places]
    if found.error_rate is None and not experts:
        return msgspec.UNSET
    return Drifting(
        error_rate=None if found.error_rate is None else DriftedRate(**msgspec.structs.asdict(found.error_rate)),
        n_experts=found.n_experts - len(found.experts) + len(experts),
        experts=[
            DriftedExpert(
                id=shown[one.place],
                before=one.before,
                now=one.now,
                since_questions=one.since_questions,
                z=one.z,
            )
            for one in experts
        ],
    )


def _count(feed_sums: Sequence[int], column: int) -> float:
    return round(feed_sums[column] * UNIT, DECIMALS)


def _is_certifiable(feed: Feed) -> bool:
    """Whether its regret is one over all questions, and could be bounded if its error rates were known.

    That of a feed with groups cannot: the answers to parts of a group depend on each other.
    """
    return feed.settings.memory is None and feed.method.certifies and not feed.path_state.has_groups


def _certified(feed: Feed, listed: ListedExperts) -> Certified | None:
    if not (_is_certifiable(feed) and certifies(feed.path_state.trust) and len(listed.experts)):
        return None
    path_state, confidence, reading = feed.path_state, feed.settings.confidence, listed.reading
    rules = [rates.rule for rates in reading.all_rates]
    steps = 1 + path_state.outcomes + path_state.switches
    sums, columns, n_experts = listed.reading.feed_sums, listed.columns, len(feed.roster)
    return read_certificate(sums, columns, rules, n_experts, steps, confidence, feed.method)


def _weighted_experts(feed: Feed, listed: ListedExperts, records: Records) -> list[WeightedExpert]:
    questions = listed.reading.feed_sums[_QUESTIONS] * UNIT
    coverage = np.minimum(records.questions / questions, 1.0).round(DECIMALS) if questions else records.questions
    places, teams, ids = listed.experts.tolist(), feed.roster.teams, feed.roster.experts
    experts = list(
        map(  # a loop in C: the fields in their order
            WeightedExpert,
            map(feed.roster.shown.__getitem__, places),
            listed.mix.tolist(),
            listed.select.tolist(),
            records.questions.tolist(),
            coverage.tolist(),
            _known(records.peer_loss),
            _known(records.outcome_loss),
            records.resolved.tolist(),
            [teams.get(ids[place]) for place in places] if teams else repeat(None),
        )
    )
    for position in _uninformative(feed, listed):
        experts[position] = msgspec.structs.replace(experts[position], uninformative=True)
    return experts


def _uninformative(feed: Feed, listed: ListedExperts) -> list[int]:
    """Positions of experts that are known to say the same always.

    Histograms are read only of those whose losses leave that open: forecasts within a bin, which is 1/64 wide at most,
    have a variance of (1/128)² at most, and that of the forecasts of unresolved questions follows from the sums of
    p² and (1 - p)². Four times as much leaves room for rounding, since a weight of at least one question is asked for.
    """
    if not feed.method.keeps_histograms:
        return []
    places, open_to = listed.experts, None
    if feed.method.loss is SQUARED:
        known = varied(listed.columns, listed.reading.all_rates, _WIDEST_BIN * _WIDEST_BIN)
        if np.count_nonzero(known) == len(known):  # nearly always
            return []
        open_to = np.flatnonzero(~known)
        places = places[open_to]
    same = uninformative(listed.reading.histograms(places)).nonzero()[0]
    found: list[int] = (same if open_to is None else open_to[same]).tolist()
    return found


def _leading(experts: list[WeightedExpert], listed: ListedExperts, count: int) -> list[WeightedExpert]:
    """Those of the largest weights in the mix, of equal ones the first by id."""
    order = np.argsort(-listed.mix, kind="stable")[:count]
    return [experts[place] for place in order.tolist()]


def _best_brier(said: NewestRecords) -> float | None:
    """The smallest mean squared loss of an expert in scored forecasts, of those who stood in enough of them."""
    enough = max(FEWEST_RESOLVED, LEAST_COVERAGE * _count(said.feed_sums, _EVALUATED))
    losses = said.records.brier[said.records.evaluated >= enough]
    return float(losses.min()) if len(losses) else None


def _known(values: FloatArray) -> list[float | None]:
    """NaN becomes None: it is not known."""
    return [value if value == value else None for value in values.tolist()]  # noqa: PLR0124 - only NaN differs


def _error_rates(
    feed: Feed, rates: Rates, published: PublishedRates, trust: Trust, common: dict[str, Any]
) -> ErrorRates:
    zeros, ones = rates.right_zero + rates.wrong_zero, rates.right_one + rates.wrong_one
    return ErrorRates(
        **common,
        trust=feed.path_state.trust,
        status=published.status,
        status_reasons=_status_reasons(published, trust, rates, feed),
        zero=rates.estimate.zero,
        one=rates.estimate.one,
        low=rates.estimate.low,
        high=published.high,
        effective_questions=round(rates.estimate.effective_questions, DECIMALS),
        from_truth=TruthRates(
            zero=rates.wrong_zero / zeros if zeros else None,
            one=rates.wrong_one / ones if ones else None,
            resolved=round(zeros + ones, DECIMALS),
        ),
        vote_rule=feed.path_state.vote_rule,
    )


def _status_reasons(published: PublishedRates, trust: Trust, rates: Rates, feed: Feed) -> list[str]:
    if published.by_trust:  # of the newest numbers trust may be another one already, which has no reasons
        return [*trust.reasons] or [f"the feed's trust is {published.status}"]
    class_errors = published.class_errors
    return _rate_reasons(rates, feed) if class_errors is None else [class_errors_reason(class_errors)]


def _rate_reasons(rates: Rates, feed: Feed) -> list[str]:
    """Why the error rates are no better known than their status says."""
    if rates.status == "ok":
        return []
    if rates.zero + rates.one < rates.estimate.zero + rates.estimate.one:
        return ["error rates sum to more than 0.8; losses are priced as if they summed to 0.8"]
    by_outcomes = outcome_reasons(rates)
    if by_outcomes and rates.status in ("biased-reveal", "contradicted"):
        return by_outcomes
    evidence, coins, strange = feed.method.evidence, _STANDS_IN, _STANDS_IN
    if evidence != "votes":
        coins, strange = "a rate of 0.25 stands in", "the nearest rates stand in"
    reasons = {
        "insufficient": "fewer than 50 resolved questions, or none of one outcome"
        if feed.method.asks_outcomes
        else "fewer than 50 effective questions",
        "balanced": "groups answer yes and no about equally often: both are taken to err alike",
        "uninformative": f"{evidence} vary no more from question to question than random votes would; {coins}",
        "contradicted": f"{evidence} are not those of independent experts on two kinds of questions; {strange}",
    }
    return [reasons[rates.status]] if rates.status in reasons else []
