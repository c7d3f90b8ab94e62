"""The scored forecast of a question: the one forecast of it that an evaluation looks at.

It is the question's first ``final`` round as it was first published. What comes later (other forecasts, a reopening, a
withdrawal, an annulment, a rebuild) corrects what is published, but never the scored forecast: the weights of a
correction may know outcomes that nobody knew when the question was open. If an outcome comes before any final round,
the last round published before it is the scored forecast; without one there is none, for good.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from stream_peer.events.feed_log import Round, Verdict
from stream_peer.events.outputs import MixedForecast, ScoredForecast
from stream_peer.feeds.columns import FEED, UNIT, VOTE_RULES
from stream_peer.feeds.facts import Facts, Mix, boundary_of, mix_of, unpack
from stream_peer.feeds.ledger import Entry
from stream_peer.feeds.shadow_mixers import losses_of_mix, shadow_columns
from stream_peer.feeds.sums import Evaluated, fixed
from stream_peer.numerics.arguments import BoolArray, IndexArray, IntArray

FORECASTS = ("mix", "stretched", "mean", "median")
"""Those whose squared losses are summed."""
NONE = b""
"""In place of facts: there is no scored forecast, and there will be none."""
_OUTCOMES = (0, 1)
BINS = tuple(f"{tenth / 10:.1f}-{(tenth + 1) / 10:.1f}" for tenth in range(10))
"""Tenths of [0, 1], by which mixed forecasts are counted with their outcomes; 1 is in the last one."""

DECIMALS = 12
"""To which scores are rounded: the last digits of a mean differ between machines."""

_EVALUATED, _ASKED, _TIED = FEED.at("evaluated"), FEED.at("asked"), FEED.at("tied")
_COUNTED = [FEED.at("moment_weight", rule) for rule in VOTE_RULES]


def fix_by_round(entry: Entry, event: Round, revision: int) -> bool:
    """A round of the question is published. Returns whether that decides which its scored forecast is.

    A round that comes after an outcome is no forecast: the question was resolved in the feed that it comes from, or
    before this feed was reset.
    """
    if entry.first_final is not None:
        return False
    entry.revision = revision
    if event.after_outcome:
        entry.first_final = NONE
        return True
    if event.final:
        (entry.first_final,) = [packed for packed in entry.rounds if boundary_of(packed) == event.boundary]
    return event.final


def note_withdrawal(entry: Entry, revision: int) -> None:
    """A round of the question is gone: what is published of it from here on is the one before."""
    if entry.first_final is None and entry.rounds:
        entry.revision = revision


def fix_by_outcome(entry: Entry, outcome: Verdict) -> bool:
    """An outcome is applied. Returns whether that decides which the scored forecast is: the last round until then."""
    if entry.first_final is not None or outcome not in _OUTCOMES:
        return False
    rounds = entry.rounds
    entry.first_final = rounds[-1] if rounds else NONE
    return True


def scored_with_places(packed: bytes, places: IndexArray) -> bytes:
    """A scored forecast in which experts have other places, and those that have none any more are not named.

    What was published of all of them together (mix, mean, median …) stays as it was published.
    """
    if not packed:
        return packed
    facts = unpack(packed)
    rows = places[facts.experts] >= 0
    return facts_at_places(facts, rows, places, position_in(facts.selected, rows)).pack()


def position_in(selected: int | None, rows: BoolArray) -> int | None:
    """The selected expert's position among those who stay; None if it is not one of them."""
    return int(np.count_nonzero(rows[:selected])) if selected is not None and rows[selected] else None


def facts_at_places(facts: Facts, rows: BoolArray, places: IndexArray, selected: int | None) -> Facts:
    """Some of the experts of a round, at their new places."""
    return msgspec.structs.replace(
        facts,
        selected=selected,
        experts=places[facts.experts[rows]],
        forecasts=facts.forecasts[rows],
        select=facts.select[rows],
        answers=facts.answers[rows],
        ties=facts.ties[rows],
        cast=facts.cast[rows],
        mixer_answers=None if facts.mixer_answers is None else facts.mixer_answers[rows],
    )


def scored_facts(entry: Entry) -> bytes | None:
    """Packed facts of the scored forecast if it counts as things stand: an outcome is known, a round published."""
    return (entry.first_final or None) if entry.rounds and entry.evidence in _OUTCOMES else None


def scored_kind(bin_: str, outcome: int) -> str:
    """What a scored forecast with an outcome is counted as."""
    return f"{bin_} {outcome}"


def count_kind(entry: Entry) -> str | None:
    """The ``scored_kind`` of a question; None while its scored forecast does not count."""
    packed = scored_facts(entry)
    if packed is None:
        return None
    return scored_kind(BINS[min(int(mix_of(packed).mix * 10), 9)], int(entry.evidence == 1))


def scored_losses(entry: Entry) -> tuple[float, float, float] | None:
    """``losses_of_mix`` of the scored forecast; None while it does not count."""
    packed = scored_facts(entry)
    if packed is None:
        return None
    mix = mix_of(packed)
    return losses_of_mix(mix.mix, mix.stretched, int(entry.evidence == 1))


def scored_of(record: MixedForecast) -> tuple[ScoredForecast, int] | None:
    """The scored forecast of a question and its outcome, by its last record; None while it does not count."""
    if record.scored is None or record.state != "resolved":
        return None
    return record.scored, int(record.outcome == 1)


class Evaluation(NamedTuple):
    """What the scored forecast of a resolved question adds to the sums.

    Attributes
    ----------
    feed : list of float
        1 and the squared losses of ``FORECASTS``.
    experts : Evaluated
        Ones and squared losses, of those who stood in it.
    shadows : tuple of (int, (7,) int64)
        Columns of shadows, by their numbers.
    """

    feed: Sequence[float]
    experts: Evaluated
    shadows: tuple[tuple[int, IntArray], ...]


def evaluation(packed: bytes, outcome: int, weight: float) -> Evaluation:
    """What the scored forecast of a question adds, given its outcome."""
    facts = unpack(packed)
    mix = facts.mix
    losses = [(forecast - outcome) * (forecast - outcome) for forecast in forecasts_of(mix).values()]
    columns = np.ones((2, len(facts.forecasts)))
    np.square(facts.forecasts - outcome, out=columns[1])
    shadows = shadow_columns((mix.mix, mix.stretched), facts.shadows, outcome, weight)
    return Evaluation([1.0, *losses], Evaluated(facts.experts, fixed(columns, weight)), shadows)


def forecasts_of(mix: Mix) -> Mapping[str, float]:
    """The combined forecasts of a round that are scored."""
    return {name: getattr(mix, name) for name in FORECASTS}


def read_scores(feed_sums: Sequence[int]) -> Mapping[str, float]:
    """Mean squared loss of scored forecasts, by their kind; empty before the first."""
    evaluated = feed_sums[_EVALUATED] * UNIT
    if not evaluated:
        return {}
    sums = np.array(feed_sums[FEED.span("mix_squared", "median_squared")], np.int64)
    losses = (sums * UNIT / evaluated).round(DECIMALS).tolist()
    return dict(zip(FORECASTS, losses, strict=True))


def tie_share(feed_sums: Sequence[int]) -> float | None:
    """Share of the rounds that count whose published reference answer was a tie; None before the first."""
    counted = sum(feed_sums[column] for column in _COUNTED)
    return round(feed_sums[_TIED] / counted, DECIMALS) if counted else None


def low_evidence_share(feed_sums: Sequence[int]) -> float | None:
    """Share of rounds that had too few voters to count; None before the first."""
    asked, counted = feed_sums[_ASKED], sum(feed_sums[column] for column in _COUNTED)
    return max(0.0, round(1.0 - counted / asked, DECIMALS)) if asked else None
