"""The methods that a worker serves: the default, and the preset ``paper``."""

from dataclasses import replace

from stream_peer.errors import SettingFault, SettingsError
from stream_peer.feeds.facts import ScoringInputs
from stream_peer.feeds.methods.group_answers import GroupAnswer, answer_for_all, coded_answers
from stream_peer.feeds.methods.method import Method, NeededDraws, OwnAnswers, Situation
from stream_peer.feeds.methods.rate_sums import RateSums
from stream_peer.numerics.answers import majority_of
from stream_peer.numerics.arguments import FloatArray, SmallIntArray, unchecked
from stream_peer.numerics.error_rates import ErrorRate, TwoGroupSums
from stream_peer.numerics.learners import hedge, hedge_rate
from stream_peer.numerics.losses import LOSSES
from stream_peer.settings.feed.model import BUILT_IN, FeedSettings, changed_settings


def served_method(settings: FeedSettings) -> Method:
    """The method that settings choose.

    Raises
    ------
    SettingsError
        If they choose one that only a replay computes.
    """
    if settings.preset == "paper":
        return _paper(settings)
    if settings.method != BUILT_IN:
        why = "only a replay computes it"
        raise SettingsError(
            [SettingFault(f"method.{name}", "method", why) for name in changed_settings(settings.method)]
        )
    return default_method(settings)


def default_method(settings: FeedSettings) -> Method:
    """The default of the version that settings state. This is where the formulas of versions differ.

    Version 2 is that of this release, and changes until it is released; version 1 is that of the release before, and
    stays as it is for as long as it is served.
    """
    first = Method(LOSSES[settings.loss], settings.vote_rule, guards=settings.guard == "on")
    if settings.method_version == 1:
        return first
    return replace(
        first,
        guards=settings.guard != "off",
        finds_blocks=True,
        finds_repeaters=True,
        holds_newcomers=True,
        trust_prior=True,
        stretch_shrinkage=2.5,
        own_counts=True,
        mixes_at_half=True,
        bounds_all=True,
        rates_by_trust=True,
        tells_coins=True,
        counts_groups=True,
    )


def _paper(settings: FeedSettings) -> Method:
    """Everybody against the answer of group A, at the error rate of the time, for good."""
    return Method(
        LOSSES[settings.loss],
        "half" if settings.vote_rule == "auto" else settings.vote_rule,
        answers=_answer_of_group_a,
        draws=NeededDraws(groups=2),
        rate=rate_of_two_groups,
        select=hedge_at_any_time,
        is_frozen=True,
        from_mean=True,
        evidence="answers of the groups",
        leaves_one_out=False,
        certifies=False,
        mixes=False,
        adjusts=False,
    )


def _answer_of_group_a(
    cast: SmallIntArray, _: tuple[int, int], forecasts: FloatArray, under: ScoringInputs
) -> OwnAnswers:
    found = [_majority_of_group(cast, forecasts, under, number) for number in (0, 1)]
    return answer_for_all(found[0], len(cast), coded_answers(found))


def _majority_of_group(cast: SmallIntArray, forecasts: FloatArray, under: ScoringInputs, number: int) -> GroupAnswer:
    members = under.chance.groups == number
    lines = None if under.thresholds is None else under.thresholds[members]
    found = majority_of(cast[members], forecasts[members], under.chance.coins[number], lines)
    return GroupAnswer(found.answer, found.tie, bool(members.any()))


def rate_of_two_groups(sums: RateSums, confidence: float) -> ErrorRate:
    """Error rates of the answers of two groups, from how often they say yes and agree."""
    seen = sums.groups
    two = TwoGroupSums(seen.weight, seen.weight2, seen.first, seen.second, seen.first_second)
    return unchecked(TwoGroupSums.estimate)(two, confidence)


def hedge_at_any_time(seen: Situation) -> FloatArray:
    """Selection weights of Hedge at the rate that suits the questions seen so far."""
    rate = unchecked(hedge_rate)(seen.n_experts, seen.questions, seen.loss_range)
    return unchecked(hedge)(seen.regrets, rate)
