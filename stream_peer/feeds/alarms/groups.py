"""Experts who say the same: how they are looked for in the last questions of a feed, and what is found."""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from stream_peer.events.outputs import GroupKind
from stream_peer.feeds.alarms.recent import Window
from stream_peer.feeds.reading.weights import DECIMALS
from stream_peer.numerics.arguments import IntArray, unchecked
from stream_peer.numerics.dependence.blocks import blocks_among
from stream_peer.numerics.dependence.copies import Copies, copies_among
from stream_peer.numerics.dependence.followers import find_followers, find_repeaters
from stream_peer.numerics.dependence.in_pieces import Pieces
from stream_peer.numerics.dependence.suspicion import FEWEST_COMMON, votes_of_each


class Group(msgspec.Struct, frozen=True, array_like=True):
    """A group as it was found at the last look.

    ``experts``: places, ascending; ``agreement``: mean of v_i·v_j over pairs of them, of a follower its own with the
    crowd; ``expected``: what it would be if they knew of each other only through the outcome; ``questions``: they have
    in common.
    """

    experts: list[int]
    kind: GroupKind
    agreement: float
    expected: float
    questions: int

    def without(self, places: Mapping[int, int]) -> "Group | None":
        """The same of the experts that are given, under their new places; None if nothing is left to say."""
        stay = [places[place] for place in self.experts if place in places]
        fewest = 1 if self.kind == "follower" else 2
        return msgspec.structs.replace(self, experts=stay) if len(stay) >= fewest else None


def look_for_copies(
    window: Window,
    known: Sequence[Group],
    teams: IntArray | None,
    turn: int,
    given: Sequence[Group] = (),
    *,
    blocks: bool,
) -> Pieces[list[Group]]:
    """Groups of experts who agree far more than their error rates allow, see `find_copies` and `find_blocks`.

    ``blocks``: whether the latter are looked for, too. ``given``: groups that the log names, which go on in any case.
    """
    before = [group.experts for group in known]
    found = yield from copies_among(window.votes, before, teams, turn, window.tallies)
    if blocks:
        as_given = [Copies(tuple(one.experts), one.agreement, one.expected, one.questions) for one in given]
        in_part = yield from blocks_among(window.votes, before, teams, turn, window.tallies)
        found = _joined([*as_given, *in_part, *found])
        # The pairs within a known group are judged again, a team's as well: when all others have left, a team is left.
        found = [group for group in found if not _is_one_team(group.experts, teams)]
    return [_group(group.experts, "copies", group.agreement, group.expected, group.questions) for group in found]


def _is_one_team(experts: Sequence[int], teams: IntArray | None) -> bool:
    """Whether all of them are of one declared team: that those agree is no news."""
    return teams is not None and teams[experts[0]] >= 0 and bool((teams[list(experts)] == teams[experts[0]]).all())


def _joined(groups: Sequence[Copies]) -> list[Copies]:
    """Groups that share members as one, which has the numbers of the largest."""
    apart: list[Copies] = []
    for group in sorted(groups, key=lambda one: -len(one.experts)):
        shared = [one for one in apart if not set(one.experts).isdisjoint(group.experts)]
        experts = tuple(sorted({*group.experts, *(expert for one in shared for expert in one.experts)}))
        apart = [one for one in apart if one not in shared] + [(shared or [group])[0]._replace(experts=experts)]
    return sorted(apart)


def look_for_followers(
    window: Window, before: Sequence[int], copies: Sequence[Group], repeaters: Sequence[int]
) -> list[Group]:
    """The experts who follow the crowd, see `find_followers`: all of them say the same, so they are one group.

    ``before``: who did at the last look; ``repeaters``: who is one of them in any case. Agreement is theirs with their
    own reference answers; what is expected, that of the median expert.
    """
    present = window.answers != 0
    found = unchecked(find_followers)(window.crowd, window.scatter, present, before)
    found = np.union1d(found, np.array(repeaters, np.int64))
    elsewhere = {expert for group in copies for expert in group.experts}
    followers = [expert for expert in found.tolist() if expert not in elsewhere]
    if not followers:
        return []
    voted = votes_of_each(window.votes)
    agreed = np.add.reduce(window.votes * window.answers, axis=0, dtype=np.float64) / np.maximum(voted, 1)
    usual = np.sort(agreed[voted >= FEWEST_COMMON])
    expected = float(usual[len(usual) // 2]) if len(usual) else 0.0
    n, said = len(followers), agreed[followers]
    questions = np.count_nonzero(present[:, followers]) / n
    return [_group(followers, "follower", float(np.add.reduce(said)) / n, expected, round(questions))]


def look_for_repeaters(window: Window, before: Sequence[int]) -> list[int]:
    """Experts who repeat what was published, see `find_repeaters`."""
    crowd = window.crowd
    usual = crowd.present >= FEWEST_COMMON
    if not usual.any():
        return []
    went = np.sort(crowd.square[usual] / crowd.present[usual])
    found: list[int] = unchecked(find_repeaters)(crowd, float(went[len(went) // 2]), before).tolist()
    return found


def _group(experts: Sequence[int], kind: GroupKind, agreement: float, expected: float, questions: int) -> Group:
    return Group(list(experts), kind, round(agreement, DECIMALS), round(expected, DECIMALS), questions)
