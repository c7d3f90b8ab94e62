"""The experts of a feed: their places in the sums, their ids and names, teams, exclusions and erasures.

Ids look alike that differ only in blanks, case, or letters that a person would take for the same: see `skeleton`.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np

from stream_peer.events.feed_log import Round
from stream_peer.feeds.columns import EXPERT
from stream_peer.feeds.sums import Sums
from stream_peer.feeds.vote_units import Groups, united_numbers
from stream_peer.log.ids import Given, Names, digest_of_id, taken
from stream_peer.numerics.arguments import IndexArray, IntArray

_CYRILLIC = "\u0430\u0435\u043e\u0440\u0441\u0445\u0443\u0456\u0458\u0455\u0501\u04bb"
_GREEK = "\u03b1\u03bf\u03c1\u03bd\u03b9\u03ba\u03c5\u03c7"
_LATIN = str.maketrans(f"{_CYRILLIC}{_GREEK}01|", "aeopcxyijsdhaopvikuxoll")
"""Letters of the Cyrillic and the Greek alphabet that look like Latin ones, and digits that look like letters."""


def skeleton(text: str) -> str:
    """What is left of an id without what the eye passes over: equal for ids that look alike.

    Examples
    --------
    >>> skeleton("ECMWF ") == skeleton("ecmwf"), skeleton("m\u043edel-10") == skeleton("model-lo")
    (True, True)
    >>> skeleton("model-2") == skeleton("model-3")
    False
    """
    plain = unicodedata.normalize("NFKC", text).casefold().translate(_LATIN)
    return "".join(letter for letter in plain if not letter.isspace() and unicodedata.category(letter)[0] != "C")


_SCORED, _RESOLVED = EXPERT.at("scored"), EXPERT.at("resolved")
_NO_TEAM = -1


class StoredRoster(msgspec.Struct, array_like=True):
    """A roster as it is stored; experts by their places."""

    experts: list[str]
    teams: dict[str, str]
    excluded: list[str]
    erased: list[bytes]
    names: Given = {}


class Roster:
    """The experts of a feed.

    Attributes
    ----------
    experts : list of str
        Their first ids, by their places. A place is for good: columns of sums and facts refer to it.
    names : Names
        Ids that experts were given later. All else here is by their first ids.
    shown : list of str
        Their newest ids, by their places.
    teams : dict
        Team of each expert that is in one.
    excluded : set of str
        Treated as absent, until they are included again.
    erased : set of bytes
        Digests of ids that are refused.
    """

    def __init__(self, feed: str, secret: bytes, stored: StoredRoster | None = None) -> None:
        self._feed, self._secret = feed, secret
        self.experts: list[str] = stored.experts if stored else []
        self.teams: dict[str, str] = stored.teams if stored else {}
        self.excluded = set(stored.excluded) if stored else set()
        self.erased = set(stored.erased) if stored else set()
        self.names = Names(stored.names if stored else None)
        self._places = {expert: place for place, expert in enumerate(self.experts)}
        self._show()
        self._teams: IntArray | None = None
        self._held: Groups | None = None
        self._groups: Sequence[Sequence[int]] = ()
        self._weightless: Sequence[int] = ()
        self._skeletons: dict[str, str] = {}
        self._compared = 0

    def stored(self) -> StoredRoster:
        """Stored form."""
        teams = dict(sorted(self.teams.items()))
        return StoredRoster(self.experts, teams, sorted(self.excluded), sorted(self.erased), self.names.given)

    def know(self, names: Names) -> None:
        """Ids that experts were given elsewhere."""
        self.names = names
        self._show()

    def _show(self) -> None:
        """Experts are shown by other ids."""
        given = self.names.given
        self.shown = [self.names.shown(expert) for expert in self.experts] if given else self.experts
        self._order: IndexArray = np.zeros(0, np.int32)

    def __len__(self) -> int:
        return len(self.experts)

    def __contains__(self, expert: str) -> bool:
        return expert in self._places

    def missing(self, experts: Iterable[str]) -> list[str]:
        """Those of some experts that have no place yet."""
        return [expert for expert in experts if expert not in self._places]

    def take_in(self, expert: str) -> None:
        """Give an expert a place."""
        self._places[expert] = len(self.experts)
        self.experts.append(expert)
        if self.shown is not self.experts:
            self.shown.append(self.names.shown(expert))
        self._teams = self._held = None

    def look_alikes(self, since: int) -> Iterator[tuple[str, str]]:
        """Experts with a place from ``since`` on, each with an earlier one whose id looks alike.

        Ids are compared when they are asked about for the first time, so a roster that meets nobody keeps nothing.
        """
        for place in range(self._compared, len(self.experts)):
            expert = self.experts[place]
            earlier = self._skeletons.setdefault(skeleton(expert), expert)
            if place >= since and earlier != expert:
                yield expert, earlier
        self._compared = len(self.experts)

    def places(self, experts: Sequence[str]) -> IndexArray:
        """Places of experts that have one; KeyError if one has none."""
        return np.fromiter(map(self._places.__getitem__, experts), np.int32, len(experts))

    def place(self, expert: str) -> int | None:
        """An expert's place, by any of its ids, if it has one."""
        return self._places.get(self.names.first(expert))

    def ids(self) -> list[str]:
        """All ids by which the experts are known."""
        return [*self.experts, *(name for names in self.names.given.values() for name in names)]

    # --- membership ---

    def rename(self, expert: str, name: str) -> None:
        """From here on the expert is shown under this id, and is known by it as by all former ones.

        Raises
        ------
        RejectedEvent
            If another expert is known by it.
        """
        if name in self._places and self.names.first(expert) != name:
            raise taken(name)
        self.names.give(expert, name)
        self._show()

    def put_in_team(self, expert: str, team: str | None) -> None:
        """From here on the expert is in this team, or in none."""
        if team is None:
            self.teams.pop(expert, None)
        else:
            self.teams[expert] = team
        self._teams = self._held = None

    def exclude(self, expert: str, *, excluded: bool) -> None:
        """From here on the expert is excluded, or not any more."""
        if excluded:
            self.excluded.add(expert)
        else:
            self.excluded.discard(expert)

    def erase(self, expert: str) -> list[str]:
        """Refuse all ids of the expert from here on, and keep nothing of them but digests; which ids these were.

        Its place goes with a rebuild.
        """
        ids = self.names.all_of(expert)
        self.names.drop(expert)
        self.erased.update(digest_of_id(self._secret, self._feed, one) for one in ids)
        self.teams.pop(ids[0], None)
        self.excluded.discard(ids[0])
        self._teams = self._held = None
        self._show()
        return ids

    def is_erased(self, expert: str) -> bool:
        """Whether the id is refused."""
        return bool(self.erased) and digest_of_id(self._secret, self._feed, expert) in self.erased

    def admitted(self, event: Round) -> Round:
        """The round by first ids, without excluded and erased experts."""
        if self.names.given:
            event = self._by_first_ids(event)
        if not self.excluded and not self.erased:
            return event
        rows = [
            (expert, probability)
            for expert, probability in zip(event.experts, event.probabilities, strict=True)
            if expert not in self.excluded and not self.is_erased(expert)
        ]
        if len(rows) == len(event.experts):
            return event
        experts, probabilities = [expert for expert, _ in rows], [probability for _, probability in rows]
        return msgspec.structs.replace(event, experts=experts, probabilities=probabilities)

    def _by_first_ids(self, event: Round) -> Round:
        """The question stage says first ids itself, but for what it said before it was told of a new one."""
        firsts = [self.names.first(expert) for expert in event.experts]
        if firsts == event.experts:
            return event
        said = dict(zip(firsts, event.probabilities, strict=True))
        own = zip(event.experts, event.probabilities, strict=True)
        said.update((expert, probability) for expert, probability in own if expert in said)
        experts = sorted(said)
        return msgspec.structs.replace(event, experts=experts, probabilities=[said[expert] for expert in experts])

    def team_numbers(self, places: IndexArray) -> IntArray | None:
        """Number of the team of each of some experts, -1 for none; None if nobody of the feed is in a team.

        A group that is held together is a team, or part of one with the teams of its members.
        """
        if not self.teams and not self._groups and not self._weightless:
            return None
        if self._teams is None:
            self._teams = united_numbers(self.declared_teams(), self._all_held().numbers)
        return self._teams[places]

    def declared_teams(self) -> IntArray:
        """Number of the team that each expert was put in, by place; -1 for none."""
        numbers = {team: number for number, team in enumerate(sorted(set(self.teams.values())))}
        of_experts = [numbers.get(self.teams.get(expert, ""), _NO_TEAM) for expert in self.experts]
        return np.array(of_experts, dtype=np.int64)

    def hold_together(self, groups: Sequence[Sequence[int]], weightless: Sequence[int] = ()) -> None:
        """From here on these groups, by places, vote once and share one weight; so do the weightless, but for none."""
        self._groups = [group for group in groups if len(group) > 1]
        self._weightless = list(weightless)
        self._teams = self._held = None

    def held_groups(self, places: IndexArray) -> Groups | None:
        """The groups of some experts; None if no group is held together."""
        if not self._groups and not self._weightless:
            return None
        return self._all_held().at(places)

    def _all_held(self) -> Groups:
        if self._held is None:  # each round asks, and they seldom change
            self._held = Groups.of(self._groups, len(self), self._weightless)
        return self._held

    # --- readings ---

    def listed(self, sums: Sums) -> IndexArray:
        """Places of the experts with questions that count, in the order of their newest ids; without the excluded."""
        if len(self._order) < len(self.experts):
            by_id = sorted(range(len(self.experts)), key=self.shown.__getitem__)
            self._order = np.array(by_id, dtype=np.int32)
        counted = sums.matrix[_SCORED] + sums.matrix[_RESOLVED]
        found = self._order.compress(counted[self._order] > 0)
        if not self.excluded:
            return found
        return np.array([place for place in found.tolist() if self.experts[place] not in self.excluded], np.int32)

    def n_seen(self, present: IndexArray, sums: Sums) -> int:
        """How many experts have questions that count or are present."""
        counted = sums.matrix[_SCORED] | sums.matrix[_RESOLVED]
        newcomers = len(present) - int(np.count_nonzero(counted.take(present)))
        seen = int(np.count_nonzero(counted)) + newcomers
        if self.excluded:
            absent = [self._places[expert] for expert in self.excluded if expert in self._places]
            seen -= int(np.count_nonzero(counted[absent]))
        return seen
