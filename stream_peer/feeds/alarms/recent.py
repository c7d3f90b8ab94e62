"""The last questions of a feed, vote by vote: what sums cannot tell, such as who says the same as whom.

It is a function of the ledger, so nothing of it is stored: after a load it is read off the ledger. A question that
changes is only noted; its row is written when somebody looks, or when enough of them wait. Tallies and sums over the
questions are kept beside the rows: what leaves is taken out, what comes is put in. All of them are whole numbers of
their unit, so it makes no difference in which order, or how often.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from stream_peer.feeds.columns import RULE_PART
from stream_peer.feeds.facts import Facts
from stream_peer.feeds.ledger import Entry
from stream_peer.feeds.sums import NOTHING, Contribution
from stream_peer.numerics.arguments import BoolArray, FloatArray, IndexArray, IntArray, SmallIntArray, unchecked
from stream_peer.numerics.dependence.followers import CrowdSums, crowd_distances, crowd_sums
from stream_peer.numerics.dependence.suspicion import (
    COUNTED_ONCE,
    Float32Array,
    Tallies,
    change_of_tallies,
    stacked_tallies,
)

WINDOW = 512
"""Questions, by their ordinals."""

_FIRST_ROOM = 16
_NOBODY = -1
_MOST_WAITING = 32_768
"""Forecasts whose rows wait to be written: with very many experts a look would be long."""


class Window(NamedTuple):
    """The last questions of a feed that are in its ledger, have rounds and are not annulled, oldest first.

    Attributes
    ----------
    ordinals : (n_questions,) int64
        Their numbers among the questions of the feed; all are above the newest less 512.
    counts : (n_questions,) bool
        Whether the latest round had voters enough.
    votes : (n_questions, n_experts) int8
        Its votes by the vote rule that was in force: +1, -1, 0 for none, or absent.
    answers : (n_questions, n_experts) int8
        Each expert's own reference answer in it as +1 or -1; 0: absent.
    rules : (n_questions,) int64
        The number of that rule.
    parts : (n_questions, n_columns) int64
        What the question, with all its rounds, adds to the columns ``RULE_PART`` of that rule.
    voters, agreement : (n_questions,) int64
        How many have voted in it, of all experts, and the sum of their votes times answers.
    scatter : (n_questions,) float64
        Of the experts' mean forecast, see `crowd_distances`.
    crowd : CrowdSums
        How near each expert was to the crowd, and its first forecasts to what had been published.
    tallies : Tallies, optional
        Of all pairs of experts, if there are not too many.
    """

    ordinals: IntArray
    counts: BoolArray
    votes: SmallIntArray
    answers: SmallIntArray
    rules: IntArray
    parts: IntArray
    voters: IntArray
    agreement: IntArray
    scatter: FloatArray
    crowd: CrowdSums
    tallies: Tallies | None = None

    def without_votes(self, experts: Sequence[int]) -> "Window":
        """The same without the votes of some experts."""
        if not experts:
            return self
        votes = self.votes.copy()
        votes[:, experts] = 0
        tallies = self.tallies
        if tallies is not None:
            others = np.ones(votes.shape[1])
            others[experts] = 0.0
            tallies = Tallies(*(table * (others[:, None] * others) for table in tallies))
        return self._replace(votes=votes, tallies=tallies)

    def without(self, experts: Sequence[int]) -> "Window":
        """The same without some experts."""
        if not experts:
            return self
        answers, crowd = self.answers.copy(), np.stack(self.crowd)
        answers[:, experts], crowd[:, experts] = 0, 0.0
        return self.without_votes(experts)._replace(answers=answers, crowd=CrowdSums(*crowd))


_Noted: TypeAlias = tuple[Entry, Contribution]


class Recent:
    """A feed's last questions, each by its latest round, kept in step with the ledger.

    Parameters
    ----------
    ordinals : int
        How many questions the feed has taken in.
    """

    def __init__(self, ordinals: int = 0) -> None:
        self._ordinals: IntArray = np.full(WINDOW, _NOBODY, np.int64)
        self._counts: BoolArray = np.zeros(WINDOW, np.bool_)
        self._scatter = np.zeros(WINDOW)
        self._together: IntArray = np.zeros((2, WINDOW), np.int64)
        self._rules: IntArray = np.zeros(WINDOW, np.int64)
        self._parts: IntArray = np.zeros((WINDOW, len(RULE_PART)), np.int64)
        self._marks: SmallIntArray = np.zeros((2, WINDOW, 0), np.int8)
        self._distances: Float32Array = np.zeros((3, WINDOW, 0), np.float32)
        self._crowd = np.zeros((len(CrowdSums._fields), 0))
        self._pairs: Float32Array | None = np.zeros((2, 0, 2, 0), np.float32)
        self._noted: dict[int, _Noted | None] = {}
        self._waiting = 0
        self._last = ordinals - 1
        self._n_experts = 0  # columns from there on are all zeros, of which nothing needs to be computed

    def note(self, entry: Entry, part: Contribution) -> None:
        """A question of the ledger is new, or has changed; ``part``: what it adds to the sums."""
        ordinal = entry.ordinal
        self._last = max(self._last, ordinal)
        if ordinal > self._last - WINDOW:
            self._noted[ordinal % WINDOW] = entry, part
            self._waiting += self._marks.shape[2]
            if self._waiting > _MOST_WAITING:
                self._write()
        else:
            entry.let_go()

    def leave(self, entry: Entry) -> None:
        """A question has left the ledger."""
        if entry.ordinal > self._last - WINDOW:
            self._noted[entry.ordinal % WINDOW] = None

    def read(self, n_experts: int) -> Window:
        """The questions as they are known now, with columns for so many experts. The arrays are the reader's own."""
        self._write()
        self._reserve(n_experts)
        there = np.flatnonzero(self._ordinals >= 0)
        slots = there[self._ordinals[there].argsort()]
        votes, answers = self._marks[:, slots, :n_experts]
        return Window(
            self._ordinals[slots],
            self._counts[slots],
            votes,
            answers,
            self._rules[slots],
            self._parts[slots],
            self._together[0, slots],
            self._together[1, slots],
            self._scatter[slots],
            CrowdSums(*self._crowd[:, :n_experts].copy()),
            None if self._pairs is None else stacked_tallies(self._pairs[:, :n_experts, :, :n_experts]),
        )

    def _write(self) -> None:
        """Write the rows of the questions that wait."""
        noted, self._noted, self._waiting = self._noted, {}, 0
        if not noted:
            return
        known = {slot: one for slot, one in noted.items() if one is not None and one[1] is not NOTHING}
        rounds = [entry.facts() for entry, _ in known.values()]
        if known:
            highest = max(int(np.maximum.reduce(facts.experts)) for of_question in rounds for facts in of_question)
            self._n_experts = max(self._n_experts, 1 + highest)
            self._reserve(self._n_experts)
        n = self._n_experts
        slots, filled = np.array(list(noted)), np.array(list(known), np.int64)
        former = slots[self._ordinals[slots] >= 0]
        before = self._marks[0, former, :n]
        self._add_up(former, np.subtract)
        self._ordinals[former], self._scatter[former] = _NOBODY, 0.0
        self._marks[:, former] = 0
        self._distances[:, former] = np.array([0.0, 0.0, -1.0], np.float32)[:, None, None]
        if known:
            self._fill(known, rounds)
        self._add_up(filled, np.add)
        if self._pairs is not None:
            self._pairs[:, :n, :, :n] += change_of_tallies(before, self._marks[0, filled, :n])
        for one in noted.values():
            if one is not None:
                one[0].let_go()

    def _fill(self, known: Mapping[int, _Noted], rounds: Sequence[Sequence[Facts]]) -> None:
        """Fill empty rows by what is noted of questions, and the facts of their rounds."""
        latest = [of_question[-1] for of_question in rounds]
        slots, sizes = np.array(list(known)), np.array([len(facts.experts) for facts in latest])
        self._ordinals[slots] = [entry.ordinal for entry, _ in known.values()]
        self._counts[slots] = [facts.votes.counts for facts in latest]
        self._rules[slots] = [facts.votes.rule for facts in latest]
        self._parts[slots] = [part.of_rule for _, part in known.values()]
        cells = np.repeat(slots * self._marks.shape[2], sizes) + np.concatenate([facts.experts for facts in latest])
        votes, answers = self._marks.reshape(2, -1)
        votes[cells] = cast = np.concatenate([facts.cast for facts in latest])
        answers[cells] = aligned = 2 * np.concatenate([facts.answers for facts in latest]).view(np.int8) - 1
        both, starts = np.stack((cast != 0, cast * aligned), dtype=np.int64), np.add.accumulate(sizes) - sizes
        self._together[:, slots] = np.add.reduceat(both, starts, axis=1)
        said_before = [
            [said for before in of_question[-2:-1] for said in (before.mix.mix, before.mix.stretched)]
            for of_question in rounds
        ]
        forecasts = np.concatenate([facts.forecasts for facts in latest])
        apart, near, first = self._distances.reshape(3, -1)
        apart[cells], near[cells], self._scatter[slots] = unchecked(crowd_distances)(forecasts, sizes, said_before)
        for slot, of_question in zip(known, rounds, strict=True):
            if len(of_question) > 1:
                for late, repeated in _first_forecasts(of_question):
                    first[slot * self._marks.shape[2] + late] = repeated

    def _add_up(self, slots: IntArray, operation: np.ufunc) -> None:
        """Put rows into the sums of how near experts were to the crowd, or take them out."""
        if not len(slots):
            return
        n = self._n_experts
        apart, near, repeated = self._distances[:, slots, :n]
        present = self._marks[1, slots, :n] != 0
        sums = unchecked(crowd_sums)(near, apart, self._scatter[slots], present, repeated)
        operation(self._crowd[:, :n], sums, out=self._crowd[:, :n])

    def _reserve(self, n_experts: int) -> None:
        room = self._marks.shape[2]
        if n_experts > room:
            now = max(n_experts, _FIRST_ROOM, 2 * room if n_experts > COUNTED_ONCE else min(2 * room, COUNTED_ONCE))
            self._marks, self._distances, self._crowd = (
                _with_room(table, now) for table in (self._marks, self._distances, self._crowd)
            )
            self._distances[2, :, room:] = -1.0
            if now > COUNTED_ONCE:
                self._pairs = None
            elif self._pairs is not None:
                pairs = np.zeros((2, now, 2, now), np.float32)
                pairs[:, :room, :, :room] = self._pairs
                self._pairs = pairs


def _with_room(table: np.ndarray[tuple[int, ...], np.dtype[Any]], room: int) -> Any:
    """The same with zeros for more experts, along the last axis."""
    return np.concatenate((table, np.zeros((*table.shape[:-1], room - table.shape[-1]), table.dtype)), axis=-1)


_FIGURES = 9
"""So many published figures are looked at, those of three rounds: near one of very many is what any forecast is."""


def _first_forecasts(rounds: Sequence[Facts]) -> Iterator[tuple[IndexArray, FloatArray]]:
    """Experts who came late, and the square of how far each first forecast is from the nearest new figure."""
    known, said = rounds[0].experts, list[float]()
    for before, facts in pairwise(rounds):
        said += (before.mix.mean, before.mix.mix, before.mix.stretched)
        late = ~np.isin(facts.experts, known)
        if late.any():
            apart = facts.forecasts[late][:, None] - np.array(said[-_FIGURES:])
            yield facts.experts[late], np.minimum.reduce(apart * apart, axis=1)
            known = np.concatenate((known, facts.experts[late]))
