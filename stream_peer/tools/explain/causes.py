"""Why published weights moved when a record was folded: causes that add up to the whole move.

Weights are read from a handful of inputs. To explain a move, the inputs of before are exchanged for those of after, one
after the other in the order of ``CAUSES``, and the weights are read again after each, by the functions that read the
published ones. What an exchange changes is the part of its cause. So parts add up whatever the formulas are; where two
causes act on each other, the order decides how much each of them gets.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, get_args

import numpy as np

from stream_peer.events.feed_log import (
    AnyFeedLogRecord,
    BlockNamed,
    ExpertChanged,
    OutcomeRevealed,
    Round,
    RoundWithdrawn,
    SettingsChanged,
)
from stream_peer.feeds.columns import EXPERT, VOTE_RULES, Column
from stream_peer.feeds.feed import Feed
from stream_peer.feeds.feed_reading import read
from stream_peer.feeds.methods.method import Path
from stream_peer.feeds.reading.rates import Rates
from stream_peer.feeds.reading.weights import Basis, ExpertWeights, Extent, Mixing, expert_weights, published_weights
from stream_peer.feeds.vote_units import Groups
from stream_peer.numerics.arguments import FloatArray, IndexArray
from stream_peer.serve.explanation import CauseKind, InputOfWeight, WeightKind
from stream_peer.settings.feed.model import MixerSettings

CAUSES: tuple[CauseKind, ...] = get_args(CauseKind)

MIX_COLUMNS = (
    "mix_level",
    "mix_slope",
    "mix_answer",
    "scored",
    "compared",
    "mix_regret",
    "fast_regret",
    "fast_absolute",
)
"""Columns that the mixers' weights are read from."""

QuestionRecord: TypeAlias = Round | RoundWithdrawn | OutcomeRevealed


class WeightReading(NamedTuple):
    """All that the weights of a feed are read from at one moment.

    Unlike a `Reading` it stays valid when the feed changes: it has copies of the columns.

    Attributes
    ----------
    feed : Feed
        It goes on: only its method and who has which place are taken from it.
    listed : (m,) int32
        Places of those that have weights.
    columns : (rows, n) float64
        Columns of all places.
    rates : tuple of Rates
    seen : Extent
    mixer : MixerSettings
    path : Path, optional
    mixing : Mixing
    groups : Groups, optional
        Those of all places that share one weight.
    shrink, net_share : float
    weights : (2, n) float64
        Read from all this, of all places: ``mix`` and ``select``, 0 for those that are not listed.
    """

    feed: Feed
    listed: IndexArray
    columns: FloatArray
    rates: tuple[Rates, ...]
    seen: Extent
    mixer: MixerSettings
    path: Path | None
    mixing: Mixing
    groups: Groups | None
    shrink: float
    net_share: float
    weights: FloatArray

    def of(self, expert: str) -> tuple[float, float]:
        """Weights of an expert, ``mix`` and ``select``; 0 if it is not listed."""
        place = self.feed.roster.place(expert)
        if place is None or place >= self.weights.shape[1]:
            return 0.0, 0.0
        mix, select = self.weights[:, place].tolist()
        return mix, select

    def inputs(self, expert: str, weight: WeightKind) -> list[InputOfWeight]:
        """The numbers that its weights are read from, columns under the names that ``feeds.columns`` declares.

        For ``mix`` those come first that the mixers read, and what follows from them.
        """
        place = self.feed.roster.place(expert)
        if place is None or place >= self.weights.shape[1]:
            return []
        columns = self._columns(place)
        if weight == "select":
            return [*columns, *self._of_mixers(place), *self._shared_inputs()]
        by_name = {one.name: one for one in columns}
        first = [by_name.pop(name) for name in MIX_COLUMNS]
        return [*first, *self._of_mixers(place), *self._shared_inputs(), *by_name.values()]

    def _columns(self, place: int) -> list[InputOfWeight]:
        """Sums of the expert of a place."""
        rules = [VOTE_RULES[of_rule.rule] for of_rule in self.rates]
        return [
            InputOfWeight(
                name=column.name if rule == "half" else f"{column.name} ({rule})",
                value=float(self.columns[EXPERT.at(column.name, rule), place]),
                meaning=said_of(column),
            )
            for column in EXPERT.columns
            for rule in (rules if column.by_rule else rules[:1])
        ]

    def _of_mixers(self, place: int) -> Iterator[InputOfWeight]:
        """The mixers' own weights of the expert of a place, and the counts over the listed experts that enter."""
        if place not in self.listed:
            return
        weights, position = self.learnt(), int(np.flatnonzero(self.listed == place)[0])
        for name in ("peer", "truth_slow", "truth_fast"):
            value = float(getattr(weights, name)[position])
            yield InputOfWeight(name=f"weight_{name}", value=value, meaning=f"the expert's weight in the mixer {name}")
        scored, compared = self.columns[[EXPERT.at("scored"), EXPERT.at("compared")]][:, self.listed]
        groups = self.listed_groups()
        voices = None if groups is None else groups.voices
        answered, resolved = (float(np.average(counts, weights=voices)) for counts in (scored + compared, compared))
        for name, value, meaning in (
            ("mean_questions", answered, "n̄: mean of scored + compared of the listed experts, a group counting once"),
            ("mean_resolved", resolved, "m̄: mean of compared of the listed experts, a group counting once"),
            ("n_experts", float(len(self.listed)), "N: the listed experts; the mixer mean gives each of them 1/N"),
        ):
            yield InputOfWeight(name=name, value=value, meaning=meaning)

    def _shared_inputs(self) -> Iterator[InputOfWeight]:
        """Those that are the same for all experts of the feed."""
        for of_rule in self.rates:
            for outcome, rate in enumerate((of_rule.zero, of_rule.one)):
                meaning = f"error rate that prices regrets, of reference answers if the outcome is {outcome}"
                yield InputOfWeight(name=f"rate_{outcome} ({VOTE_RULES[of_rule.rule]})", value=rate, meaning=meaning)
        for mixer, share in zip(("mean", "peer", "truth_slow", "truth_fast"), self.mixing.shares, strict=True):
            yield InputOfWeight(name=f"share_{mixer}", value=share, meaning="share of the mixer in the mix")
        yield InputOfWeight(name="net_share", value=self.net_share, meaning="share of the plain mean by the safety net")
        yield InputOfWeight(name="shrink", value=self.shrink, meaning="share of equal weights in the selection weights")

    def learnt(self) -> ExpertWeights:
        """The learners' weights of the listed experts, at least one."""
        columns, method = self.columns[:, self.listed], self.feed.method
        basis = Basis(self.listed, columns, self.rates, self.seen, self.mixer, method, self.listed_groups())
        return expert_weights(basis, self.path)

    def listed_groups(self) -> Groups | None:
        """The groups of the listed experts; None if no group is held together."""
        return None if self.groups is None else self.groups.at(self.listed)

    def lists(self, expert: str) -> bool:
        """Whether an expert has weights."""
        place = self.feed.roster.place(expert)
        return place is not None and place in self.listed


def said_of(column: Column) -> str:
    """What is summed in a column, on one line."""
    added = (("without outcome", column.open), ("with outcome", column.resolved), ("", column.doc))
    return "; ".join(f"{when}: {text}" if when else text for when, text in added if text)


def weight_reading(feed: Feed) -> WeightReading:
    """What a feed's weights are read from now."""
    places = np.arange(len(feed.roster), dtype=np.int32)
    reading = read(feed)
    listed = feed.roster.listed(reading.sums)
    found = WeightReading(
        feed,
        listed,
        reading.sums.read(places, slice(0, EXPERT.size)),
        reading.all_rates,
        reading.extent(len(listed)),
        feed.settings.mixer,
        feed.learner_path and feed.learner_path.frozen(),
        reading.mixing,
        feed.roster.held_groups(places),
        feed.path_state.shrink,
        feed.path_state.net_share,
        np.zeros((2, len(places))),
    )
    return found._replace(weights=_read(found))


def _read(reading: WeightReading) -> FloatArray:
    """The published weights of all places."""
    found = np.zeros((2, reading.columns.shape[1]))
    listed = reading.listed
    if len(listed):
        weights = reading.learnt()
        groups = reading.listed_groups()
        found[:, listed] = published_weights(weights, reading.mixing, reading.net_share, reading.shrink, groups)
    return found


class Cause(NamedTuple):
    """By how much something moved an expert's weights."""

    kind: CauseKind
    mix: float
    select: float


def explain(
    before: WeightReading | None, event: AnyFeedLogRecord, after: WeightReading | None, experts: Sequence[str]
) -> Mapping[str, list[Cause]]:
    """Why the weights of some experts moved between two readings, between which one record was folded.

    Parameters
    ----------
    before, after : WeightReading or None
        None: there was no such feed, or there is none any more.
    event : FeedLogRecord
    experts : sequence of str

    Returns
    -------
    mapping of str to list of Cause
        Of each expert whose weights moved. The causes add up to the move, up to the last digit of a float.
    """
    if not isinstance(event, QuestionRecord) or after is None or (before and before.feed is not after.feed):
        return _at_once(before, event, after, experts)
    exchange = _Exchange(_blank(after) if before is None else _widened(before, after), after)
    found = {}
    for expert in experts:
        place = after.feed.roster.place(expert)
        causes = [] if place is None else list(exchange.causes(place, event))
        if causes:
            found[expert] = causes
    return found


def _at_once(
    before: WeightReading | None, event: AnyFeedLogRecord, after: WeightReading | None, experts: Sequence[str]
) -> Mapping[str, list[Cause]]:
    """One cause of all that a control or settings did."""
    kind: CauseKind = "operator"
    if isinstance(event, SettingsChanged):
        kind = "settings"
    elif isinstance(event, ExpertChanged):
        kind = "listing"
    elif isinstance(event, BlockNamed):
        kind = "guard"
    found = {}
    for expert in experts:
        (mix, select), (mix_now, select_now) = (
            (0.0, 0.0) if reading is None else reading.of(expert) for reading in (before, after)
        )
        if (mix, select) != (mix_now, select_now):
            found[expert] = [Cause(kind, mix_now - mix, select_now - select)]
    return found


class _Exchange:
    """The inputs of ``before``, exchanged step by step for those of ``after``.

    All experts share the steps but one: that of an expert's own columns.
    """

    def __init__(self, before: WeightReading, after: WeightReading) -> None:
        self._start = before.weights
        self._listed = _with(before, listed=after.listed, seen=before.seen._replace(experts=after.seen.experts))
        self._after = after
        self._moved = np.logical_or.reduce(before.columns != after.columns, axis=0)
        others = _with(self._listed, columns=after.columns, path=after.path)
        priced = _with(others, rates=after.rates, seen=after.seen, mixer=after.mixer)
        mixed = _with(priced, mixing=after.mixing)
        guarded = _with(mixed, groups=after.groups)
        shrunk = _with(guarded, shrink=after.shrink)
        netted = _with(shrunk, net_share=after.net_share)
        self._shared: tuple[tuple[CauseKind, FloatArray], ...] = (
            ("others", others.weights),
            ("re-pricing", priced.weights),
            ("mixers", mixed.weights),
            ("guard", guarded.weights),
            ("shrinkage", shrunk.weights),
            ("safety-net", netted.weights),
        )

    def causes(self, place: int, event: QuestionRecord) -> Iterator[Cause]:
        """What moved the weights of the expert of a place."""
        reached = self._start[:, place]
        for kind, weights in (*self._own(place, event), *self._shared):
            move = weights[:, place] - reached
            reached = weights[:, place]
            if move.any():
                yield Cause(kind, *move.tolist())

    def _own(self, place: int, event: QuestionRecord) -> Iterator[tuple[CauseKind, FloatArray]]:
        yield "listing", self._listed.weights
        if self._moved[place]:
            columns = self._listed.columns.copy()
            columns[:, place] = self._after.columns[:, place]
            yield _own_kind(place, event, self._after), _with(self._listed, columns=columns).weights


def _own_kind(place: int, event: QuestionRecord, after: WeightReading) -> CauseKind:
    """Why an expert's own columns changed."""
    if after.feed.settings.memory is not None and not _took_part(place, event, after):
        return "ageing"
    return "truth" if isinstance(event, OutcomeRevealed) else "peer-loss"


def _took_part(place: int, event: QuestionRecord, after: WeightReading) -> bool:
    """Whether the expert is in a round of the question, or may have been in the one that was withdrawn."""
    if isinstance(event, RoundWithdrawn):
        return True
    entry = after.feed.ledger.entries.get(event.question_id)
    return entry is not None and any(place in facts.experts for facts in entry.facts())


def _with(reading: WeightReading, **changes: Any) -> WeightReading:
    """A reading with some inputs exchanged, and the weights that are read from them."""
    changed = reading._replace(**changes)
    if all(_same(getattr(reading, name), value) for name, value in changes.items()):
        return changed
    return changed._replace(weights=_read(changed))


def _same(one: Any, other: Any) -> bool:
    """Whether exchanging an input changes nothing, so that nothing need be read again."""
    if isinstance(one, Groups) and isinstance(other, Groups):
        return all(map(np.array_equal, one, other))
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return one is not None and np.array_equal(one, other)
    return bool(one == other)


def _widened(before: WeightReading, after: WeightReading) -> WeightReading:
    """A reading with room for the places that were given since; nothing is known of them."""
    more = after.columns.shape[1] - before.columns.shape[1]
    if not more:
        return before
    columns, weights = (np.pad(array, ((0, 0), (0, more))) for array in (before.columns, before.weights))
    groups = None if before.groups is None else before.groups.widened(more)
    return before._replace(columns=columns, weights=weights, groups=groups)


def _blank(after: WeightReading) -> WeightReading:
    """The reading before a feed's first record: nobody is listed. All else is as after it."""
    columns, weights = np.zeros_like(after.columns), np.zeros_like(after.weights)
    return after._replace(listed=after.listed[:0], columns=columns, weights=weights)
