"""What is drawn for the rounds of a feed: coins, tickets, groups. From its seed alone, so that it can be repeated."""

from collections.abc import Iterable

import numpy as np

from stream_peer.events.times import Milliseconds
from stream_peer.feeds.methods.method import N_GROUPS, NOTHING_DRAWN, Chance, NeededDraws
from stream_peer.feeds.roster import Roster
from stream_peer.feeds.sums import IndexArray
from stream_peer.log.draws import draw_after, group_of, prefix_of
from stream_peer.numerics.arguments import IntArray
from stream_peer.numerics.dependence import N_BLOCKS


class Draws:
    """Draws for the rounds of one feed.

    Parameters
    ----------
    seed : bytes
        See ``feed_seed``.
    feed : str
    needed : NeededDraws, optional
        What its method needs to have drawn besides.
    """

    def __init__(self, seed: bytes, feed: str, needed: NeededDraws | None) -> None:
        self._seed = seed
        self._feed = feed
        self._prefix = prefix_of(seed, feed)
        self._needed = needed
        self._groups: IntArray = np.zeros(0, np.int64)

    def coin(self, question_id: str, boundary: Milliseconds) -> int:
        """The answer of a round where nothing else decides."""
        return int(self._drawn(question_id, boundary, "tie") < 0.5)

    def ticket(self, question_id: str, boundary: Milliseconds) -> float:
        """In [0, 1): draws the selected expert of a round."""
        return self._drawn(question_id, boundary, "select")

    def block(self, question_id: str) -> int:
        """The part of the votes' moments that a question belongs to."""
        return int(N_BLOCKS * self._drawn(question_id, 0, "block"))

    def of_method(self, roster: Roster, experts: IndexArray, question_id: str, boundary: Milliseconds) -> Chance:
        """What the method needs to have drawn for a round besides."""
        needed = self._needed
        if needed is None:
            return NOTHING_DRAWN
        of_round = f"{question_id}/{boundary}" if needed.redrawn else ""
        asked = needed.groups or 1
        if of_round or roster.teams:
            groups = self._drawn_groups(roster, experts.tolist(), asked, of_round)
        else:
            new = range(len(self._groups), len(roster))
            if new:
                self._groups = np.append(self._groups, self._drawn_groups(roster, new, asked))
            groups = self._groups[experts]
        coins = [int(self._drawn(question_id, boundary, f"tie {n}") < 0.5) for n in range(N_GROUPS)]
        flip = self._drawn(question_id, boundary, "flip") < needed.flip_probability
        return Chance(groups, (coins[0], coins[1], coins[2]), flip)

    def _drawn(self, question_id: str, boundary: Milliseconds, purpose: str) -> float:
        return draw_after(self._prefix, question_id, boundary, purpose)

    def _drawn_groups(self, roster: Roster, experts: Iterable[int], asked: int, of_round: str = "") -> IntArray:
        """The groups of some experts, 0 where none are asked. Members of a team are in the same."""
        ids, teams = [roster.experts[place] for place in experts], roster.teams
        names = [f"team {teams[expert]}" if expert in teams else expert for expert in ids]
        groups = [group_of(self._seed, self._feed, name, asked, of_round) for name in names]
        return np.array(groups, dtype=np.int64)
