"""What is drawn for the rounds of a feed: coins, tickets, groups. From its seed alone, so that it can be repeated."""

from collections.abc import Iterable

import numpy as np

from stream_peer.events.times import Milliseconds
from stream_peer.feeds.methods.method import N_GROUPS, Chance, NeededDraws
from stream_peer.feeds.roster import Roster
from stream_peer.log.draws import draw_after, group_of, prefix_of
from stream_peer.numerics.arguments import IndexArray, IntArray
from stream_peer.numerics.dependence import N_SUBSAMPLES


class Draws:
    """Draws for the rounds of one feed.

    Parameters
    ----------
    seed : bytes
        See ``log.draws.feed_seed``.
    feed : str
    """

    def __init__(self, seed: bytes, feed: str) -> None:
        self._seed = seed
        self._feed = feed
        self._prefix = prefix_of(seed, feed)
        self._groups: IntArray = np.zeros(0, np.int64)

    def of_round(self, question_id: str, boundary: Milliseconds, group_id: str | None = None) -> tuple[int, float, int]:
        """What every round needs to have drawn.

        The answer where nothing else decides; a number in [0, 1) that draws the selected expert; the subsample that
        the question belongs to, whatever the round; that of its group if one is named.
        """
        prefix = self._prefix
        tie = draw_after(prefix, question_id, boundary, "tie")
        ticket = draw_after(prefix, question_id, boundary, "select")
        # "block" is what subsamples were called: with another word, other ones would be drawn
        return int(tie < 0.5), ticket, int(N_SUBSAMPLES * draw_after(prefix, group_id or question_id, 0, "block"))

    def of_method(
        self, needed: NeededDraws, roster: Roster, experts: IndexArray, question_id: str, boundary: Milliseconds
    ) -> Chance:
        """What the method of the feed needs to have drawn for a round besides."""
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
