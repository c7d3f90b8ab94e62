"""Why published weights moved when a record was folded: a term for each cause, adding up to the whole move.

Weights are read from a handful of inputs. To explain a move, the inputs of before are exchanged for those of after, one
after the other in the order of ``CAUSES``, and the weights are read again after each, by the functions that read the
published ones. What an exchange changes is the term of its cause. So terms add up whatever the formulas are; how much
each cause gets depends on the order where two act on each other, as in every such account.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, get_args

import numpy as np

from stream_peer.events.feed_log import (
    AnyFeedLogRecord,
    ExpertChanged,
    OutcomeRevealed,
    Round,
    RoundWithdrawn,
    SettingsChanged,
)
from stream_peer.feeds.columns import EXPERT
from stream_peer.feeds.feed import Feed
from stream_peer.feeds.methods.paths import Paths
from stream_peer.feeds.reading.published import Basis, expert_weights, published_weights
from stream_peer.feeds.reading.rates import Rates
from stream_peer.feeds.reading.readings import Extent, Mixing
from stream_peer.feeds.sums import IndexArray
from stream_peer.numerics.arguments import FloatArray, IntArray
from stream_peer.serve.explanation import CauseKind
from stream_peer.settings.feed.model import MixerSettings

CAUSES: tuple[CauseKind, ...] = get_args(CauseKind)

QuestionRecord: TypeAlias = Round | RoundWithdrawn | OutcomeRevealed


class Moment(NamedTuple):
    """All that the weights of a feed are read from at one moment.

    Attributes
    ----------
    feed : Feed
        Whose they are. It goes on: only its method and who has which place are taken from it.
    listed : (m,) int32
        Places of those that have weights.
    columns : (rows, n) float64
        Columns of all places.
    rates : tuple of Rates
    seen : Extent
    mixer : MixerSettings
    paths : Paths
    mixing : Mixing
    groups : (n,) int64, optional
        Numbers of the groups that share one weight, by place, -1 for none; None if nobody does.
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
    paths: Paths
    mixing: Mixing
    groups: IntArray | None
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

    def lists(self, expert: str) -> bool:
        """Whether an expert has weights."""
        place = self.feed.roster.place(expert)
        return place is not None and place in self.listed


def moment_of(feed: Feed) -> Moment:
    """What a feed's weights are read from now, whatever becomes of the feed."""
    places = np.arange(len(feed.roster), dtype=np.int32)
    listed, reading = feed.listed(), feed.read()
    moment = Moment(
        feed,
        listed,
        feed.sums.read(places, slice(0, EXPERT.size)),
        reading.all_rates,
        reading.extent(len(listed)),
        feed.settings.mixer,
        feed.frozen_paths(),
        reading.mixing,
        feed.roster.group_numbers(places),
        feed.standing.shrink,
        feed.standing.net_share,
        np.zeros((2, len(places))),
    )
    return moment._replace(weights=_read(moment))


def _read(moment: Moment) -> FloatArray:
    """The published weights of all places."""
    found = np.zeros((2, moment.columns.shape[1]))
    listed = moment.listed
    if len(listed):
        basis = Basis(listed, moment.columns[:, listed], moment.rates, moment.seen, moment.mixer, moment.feed.method)
        weights = expert_weights(basis, moment.paths)
        groups = None if moment.groups is None else moment.groups[listed]
        found[:, listed] = published_weights(weights, moment.mixing, moment.net_share, moment.shrink, groups)
    return found


class Term(NamedTuple):
    """By how much a cause moved an expert's weights."""

    cause: CauseKind
    mix: float
    select: float


def terms_of(
    before: Moment | None, after: Moment | None, record: AnyFeedLogRecord, experts: Sequence[str]
) -> Mapping[str, list[Term]]:
    """Why the weights of some experts moved between two moments, between which one record was folded.

    Parameters
    ----------
    before, after : Moment or None
        None: there was no such feed, or there is none any more.
    record : FeedLogRecord
    experts : sequence of str
        Whose moves to explain.

    Returns
    -------
    mapping of str to list of Term
        Of each expert whose weights moved. The terms add up to the move, up to the last digit of a float.
    """
    if not isinstance(record, QuestionRecord) or after is None or (before and before.feed is not after.feed):
        return _at_once(before, after, record, experts)
    exchange = _Exchange(_blank(after) if before is None else _widened(before, after), after)
    found = {}
    for expert in experts:
        place = after.feed.roster.place(expert)
        terms = [] if place is None else list(exchange.terms(place, record))
        if terms:
            found[expert] = terms
    return found


def _at_once(
    before: Moment | None, after: Moment | None, record: AnyFeedLogRecord, experts: Sequence[str]
) -> Mapping[str, list[Term]]:
    """One term for all that a control or settings did."""
    cause: CauseKind = "operator"
    if isinstance(record, SettingsChanged):
        cause = "settings"
    elif isinstance(record, ExpertChanged):
        cause = "listing"
    found = {}
    for expert in experts:
        (mix, select), (mix_now, select_now) = (
            (0.0, 0.0) if moment is None else moment.of(expert) for moment in (before, after)
        )
        if (mix, select) != (mix_now, select_now):
            found[expert] = [Term(cause, mix_now - mix, select_now - select)]
    return found


class _Exchange:
    """The inputs of ``before``, exchanged step by step for those of ``after``.

    All experts share the steps but one: that of an expert's own columns.
    """

    def __init__(self, before: Moment, after: Moment) -> None:
        self._start = before.weights
        self._listed = _with(before, listed=after.listed, seen=before.seen._replace(experts=after.seen.experts))
        self._after = after
        self._moved = np.logical_or.reduce(before.columns != after.columns, axis=0)
        others = _with(self._listed, columns=after.columns, paths=after.paths)
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

    def terms(self, place: int, record: QuestionRecord) -> Iterator[Term]:
        """The terms of the expert of a place that are not 0."""
        stands = self._start[:, place]
        for cause, weights in (*self._own(place, record), *self._shared):
            move = weights[:, place] - stands
            stands = weights[:, place]
            if move.any():
                yield Term(cause, *move.tolist())

    def _own(self, place: int, record: QuestionRecord) -> Iterator[tuple[CauseKind, FloatArray]]:
        yield "listing", self._listed.weights
        if self._moved[place]:
            columns = self._listed.columns.copy()
            columns[:, place] = self._after.columns[:, place]
            yield _own_cause(place, record, self._after), _with(self._listed, columns=columns).weights


def _own_cause(place: int, record: QuestionRecord, after: Moment) -> CauseKind:
    """Why an expert's own columns changed."""
    if after.feed.settings.memory is not None and not _took_part(place, record, after):
        return "ageing"
    return "truth" if isinstance(record, OutcomeRevealed) else "peer-loss"


def _took_part(place: int, record: QuestionRecord, after: Moment) -> bool:
    """Whether the expert is in a round of the question, or may have been in the one that was withdrawn."""
    if isinstance(record, RoundWithdrawn):
        return True
    entry = after.feed.entries.get(record.question_id)
    return entry is not None and any(place in facts.experts for facts in entry.facts())


def _with(moment: Moment, **changes: Any) -> Moment:
    """A moment with some inputs exchanged, and the weights that are read from them."""
    changed = moment._replace(**changes)
    if all(_same(getattr(moment, name), value, changed.feed) for name, value in changes.items()):
        return changed
    return changed._replace(weights=_read(changed))


def _same(one: Any, other: Any, feed: Feed) -> bool:
    """Whether exchanging an input changes nothing, so that nothing need be read again."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return one is not None and np.array_equal(one, other)
    if isinstance(one, Paths):
        return not (feed.method.shares or feed.method.side_mixer)
    return bool(one == other)


def _widened(before: Moment, after: Moment) -> Moment:
    """A moment with room for the places that were given since; nothing is known of them."""
    more = after.columns.shape[1] - before.columns.shape[1]
    if not more:
        return before
    columns, weights = (np.pad(array, ((0, 0), (0, more))) for array in (before.columns, before.weights))
    groups = None if before.groups is None else np.pad(before.groups, (0, more), constant_values=-1)
    return before._replace(columns=columns, weights=weights, groups=groups)


def _blank(after: Moment) -> Moment:
    """The moment before a feed's first record: nobody is listed. All else is as after it."""
    columns, weights = np.zeros_like(after.columns), np.zeros_like(after.weights)
    return after._replace(listed=after.listed[:0], columns=columns, weights=weights)
