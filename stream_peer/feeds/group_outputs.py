"""The record of a group of questions: the mixed forecasts of its parts, made coherent."""

from collections.abc import Callable, Collection, Iterable, Iterator, Set
from functools import partial
from itertools import groupby
from typing import NamedTuple

import msgspec
import numpy as np

from stream_peer.events import topics
from stream_peer.events.groups import Value, limit_of, name_of
from stream_peer.events.outputs import MixedGroup, PartForecast
from stream_peer.events.times import Milliseconds, to_iso
from stream_peer.feeds.facts import Facts
from stream_peer.feeds.feed import Feed
from stream_peer.feeds.ledger import Entry
from stream_peer.feeds.outputs import published, published_outcome
from stream_peer.feeds.reading.weights import DECIMALS
from stream_peer.feeds.views import heading
from stream_peer.log.stage import Output
from stream_peer.numerics.arguments import FloatArray, unchecked
from stream_peer.numerics.coherent import isotonic_regression, simplex_projection

_MOST = 500
"""Parts of a group in its record: with the longest names it is below ``MAX_RECORD_BYTES``."""


class _Part(NamedTuple):
    """A part of a group: its id, its threshold if it has one, what is known of it, and its latest round."""

    question_id: str
    limit: Value | None
    entry: Entry
    latest: Facts | None


def group_outputs(feed: Feed, group: str, questions: Collection[str]) -> list[Output]:
    """The record of a group of these parts as it is published; none once one of them has left the ledger."""
    record = group_record(feed, group, questions)
    return [] if record is None else published(topics.MIXED_GROUPS, group, record, feed.path_state.at)


def group_record(feed: Feed, group: str, questions: Collection[str]) -> MixedGroup | None:
    """The record of a group of these parts as things stand now; None once one of them has left the ledger."""
    if not feed.ledger.expired.keys().isdisjoint(questions):
        return None
    parts = [_part(feed, one) for one in questions] if len(questions) <= _MOST else []
    rounds = [part.latest for part in parts if part.latest is not None]
    return MixedGroup(
        **heading(feed),
        trust=feed.path_state.trust,
        group=group,
        boundary=to_iso(max(facts.boundary for facts in rounds)) if rounds else None,
        final=bool(rounds) and all(facts.final for facts in rounds),
        options=list(_options(parts)) or msgspec.UNSET,
        cdf=list(_cdf(parts)) or msgspec.UNSET,
    )


def group_tombstones(feed: Feed, elsewhere: Set[str], at: Milliseconds) -> list[Output]:
    """Records that say that the groups in a feed's ledger are gone, but for those of which a part is ``elsewhere``."""
    gone = [group for group, parts in feed.ledger.groups.items() if elsewhere.isdisjoint(parts)]
    return [Output(topics.MIXED_GROUPS, group.encode(), None, at) for group in sorted(gone)]


def _part(feed: Feed, question_id: str) -> _Part:
    entry = feed.ledger.entries.get(question_id, Entry())
    return _Part(question_id, limit_of(question_id), entry, entry.latest())


def _options(parts: Iterable[_Part]) -> Iterator[PartForecast]:
    """Those of options, in the order in which they came."""
    options = [part for part in parts if part.limit is None]
    options.sort(key=lambda part: (part.entry.ordinal, part.question_id))
    known = sum(part.latest is not None for part in options)
    is_rest = known < max((part.entry.options for part in options), default=0)
    return _coherent(options, partial(unchecked(simplex_projection), rest=is_rest))


def _cdf(parts: Iterable[_Part]) -> Iterator[PartForecast]:
    """Those of thresholds, numbers and times apart."""
    thresholds = sorted((part.limit, part) for part in parts if part.limit is not None)
    for _, alike in groupby(thresholds, key=lambda one: one[0].kind):
        yield from _coherent([part for _, part in alike], unchecked(isotonic_regression))


def _coherent(parts: Collection[_Part], projection: Callable[[FloatArray], FloatArray]) -> Iterator[PartForecast]:
    rounds = [part.latest.mix for part in parts if part.latest is not None]
    said = np.clip([(mix.mix, mix.stretched) for mix in rounds], 0.0, 1.0).T
    coherent = iter(np.array([projection(row) for row in said]).T.round(DECIMALS).tolist() if rounds else ())
    for part in parts:
        mix, stretched = (None, None) if part.latest is None else next(coherent)
        yield PartForecast(
            name=name_of(part.question_id), mix=mix, stretched=stretched, outcome=published_outcome(part.entry)
        )
