"""The last questions of a feed, vote by vote: what sums cannot tell, such as who says the same as whom.

It is a function of the ledger, so nothing of it is stored: after a load it is read off the ledger. A question that
changes is only noted, which costs next to nothing; its row is written when somebody looks.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from stream_peer.feeds.columns import RULE_PART
from stream_peer.feeds.contributions import rule_part
from stream_peer.feeds.facts import Facts
from stream_peer.feeds.ledger import Entry
from stream_peer.numerics.arguments import BoolArray, FloatArray, IndexArray, IntArray, SmallIntArray, unchecked
from stream_peer.numerics.dependence.followers import crowd_distances
from stream_peer.numerics.dependence.suspicion import Float32Array

WINDOW = 512
"""Questions, by their ordinals."""

_FIRST_ROOM = 16
_NOBODY = -1


class Window(NamedTuple):
    """The last questions of a feed that are in its ledger, have rounds and are not annulled, oldest first.

    Attributes
    ----------
    ordinals : (n_questions,) int64
        Their numbers among the questions of the feed; all are above the newest less 512.
    counts : (n_questions,) bool
        Whether the latest round had voters enough.
    pair, rest : (n_questions,) float64
        Moments of the votes of that round.
    votes : (n_questions, n_experts) int8
        Its votes by the vote rule that was in force: +1, -1, 0 for none, or absent.
    answers : (n_questions, n_experts) int8
        Each expert's own reference answer in it as +1 or -1; 0: absent.
    rules : (n_questions,) int64
        The number of that rule.
    parts : (n_questions, n_columns) int64
        What the question, with all its rounds, adds to the columns ``RULE_PART`` of that rule.
    scatter : (n_questions,) float64
        Of the experts' mean forecast, see `crowd_distances`.
    apart, near : (n_questions, n_experts) float32
        How far each expert was from the crowd, and its square; 0 where it is absent.
    repeated : (n_questions, n_experts) float32
        Of experts who came after something was published of the question, the square of the distance of their first
        forecast from the nearest of that; -1: the others.
    """

    ordinals: IntArray
    counts: BoolArray
    pair: FloatArray
    rest: FloatArray
    votes: SmallIntArray
    answers: SmallIntArray
    rules: IntArray
    parts: IntArray
    scatter: FloatArray
    apart: Float32Array
    near: Float32Array
    repeated: Float32Array


class Recent:
    """A feed's last questions, each by its latest round, kept in step with the ledger.

    Parameters
    ----------
    entries : iterable of Entry
        Those of the ledger.
    ordinals : int
        How many questions the feed has taken in.
    """

    def __init__(self, entries: Iterable[Entry] = (), ordinals: int = 0) -> None:
        self._ordinals: IntArray = np.full(WINDOW, _NOBODY, np.int64)
        self._heads = np.zeros((4, WINDOW))
        self._rules: IntArray = np.zeros(WINDOW, np.int64)
        self._parts: IntArray = np.zeros((WINDOW, len(RULE_PART)), np.int64)
        self._marks = np.zeros((2, WINDOW, 0), np.int8)
        self._distances = np.zeros((3, WINDOW, 0), np.float32)
        self._noted: dict[int, Entry] = {}
        self._last = ordinals - 1
        for entry in entries:
            self.note(entry)

    def note(self, entry: Entry) -> None:
        """A question of the ledger is new, or has changed."""
        ordinal = entry.ordinal
        self._last = max(self._last, ordinal)
        if ordinal > self._last - WINDOW:
            self._noted[ordinal % WINDOW] = entry

    def leave(self, entry: Entry) -> None:
        """A question has left the ledger."""
        slot = entry.ordinal % WINDOW
        if entry.ordinal > self._last - WINDOW:
            self._noted.pop(slot, None)
            self._ordinals[slot] = _NOBODY

    def read(self, n_experts: int) -> Window:
        """The questions as they are known now, with columns for so many experts. The arrays are the reader's own."""
        for slot, entry in self._noted.items():
            self._write(slot, entry)
        self._noted.clear()
        self._reserve(n_experts)
        there = np.flatnonzero(self._ordinals >= 0)
        slots = there[np.argsort(self._ordinals[there])]
        counts, pair, rest, scatter = self._heads[:, slots]
        votes, answers = self._marks[:, slots, :n_experts]
        told = self._rules[slots], self._parts[slots], scatter, *self._distances[:, slots, :n_experts]
        return Window(self._ordinals[slots], counts > 0.0, pair, rest, votes, answers, *told)

    def _write(self, slot: int, entry: Entry) -> None:
        rounds = [] if entry.evidence == "annulled" else entry.facts()
        if not rounds:
            self._ordinals[slot] = _NOBODY
            return
        facts = rounds[-1]
        votes_of, moments, experts = facts.votes, facts.moments, facts.experts
        self._reserve(int(np.maximum.reduce(experts)) + 1)
        self._ordinals[slot] = entry.ordinal
        said_before = [said for before in rounds[-2:-1] for said in (before.mix.mix, before.mix.stretched)]
        crowd = unchecked(crowd_distances)(facts.forecasts, said_before)
        self._heads[:, slot] = votes_of.counts, moments.pair, moments.rest, crowd.scatter
        self._rules[slot], self._parts[slot] = votes_of.rule, rule_part(rounds, entry)
        votes, answers = self._marks[:, slot]
        votes[:], answers[:] = 0, 0
        votes[experts] = facts.cast
        answers[experts] = 2 * facts.answers.view(np.int8) - 1
        self._distances[:, slot] = np.array([0.0, 0.0, -1.0])[:, None]
        self._distances[:2, slot, experts] = crowd.apart, crowd.near
        if len(rounds) > 1:
            for late, repeated in _first_forecasts(rounds):
                self._distances[2, slot, late] = repeated

    def _reserve(self, n_experts: int) -> None:
        room = self._marks.shape[2]
        if n_experts > room:
            shape = 2, WINDOW, max(n_experts, 2 * room, _FIRST_ROOM)
            marks, distances = np.zeros(shape, np.int8), np.zeros((3, *shape[1:]), np.float32)
            distances[2] = -1.0
            marks[:, :, :room], distances[:, :, :room] = self._marks, self._distances
            self._marks, self._distances = marks, distances


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
