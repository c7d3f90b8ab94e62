"""An exported feed without experts who asked to be forgotten: what was said of the others stays as it was said."""

import msgspec
import numpy as np
import numpy.typing as npt

from stream_peer.feeds.blocks import Blocks
from stream_peer.feeds.facts import Facts, unpack
from stream_peer.feeds.feed import Feed
from stream_peer.feeds.standing import Standing
from stream_peer.feeds.sums import IndexArray
from stream_peer.log.portable import FeedLine

Bits = npt.NDArray[np.bool_]
_GONE = -1


def feed_without(line: FeedLine, stay: Bits) -> FeedLine:
    """The feed without some experts, by their places: the others get new places."""
    experts = [expert for expert, stays in zip(line.experts, stay.tolist(), strict=True) if stays]
    named = set(experts)
    return msgspec.structs.replace(
        line,
        experts=experts,
        teams={expert: team for expert, team in line.teams.items() if expert in named},
        excluded=[expert for expert in line.excluded if expert in named],
        settled=_settled_without(line, stay),
        standing=_standing_without(line.standing, stay),
    )


def facts_without(packed: bytes, stay: Bits, places: IndexArray) -> bytes | None:
    """A round's facts without some of its experts; None if nobody is left. If one was selected, the next best is."""
    facts = unpack(packed)
    rows = stay[facts.experts]
    if not rows.any():
        return None
    kept = _position(facts.selected, rows)
    return _rows_of(facts, rows, places, int(np.argmax(facts.select[rows])) if kept is None else kept).pack()


def places_in(feed: Feed, before: Feed) -> IndexArray:
    """By the places of a feed's experts before a refold: their places after it, -1 of those who are not there."""
    found = map(feed.roster.place, before.experts)
    return np.array([_GONE if place is None else place for place in found], dtype=np.int32)


def scored_with_places(packed: bytes, places: IndexArray) -> bytes:
    """A scored forecast in which experts have other places, and those that have none any more are not named.

    What was published of all of them together (mix, mean, median …) stays as it was published.
    """
    if not packed:
        return packed
    facts = unpack(packed)
    rows = places[facts.experts] != _GONE
    return _rows_of(facts, rows, places, _position(facts.selected, rows)).pack()


def _position(selected: int | None, rows: Bits) -> int | None:
    """The selected expert's position among those who stay; None if it is not one of them."""
    return int(np.count_nonzero(rows[:selected])) if selected is not None and rows[selected] else None


def _rows_of(facts: Facts, rows: Bits, places: IndexArray, selected: int | None) -> Facts:
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
    )


def _standing_without(standing: Standing, stay: Bits) -> Standing:
    """Groups and drift name places; a group of which a single expert is left is none."""
    places = {place: number for number, place in enumerate(np.flatnonzero(stay).tolist())}
    kept = (group.without(places) for group in standing.groups)
    groups = [group for group in kept if group is not None]
    drift = standing.drift.without(places)
    return msgspec.structs.replace(standing, groups=groups, drift=drift)


def _settled_without(line: FeedLine, stay: Bits) -> bytes:
    memory = line.meaning.get("memory")
    settled = Blocks.from_bytes(line.settled, len(line.experts), memory)
    for sums in settled.by_number.values():
        sums.matrix = sums.matrix[:, : len(stay)][:, stay]
        sums.histograms = sums.histograms[stay[: len(sums.histograms)]]
    return settled.to_bytes(int(np.count_nonzero(stay)))
