"""The state of one feed: its experts, its ledger, its sums, and what is read off them."""

from collections.abc import Generator, Iterator, Mapping, Sequence

import msgspec

from stream_peer.events.times import Milliseconds
from stream_peer.feeds.accounts import Accounts, Blocks
from stream_peer.feeds.alarms.groups import Group
from stream_peer.feeds.alarms.recent import Recent
from stream_peer.feeds.columns import VOTE_RULES
from stream_peer.feeds.contributions import contribution
from stream_peer.feeds.draws import Draws
from stream_peer.feeds.facts import Facts
from stream_peer.feeds.ledger import Entry, Limits
from stream_peer.feeds.medians import own_medians
from stream_peer.feeds.methods.method import MethodOf, Path
from stream_peer.feeds.methods.served import served_method
from stream_peer.feeds.path_state import PathState
from stream_peer.feeds.reading.reading import Reading, read
from stream_peer.feeds.reading.trust import NamedGroup, Signs, Trust, next_trust
from stream_peer.feeds.reading.weights import (
    Basis,
    ExpertWeights,
    Extent,
    expert_weights,
)
from stream_peer.feeds.roster import Roster, StoredRoster
from stream_peer.feeds.scoring import ScoringInputs
from stream_peer.feeds.shadow_mixers import Shadows
from stream_peer.feeds.sums import Contribution, IndexArray, Sums
from stream_peer.log.draws import feed_seed
from stream_peer.numerics.arguments import FloatArray
from stream_peer.settings.feed.model import MEANING, FeedSettings, MethodSettings

_NOT_ASKED = Extent(experts=1, questions=0.0, gaps=0.0)
"""How much a feed has seen, for methods that do not go by it: all but variants."""


class StoredFeed(msgspec.Struct, array_like=True):
    """What of a feed is stored beside its ledger and its path-dependent state."""

    roster: StoredRoster
    meaning: dict[str, object]
    settled: bytes


class Feed:
    """One feed. ``settings`` are those in force, ``settings_hash`` names their document.

    Who its experts are is in ``roster``, what is known of its questions in ``accounts``, the votes
    of the last ones in ``recent``.
    """

    def __init__(
        self, name: str, settings: FeedSettings, settings_hash: str, secret: bytes, method_of: MethodOf = served_method
    ) -> None:
        self.name = name
        self.roster = Roster(name, secret)
        self.accounts = Accounts(settings)
        self.path_state = PathState()
        self.recent = Recent()
        self.pieces = 0
        self.stored = False
        self.method_of = method_of
        self._secret = secret
        self._reading: Reading | None = None
        self._outcomes = 0  # how often an outcome moved the sums
        self.settings, self.method = settings, method_of(settings)
        self._path = self._beginning()
        self.adopt(settings, settings_hash)

    @property
    def sums(self) -> Sums:
        """The sums as they count now."""
        return self.accounts.blocks.reading

    @property
    def entries(self) -> dict[str, Entry]:
        """The ledger by question."""
        return self.accounts.ledger.entries

    @property
    def experts(self) -> list[str]:
        """First ids of the experts by their places."""
        return self.roster.experts

    @property
    def shown(self) -> list[str]:
        """Newest ids of the experts by their places: what outputs name."""
        return self.roster.shown

    def adopt(self, settings: FeedSettings, settings_hash: str) -> None:
        """Settings from here on. Those that change meaning may differ only while nothing was scored."""
        chooses_anew = (settings.preset, settings.method) != (self.settings.preset, self.settings.method)
        self.settings, self.method = settings, self.method_of(settings)
        if chooses_anew:
            self._path = self._beginning()
        self.shadows = Shadows(settings, self.method)
        self.settings_hash = settings_hash
        self._draws = Draws(feed_seed(self._secret, self.name, settings.seed), self.name, self.method.draws)
        if settings.memory != self.accounts.blocks.memory:
            self.accounts, self.recent = Accounts(settings, len(self.roster)), Recent()
        self.accounts.ledger.limit(Limits.of(settings))
        if self.method.vote_rule != "auto":
            self.path_state.vote_rule = self.method.vote_rule
        elif not self.has_rounds():
            self.path_state.vote_rule = "half"
        self.heed_groups()
        self.stored = False

    def _beginning(self) -> Path | None:
        return None if self.method.path is None else self.method.path()

    def has_rounds(self) -> bool:
        """Whether anything was scored that a change of meaning would contradict."""
        return self.accounts.has_rounds()

    def reset(self) -> None:
        """New sums and an empty ledger; experts and revisions go on. Settings must be adopted after it."""
        before = self.path_state
        self.path_state = PathState(before.revision, before.at, base=before.base, lost=before.lost)
        self.heed_groups()
        self.accounts, self.recent = Accounts(self.settings, len(self.roster)), Recent()
        self._path = self._beginning()

    # --- experts ---

    def places(self, experts: Sequence[str]) -> IndexArray:
        """Places of experts in the matrix of sums; unknown ones are taken in."""
        roster = self.roster
        try:
            return roster.places(experts)
        except KeyError:
            for expert in roster.missing(experts):
                roster.take_in(expert)
            self.stored = False
        self.accounts.reserve(len(roster))
        return roster.places(experts)

    def listed(self) -> IndexArray:
        """Places of the experts with questions that count, in the order of their newest ids; without the excluded."""
        return self.roster.listed(self.sums)

    def heed_groups(self) -> None:
        """Let the groups that were found count as teams that share a vote and a weight, if the guard is on."""
        guards = self.settings.guard == "on"
        self.roster.hold_together([group.experts for group in self.path_state.groups] if guards else [])

    def n_seen(self, present: IndexArray) -> int:
        """How many experts have questions that count or are present."""
        return self.roster.n_seen(present, self.sums)

    # --- sums ---

    def take_in(self, question_id: str) -> Entry:
        """The entry of a question, a new one if need be."""
        return self.accounts.take_in(question_id)

    def take_out(self, entry: Entry) -> None:
        """Take a question's contribution out of the sums."""
        if entry.rounds:
            self.accounts.subtract(contribution(entry, self.method), entry)
            self._outcomes += entry.evidence in (0, 1)
            if self._path is not None:
                self._path.take_out(entry)

    def put_in(self, part: Contribution, entry: Entry) -> None:
        """Add a question's contribution to the sums."""
        self.accounts.add(part, entry)
        self.recent.note(entry)
        self._outcomes += entry.evidence in (0, 1)

    def expire(self, now: Milliseconds) -> list[tuple[str, Entry]]:
        """Questions whose time in the ledger is over; what they added to the sums stays."""
        expired = list(self.accounts.expire(now, self.method))
        for _, entry in expired:
            if self._path is not None:
                self._path.settle(entry)
            self.recent.leave(entry)
            self.stored = False
        return expired

    def recomputed(self) -> Blocks:
        """The sums as they follow from the ledger."""
        return self.accounts.recomputed(self.method)

    def audit(self) -> Generator[None, None, bool]:
        """Compare the sums with the ledger; see ``Accounts.audit``."""
        return self.accounts.audit(self.method)

    # --- readings ---

    @property
    def rule(self) -> int:
        """Number of the vote rule in force."""
        return VOTE_RULES.index(self.path_state.vote_rule)

    def read(self) -> Reading:
        """The numbers of the feed as its sums stand: one reading for each change of the sums."""
        path_state = self.path_state
        known = read(self.sums, self._outcomes, path_state.vote_rule, self.settings, self.method, self._reading)
        self._reading = known
        return known

    def trust(self, reading: Reading) -> Trust:
        """The state of trust that follows on the present one, and why."""
        signs = self.signs(reading)
        return next_trust(self.path_state.trust, reading.rates, reading.mean_voters, self.settings, signs)

    @property
    def groups(self) -> list[Group]:
        """Experts who said the same at the last look, without the excluded."""
        if not self.path_state.groups:  # nearly always, and every record asks
            return []
        excluded = {self.roster.place(expert) for expert in self.roster.excluded}
        stay = {place: place for group in self.path_state.groups for place in group.experts if place not in excluded}
        return [left for group in self.path_state.groups if (left := group.without(stay))]

    def signs(self, reading: Reading) -> Signs:
        """What beside the error rates speaks against the feed's numbers. One who follows the crowd alone does not."""
        if not self.path_state.groups:
            return Signs(reading.dependence, reading.ranks)
        named = [NamedGroup([self.shown[place] for place in group.experts], group.kind) for group in self.groups]
        return Signs(reading.dependence, reading.ranks, [group for group in named if len(group.experts) > 1])

    def scoring_inputs(self, experts: IndexArray, question_id: str, boundary: Milliseconds) -> ScoringInputs:
        """What a round of a question whose contribution is taken out is scored under."""
        reading, draws = self.read(), self._draws
        rates, columns = reading.rates, reading.learnt(experts)
        seen = reading.extent(self.n_seen(experts)) if self.method.reads_extent else _NOT_ASKED
        medians = own_medians(reading.histograms(experts)) if reading.rule else None
        return ScoringInputs(
            weights=self.weights(reading, experts, columns, seen),
            mixing=reading.mixing,
            net_share=self.path_state.net_share,
            rule=reading.rule,
            thresholds=medians.thresholds if medians else None,
            steady=medians.steady if medians else None,
            rate_zero=rates.zero,
            rate_one=rates.one,
            min_experts=self.settings.min_experts,
            stretch=self.settings.stretch,
            coin=draws.coin(question_id, boundary),
            ticket=draws.ticket(question_id, boundary),
            chance=draws.of_method(self.roster, experts, question_id, boundary),
            n_experts=seen.experts,
            gaps=seen.gaps,
            teams=self.roster.team_numbers(experts),
            groups=self.roster.group_numbers(experts),
            block=draws.block(question_id),
            shrink=self.path_state.shrink,
            shadows=self.shadows.read(reading.feed, columns, reading.mixing),
        )

    def weights(self, reading: Reading, experts: IndexArray, columns: FloatArray, seen: Extent) -> ExpertWeights:
        """Weights of some experts, whose columns are given."""
        basis = Basis(experts, columns, reading.all_rates, seen, self.settings.mixer, self.method)
        return expert_weights(basis, self._path)

    def frozen_path(self) -> Path | None:
        """The path of the learner as it is now, if it has one: of methods that only a replay computes."""
        return None if self._path is None else self._path.frozen()

    def follow(self, entry: Entry) -> None:
        """A question is in the sums again: what ``learn`` has not heard of, learners with a path take up now."""
        if self._path is not None:
            self._path.put_in(entry, len(self.experts))

    def learn(self, facts: Facts, entry: Entry) -> None:
        """Go on by a round of a question, if the learner is one that remembers what it said and not only the sums."""
        if self._path is not None:
            self._path.learn(facts, entry, self.read().extent(self.n_seen(facts.experts)), self.method)

    # --- stored form ---

    def encode(self) -> bytes:
        """Stored form, without ledger and path-dependent state."""
        meaning = {name: msgspec.to_builtins(getattr(self.settings, name)) for name in MEANING}
        settled = self.accounts.settled.to_bytes(len(self.roster))
        return msgspec.msgpack.encode(StoredFeed(self.roster.stored(), meaning, settled))

    def take_up(self, data: bytes, path_state: PathState, ledger: Mapping[str, Entry | Milliseconds]) -> None:
        """Take up what was stored; nothing may be done with the feed before a ``recount``."""
        stored = decode_feed(data)
        plain = {**msgspec.to_builtins(self.settings), **stored.meaning}
        self.roster = Roster(self.name, self._secret, stored.roster)
        self.adopt(msgspec.convert(plain, FeedSettings), self.settings_hash)
        self.path_state = path_state
        self.heed_groups()
        settled = Blocks.from_bytes(stored.settled, len(self.roster), self.settings.memory)
        self.accounts.reserve(len(self.roster))
        self.accounts.restore(settled, ledger, path_state.ordinals)
        self.recent = Recent(self.entries.values(), path_state.ordinals)
        self.stored = not self.roster.erased  # else its owner may have died before he had scrubbed it

    def begin_with(self, sums: Blocks) -> None:
        """Sums of the ledger that was taken up, in place of a ``recount``."""
        self.accounts.blocks = sums

    def recount(self) -> Iterator[None]:
        """Compute the sums from the ledger, a bounded piece an item."""
        yield from self.accounts.recount(self.method)


decode_feed = msgspec.msgpack.Decoder(StoredFeed).decode


def with_meaning(settings: FeedSettings, meaning: Mapping[str, object]) -> FeedSettings:
    """Settings whose fields that change meaning are replaced."""
    method = msgspec.convert(meaning.get("method", {}), MethodSettings)
    return msgspec.structs.replace(settings, **{**meaning, "method": method})
