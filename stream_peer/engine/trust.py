"""How far a feed's weights can be trusted, with hysteresis, so that a state does not flicker at its limit.

The state ``dependent``, and what follows from a state for the weights, belong here too.
"""

from typing import NamedTuple

from stream_peer.engine.rates import Rates, outcome_reasons, said_against
from stream_peer.events.feed_settings import FeedSettings
from stream_peer.events.method_settings import asks_groups
from stream_peer.events.outputs import TrustState
from stream_peer.numerics.error_rates.rate import LEAST_Z

_VOTERS_MARGIN = 0.25
_RATES_LEAVE = 0.75
_RATES_LIMIT = 0.8
_WARM_AGAIN = 0.9
_CONTRADICTED_LEAVE = 2.0


class Trust(NamedTuple):
    """A state and why it is so; ``ok`` has no reasons."""

    state: TrustState
    reasons: tuple[str, ...]


UNTRIED: TrustState = "warming-up"


def next_trust(before: TrustState, rates: Rates, mean_voters: float | None, settings: FeedSettings) -> Trust:
    """The state after a record, given the one before it.

    ``low-evidence``: fewer than ``min_experts`` voters a question; left at a quarter voter more.
    ``uninformative``: the error rates sum to more than .8 (left at .75), or the votes (under the preset ``paper`` the
    answers of the groups) do not tell them.
    ``contradicted``: they come out as no two kinds of questions would make them; or more reference answers were wrong
    than they allow, by three standard deviations (left at two).
    ``warming-up``: fewer effective questions than ``trust.warm_up_questions``; back again below nine tenths of it.

    Parameters
    ----------
    before : TrustState
    rates : Rates
    mean_voters : float or None
        Voters a question; None before the first question.
    settings : FeedSettings

    Returns
    -------
    Trust
    """
    if mean_voters is not None:
        limit = settings.min_experts + (_VOTERS_MARGIN if before == "low-evidence" else 0.0)
        if mean_voters < limit:
            return Trust("low-evidence", (f"{mean_voters:.2f} voters a question, {settings.min_experts} are needed",))
    if rates.estimate.status != "insufficient":
        alarm = _alarm(before, rates, "answers of the groups" if asks_groups(settings) else "votes")
        if alarm:
            return alarm
    questions, enough = rates.estimate.effective_questions, settings.trust.warm_up_questions
    if questions < enough * (_WARM_AGAIN if before == "ok" else 1.0):
        return Trust("warming-up", (f"{questions:.0f} of {enough:g} effective questions",))
    return Trust("ok", ())


def _alarm(before: TrustState, rates: Rates, evidence: str) -> Trust | None:
    """What error rates of enough questions give away."""
    total = rates.estimate.zero + rates.estimate.one
    if total > (_RATES_LEAVE if before == "uninformative" else _RATES_LIMIT):
        return Trust("uninformative", (f"error rates sum to {total:.3f}: reference answers say next to nothing",))
    if rates.status == "uninformative":
        return Trust("uninformative", (f"{evidence} vary no more from question to question than coins would",))
    by_outcomes = _by_outcomes(before, rates)
    if by_outcomes:
        return by_outcomes
    if rates.status == "contradicted":
        return Trust("contradicted", (f"{evidence} are not those of independent experts on two kinds of questions",))
    return None


def _by_outcomes(before: TrustState, rates: Rates) -> Trust | None:
    """What outcomes say against error rates estimated without them."""
    found = rates.contradiction
    if found is None or not found.z > (_CONTRADICTED_LEAVE if before == "contradicted" else LEAST_Z):
        return None
    return Trust("contradicted", tuple(outcome_reasons(rates) if found.found else [said_against(found)]))


def certifies(state: TrustState) -> bool:
    """Whether a certificate means anything in this state."""
    return state in ("ok", "warming-up")
