"""The reading of a feed: its numbers at one moment, read off the sums once for each change of them.

A reading never changes. It holds what is read of the feed as a whole. Columns of experts are read where they are used,
from the sums that the reading was made of; once those have moved on, it refuses (`StaleReadingError`).
"""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from stream_peer.feeds.columns import FEED, UNIT, VOTE_RULES, VOTES, VoteRule
from stream_peer.feeds.methods.method import Method
from stream_peer.feeds.reading.rates import Rates, next_vote_rule, read_rates, used_rules
from stream_peer.feeds.reading.trust import VoteDependence, dependence_key, read_dependence, read_ranks
from stream_peer.feeds.reading.weights import (
    Extent,
    Mixing,
    PeerTrust,
    learnt_rows_of,
    read_extent,
    rows_of,
    shares_key,
    shares_of,
    stretch_of,
)
from stream_peer.feeds.sums import Sums
from stream_peer.numerics.agreement import agreement_evidence
from stream_peer.numerics.arguments import FloatArray, IndexArray, IntArray, unchecked
from stream_peer.numerics.dependence import ClassErrors, RankAgreement
from stream_peer.settings.feed.model import FeedSettings

_RESOLVED = FEED.at("resolved")
_ASKED, _VOTERS, _STATED_ERROR = FEED.at("asked"), FEED.at("voters"), FEED.at("stated_error")
_YES, _VOTES = FEED.at("yes"), FEED.at("votes")
_VOTERS_DECIMALS = 3  # sums are rounded; just enough voters must not look like a trace too few
_HALF_WEIGHT = FEED.at("moment_weight", VOTE_RULES[0])
_PAIR_SUMS = ("pair", "pair2", "moment_weight", "moment_weight2")
_OF_PAIRS = [[FEED.at(name, rule) for name in _PAIR_SUMS] for rule in VOTE_RULES]
_NET_DIFFERENCE, _NET_SQUARE = FEED.at("net_difference"), FEED.at("net_square")


class StaleReadingError(RuntimeError):
    """Columns were asked of a reading whose sums had changed since it was made."""


class Reading(msgspec.Struct, frozen=True, eq=False):
    """The numbers of a feed at one moment.

    Attributes
    ----------
    sums, version : what it was read from: sums, and how often they had changed
    outcomes : int
        How often an outcome had moved the sums.
    settings, method : by which
    rule : int
        Number of the vote rule in force.
    all_rates : tuple of Rates
        Error rates of the vote rules that are used, that in force first.
    mixing : Mixing
        Shares of the mixers, and stretch; ``shares_key``: the sums that the shares depend on.
    peer_trust : PeerTrust
        How much the agreement of experts counted.
    mean_voters : float or None
        Independent voters a question; None before the first.
    next_vote_rule : VoteRule
        The vote rule that follows on the present one.
    dependence : VoteDependence
        The fourth-moment gap of the votes by the rule in force; ``dependence_key``: what it depends on.
    ranks : RankAgreement or None
        How alike peer losses and true losses rank the experts; None while that cannot be judged.
    stated_error : float or None
        Mean of min(b, 1 - b) over questions, b the plain mean; None before the first, or if it is not summed.
    by_group : bool
        Whether error rates count a group as one question.
    """

    sums: Sums
    version: int
    outcomes: int
    settings: FeedSettings
    method: Method
    rule: int
    all_rates: tuple[Rates, ...]
    mixing: Mixing
    shares_key: Sequence[int]
    peer_trust: PeerTrust
    mean_voters: float | None
    next_vote_rule: VoteRule
    dependence: VoteDependence
    dependence_key: bytes
    ranks: RankAgreement | None
    stated_error: float | None
    by_group: bool = False

    @property
    def rates(self) -> Rates:
        """Error rates of the vote rule in force."""
        return self.all_rates[0]

    def rates_of(self, rule: int) -> Rates:
        """Error rates of a vote rule."""
        for rates in self.all_rates:
            if rates.rule == rule:
                return rates
        return read_rates(self.feed_sums, rule, self.settings.confidence, self.method, by_group=self.by_group)

    def columns(self, experts: IndexArray) -> FloatArray:
        """Columns of some experts, as far as their vote rules are used."""
        return self._fresh().read(experts, rows_of([rates.rule for rates in self.all_rates]))

    def learnt(self, experts: IndexArray) -> FloatArray:
        """Those of them that weights are read from; the others are 0."""
        return self._fresh().read(experts, learnt_rows_of([rates.rule for rates in self.all_rates]))

    def histograms(self, experts: IndexArray) -> IntArray:
        """Histograms of the forecasts of some experts."""
        return self._fresh().read_histograms(experts)

    def extent(self, n_experts: int) -> Extent:
        """How much the feed has seen, with so many experts."""
        return read_extent(self.feed_sums, n_experts)

    @property
    def agreement(self) -> float:
        """How sure it is that votes agree more than by chance, under any vote rule: see `agreement_evidence`.

        The sums hold Σwx², w the weight of a question. Σ(wx)² is taken as Σwx²·Σw²/Σw.
        """
        sums, pair, pair2 = self.feed_sums, 0.0, 0.0
        for of_rule in _OF_PAIRS:
            agreed, squares, weight, weight2 = (sums[at] * UNIT for at in of_rule)
            pair += agreed
            pair2 += squares * weight2 / weight if weight > 0.0 else 0.0
        mean_vote = 2.0 * sums[_YES] / sums[_VOTES] - 1.0 if sums[_VOTES] else 0.0
        by_chance = mean_vote * mean_vote * sums[_HALF_WEIGHT] * UNIT  # own medians halve the votes: their mean is 0
        return unchecked(agreement_evidence)(pair, max(pair2, 0.0), max(by_chance, 0.0))

    @property
    def resolved(self) -> float:
        """Resolved questions."""
        return self.feed_sums[_RESOLVED] * UNIT

    def net_sums(self) -> tuple[float, float]:
        """How the mix did against the plain mean on resolved questions: sum and sum of squares."""
        feed_sums = self.feed_sums
        return feed_sums[_NET_DIFFERENCE] * UNIT, feed_sums[_NET_SQUARE] * UNIT

    @property
    def class_errors(self) -> ClassErrors | None:
        """How often majorities err on each outcome, if votes at 1/2 show that they are misled on one."""
        if not self.method.rates_by_trust or self.rule or self.mean_voters is None:
            return None
        return self.dependence.class_errors(self.mean_voters)

    @property
    def feed_sums(self) -> Sequence[int]:
        """The sums of the feed as a whole."""
        return self._fresh().feed

    def _fresh(self) -> Sums:
        if self.version != self.sums.version:
            raise StaleReadingError
        return self.sums


def read_sums(
    sums: Sums,
    outcomes: int,
    vote_rule: VoteRule,
    settings: FeedSettings,
    method: Method,
    peer_trust: PeerTrust,
    known: Reading | None,
    *,
    by_group: bool = False,
) -> Reading:
    """The reading of sums under a vote rule.

    ``known``: the feed's last reading. It is returned if nothing has changed since; else the parts of it are taken
    whose sums have not changed. ``outcomes``: how often an outcome has moved these sums.
    """
    rule = VOTE_RULES.index(vote_rule)
    if known is not None and (known.settings is not settings or known.rule != rule or known.by_group != by_group):
        known = None
    feed_sums = sums.feed
    if known is not None and known.sums is sums and known.version == sums.version:
        if known.peer_trust == peer_trust:
            return known
        mixing = _mixing(sums.feed, known.shares_key, settings, method, peer_trust, None)
        return replace(known, mixing=mixing, peer_trust=peer_trust)
    rates = tuple(
        [
            read_rates(feed_sums, used, settings.confidence, method, by_group=by_group)
            for used in used_rules(feed_sums, rule)
        ]
    )
    key, votes = shares_key(feed_sums), dependence_key(sums, rule)
    asked, voters, unit = feed_sums[_ASKED], VOTES * feed_sums[_VOTERS], UNIT * VOTES
    return Reading(
        sums,
        sums.version,
        outcomes,
        settings,
        method,
        rule,
        rates,
        _mixing(feed_sums, key, settings, method, peer_trust, known),
        key,
        peer_trust,
        round(voters / asked, _VOTERS_DECIMALS) if asked else None,
        next_vote_rule(vote_rule, feed_sums[_YES] * unit, feed_sums[_VOTES] * unit)
        if method.vote_rule == "auto"
        else method.vote_rule,
        known.dependence if known is not None and known.dependence_key == votes else read_dependence(sums, rule),
        votes,
        known.ranks if known is not None and known.sums is sums and known.outcomes == outcomes else read_ranks(sums),
        min(feed_sums[_STATED_ERROR] / asked, 0.5) if asked and method.rates_by_trust else None,
        by_group,
    )


def _mixing(
    feed_sums: Sequence[int],
    key: Sequence[int],
    settings: FeedSettings,
    method: Method,
    peer_trust: PeerTrust,
    known: Reading | None,
) -> Mixing:
    """Shares of the mixers and stretch; the shares are those that are known, if all that they depend on is the same."""
    if known is not None and (known.shares_key, known.peer_trust) == (key, peer_trust):
        shares = known.mixing.shares
    else:
        shares = shares_of(key, settings.mixer, method, peer_trust)
    return Mixing(shares, stretch_of(feed_sums, settings.mixer, method, peer_trust))
