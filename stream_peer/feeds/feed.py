"""One feed as data: its experts, its ledger, its sums, and what depends on the path of its log.

The sums are what the questions of the ledger and those before them added; the methods of a feed keep both in step. What
is read off a feed is in ``reading``.
"""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import msgspec

from stream_peer.events.feed_log import NamedBlock
from stream_peer.events.outputs import TrustState
from stream_peer.events.times import Milliseconds
from stream_peer.feeds.alarms.drift import Drift
from stream_peer.feeds.alarms.groups import Group
from stream_peer.feeds.alarms.recent import Recent
from stream_peer.feeds.buckets import Buckets
from stream_peer.feeds.columns import VoteRule
from stream_peer.feeds.contributions import contribution
from stream_peer.feeds.draws import Draws
from stream_peer.feeds.ledger import Entry, Ledger, Limits
from stream_peer.feeds.methods.method import MethodOf, Path
from stream_peer.feeds.methods.served import served_method
from stream_peer.feeds.reading.reading import Reading
from stream_peer.feeds.reading.trust import UNTRIED
from stream_peer.feeds.reading.weights import PeerTrust
from stream_peer.feeds.roster import Roster, StoredRoster
from stream_peer.feeds.shadow_mixers import Shadows
from stream_peer.feeds.sums import Contribution
from stream_peer.log.draws import feed_seed
from stream_peer.numerics.arguments import IndexArray
from stream_peer.settings.feed.model import FeedSettings, MethodSettings, with_stored_meaning

_AUDITED_AT_ONCE = 32


class Imported(msgspec.Struct, frozen=True, array_like=True):
    """An earlier release moved the feed here with its state, see ``former_imports``. ``id``: that of the import."""

    id: str


class Ended(NamedTuple):
    """What is kept of a feed that was deleted: how far revisions were ahead of offsets, and the highest."""

    base: int = 0
    revision: int = -1


# A new field needs a default: records of imported feeds, which the feed-log keeps for ever, have none (former_imports).
# It also needs another SCHEMA in store, so that feeds are rebuilt with it, unless the versions of the method that
# stored the state leave it at its default: then feeds are rebuilt by the change of version.
class PathState(msgspec.Struct, array_like=True):
    """What depends on the path and not only on the sums. It changes the reading, never what was stored.

    ``revision`` and ``at``: of the last record that changed the feed; ``outcomes``: how often an outcome was applied
    or taken back; ``vote_rule``: the one in force; ``switches``: how often it changed; ``base``: what revisions are
    ahead of the offsets of the feed-log; ``lost``: records of it that were gone before they were read; ``ordinals``:
    how many questions were taken in; ``imported``: its first rounds were scored elsewhere.
    ``checked``: how many had been taken in when the last ones were looked through, see ``alarm_checks``;
    ``groups``: experts that say the same. ``shrink``: share of uniform weights in the published selection
    weights, see ``trust``. ``drift``: what was found to have changed when the last ones were looked through.
    ``acknowledged``: the state of trust that an operator knows of; None as soon as the state is another.
    ``peer_prior``, ``peer_stretch``: how much the agreement of experts counts, see ``PeerTrust``.
    ``blocks``: experts who say the same, as the log names them, held together until the feed has taken in
    ``held_until`` questions; ``named_at``: how many it had when it named blocks last; ``is_naming``: that record has
    not come back from the log yet. ``has_groups``: some of its questions are parts of groups, so they depend on each
    other.
    """

    revision: int = -1
    at: Milliseconds = 0
    trust: TrustState = UNTRIED
    net_share: float = 0.0
    outcomes: int = 0
    vote_rule: VoteRule = "half"
    switches: int = 0
    base: int = 0
    lost: int = 0
    ordinals: int = 0
    imported: Imported | None = None
    checked: int = 0
    groups: list[Group] = []
    shrink: float = 0.0
    drift: Drift = Drift()
    acknowledged: TrustState | None = None
    peer_prior: float = 0.0
    peer_stretch: float = 0.0
    blocks: list[Group] = []
    held_until: int = 0
    named_at: int = 0
    is_naming: bool = False
    has_groups: bool = False

    @property
    def peer_trust(self) -> PeerTrust:
        """How much the agreement of experts counts."""
        return PeerTrust(self.peer_prior, self.peer_stretch)

    def go_on_from(self, before: "PathState") -> None:
        """Say what comes under the revisions of ``before``, which the same records made another way."""
        self.revision, self.at, self.base = before.revision, before.at, before.base
        self.lost, self.imported = before.lost, before.imported
        self.named_at, self.is_naming = max(before.named_at, self.held_until), before.is_naming
        self.trusted(self.trust, before.acknowledged)

    def trusted(self, trust: TrustState, acknowledged: TrustState | None) -> None:
        """Enter a state of trust; what was acknowledged of another state ends."""
        self.trust = trust
        self.acknowledged = trust if acknowledged == trust else None


class StoredFeed(msgspec.Struct, array_like=True):
    """What of a feed is stored beside its ledger and its path-dependent state."""

    roster: StoredRoster
    meaning: dict[str, object]
    settled: bytes


class Feed:
    """One feed. ``settings`` are those in force, ``settings_hash`` names their document.

    Attributes
    ----------
    roster : Roster
        Who its experts are.
    ledger : Ledger
        Its questions that can still be corrected.
    buckets : Buckets
        What all questions have added.
    settled : Buckets
        What questions have added that are in the ledger no more.
    path_state : PathState
        What depends on the path of its log.
    learner_path : Path, optional
        Of learners that remember what they said, and not only the sums.
    recent : Recent
        The votes of its last questions.
    shadows, draws
        What its settings ask for besides.
    outcomes : int
        How often an outcome moved the sums.
    reading : Reading, optional
        The last one that was made.
    pieces, stored : int, bool
        Of how many records its stored form is, and whether that is what it is now.
    """

    def __init__(
        self, name: str, settings: FeedSettings, settings_hash: str, secret: bytes, method_of: MethodOf = served_method
    ) -> None:
        self.name = name
        self.roster = Roster(name, secret)
        self.path_state = PathState()
        self.pieces = 0
        self.stored = False
        self.method_of = method_of
        self.reading: Reading | None = None
        self.learner_path: Path | None = None
        self.outcomes = 0
        self.settings, self.method = settings, method_of(settings)
        self._secret = secret
        self._audited: Buckets | None = None
        self._audit = 0
        self._begin()
        self.adopt(settings, settings_hash)

    def adopt(self, settings: FeedSettings, settings_hash: str) -> None:
        """Settings from here on. Those that change meaning may differ only while nothing was scored."""
        chooses_anew = settings.meaning() != self.settings.meaning()
        self.settings, self.method = settings, self.method_of(settings)
        if settings.memory != self.buckets.memory:
            self._begin()
        elif chooses_anew:
            self.learner_path = self.method.path() if self.method.path else None
        self.shadows = Shadows(settings, self.method)
        self.settings_hash = settings_hash
        self.draws = Draws(feed_seed(self._secret, self.name, settings.seed), self.name)
        self.ledger.limit(Limits.of(settings))
        if self.method.vote_rule != "auto":
            self.path_state.vote_rule = self.method.vote_rule
        elif not self.has_rounds():
            self.path_state.vote_rule = "half"
        self.hold_groups()
        self.stored = False

    def _begin(self) -> None:
        """Empty ledger and sums, under the settings."""
        self.ledger = Ledger(Limits.of(self.settings))
        self.settled, self.buckets = Buckets(self.settings.memory), Buckets(self.settings.memory)
        self.buckets.reserve(len(self.roster))
        self.recent = Recent()
        self.learner_path = self.method.path() if self.method.path else None
        self._audited = None

    def has_rounds(self) -> bool:
        """Whether anything was scored that a change of meaning would contradict."""
        return any(entry.rounds for entry in self.ledger.entries.values()) or not self.settled.is_zero()

    def is_bare(self) -> bool:
        """Whether no round counts in it, and nothing else is kept of it: no import, no loss, no change of an expert."""
        path_state, roster = self.path_state, self.roster
        kept = roster.teams, roster.excluded, roster.erased, roster.names.given, self.ledger.expired
        is_plain = path_state.imported is None and not path_state.lost and not any(kept)
        return is_plain and self.buckets.is_zero()

    def reset(self) -> None:
        """New sums and an empty ledger; experts and revisions go on. Settings must be adopted after it."""
        before = self.path_state
        self.path_state = PathState(before.revision, before.at, base=before.base, lost=before.lost)
        self.hold_groups()
        self._begin()

    def hold_groups(self) -> None:
        """Let the groups that were found count as teams that share a vote and a weight, if the guard is on."""
        groups = self.path_state.groups if self.method.guards else []
        weightless = [group for group in groups if group.kind == "follower"] if self.method.finds_repeaters else []
        self.roster.hold_together(
            [group.experts for group in groups if group not in weightless],
            [expert for group in weightless for expert in group.experts],
        )

    # --- blocks ---

    @property
    def names_blocks(self) -> bool:
        """Whether blocks are named in the log. Not those of an imported feed, whose first rounds are in another log."""
        return self.method.finds_blocks and self.method.guards and self.path_state.imported is None

    def as_named(self, groups: Iterable[Group]) -> list[NamedBlock]:
        """Groups as the log names them, without erased experts."""
        roster, found = self.roster, list[NamedBlock]()
        for group in groups:
            ids = [roster.experts[place] for place in group.experts]
            left = [expert for expert in ids if not roster.is_erased(expert)]
            if len(left) > 1:
                agreement, expected, questions = group.agreement, group.expected, group.questions
                found.append(NamedBlock(experts=left, agreement=agreement, expected=expected, questions=questions))
        return found

    def hold_blocks(self, blocks: Iterable[NamedBlock], until: int) -> bool:
        """Take up blocks of the log, without unknown experts. Returns whether they are others than before."""
        found = list[Group]()
        for block in blocks:
            places = sorted(place for expert in block.experts if (place := self.roster.place(expert)) is not None)
            if len(places) > 1:
                found.append(Group(places, "copies", block.agreement, block.expected, block.questions))
        path_state = self.path_state
        if not found or found == path_state.blocks:
            return False
        path_state.blocks, path_state.held_until = found, until
        path_state.named_at = max(path_state.named_at, until)
        return True

    def begin_with_blocks(self, blocks: Sequence[NamedBlock], until: int) -> None:
        """In a rebuild: hold together from the first question on whom the log names later."""
        self.places([expert for block in blocks for expert in block.experts])
        if self.method.finds_blocks and self.hold_blocks(blocks, until):
            self.path_state.groups = self.path_state.blocks
            self.hold_groups()

    # --- questions ---

    def places(self, experts: Sequence[str]) -> IndexArray:
        """Places of experts in the matrix of sums; unknown ones are taken in."""
        roster = self.roster
        try:
            return roster.places(experts)
        except KeyError:
            for expert in roster.missing(experts):
                roster.take_in(expert)
            self.stored = False
        self.buckets.reserve(len(roster))
        return roster.places(experts)

    def take_in(self, question_id: str) -> Entry:
        """The entry of a question, a new one if need be."""
        entry = self.ledger.entries.get(question_id)
        if entry is None:
            entry = self.ledger.begin(question_id)
            self.path_state.has_groups |= bool(self.ledger.groups)
            for buckets in (self.buckets, self.settled, self._audited) if self.settings.memory else ():
                if buckets is not None:
                    buckets.reach(entry.ordinal)
        return entry

    def take_out(self, entry: Entry) -> None:
        """Take a question's contribution out of the sums, since its entry is about to change."""
        entry.hold()
        if not entry.rounds:
            return
        entry.keep_facts()
        part = contribution(entry, self.method)
        self.buckets.subtract(part, entry.ordinal)
        if self._audited is not None and entry.audit == self._audit:
            self._audited.subtract(part, entry.ordinal)
        self.outcomes += entry.evidence in (0, 1)
        if self.learner_path is not None:
            self.learner_path.take_out(entry)

    def put_in(self, entry: Entry) -> None:
        """Add a question's contribution to the sums."""
        part = contribution(entry, self.method)
        self.buckets.add(part, entry.ordinal)
        if self._audited is not None and entry.audit == self._audit:
            self._audited.reserve(self.buckets.n_experts)
            self._audited.add(part, entry.ordinal)
        self.recent.note(entry, part)
        self.outcomes += entry.evidence in (0, 1)

    def expire(self, now: Milliseconds) -> list[tuple[str, Entry]]:
        """Questions whose time in the ledger is over; what they added to the sums stays."""
        expired = list(self.ledger.expire(now))
        for _, entry in expired:
            part = contribution(entry, self.method)
            self.settled.reserve(self.buckets.n_experts)
            self.settled.add(part, entry.ordinal)
            self._look_at(entry, part)
            if self.learner_path is not None:
                self.learner_path.settle(entry)
            self.recent.leave(entry)
            self.stored = False
        return expired

    def keep_evaluations(self, before: "Feed", places: IndexArray) -> None:
        """After a rebuild: how scored forecasts did of questions that have left the ledger stays as it was known.

        ``places``: by the places of experts before it, those that they have now, -1 where they have none.
        """
        for operation, evaluations in (
            (Buckets.subtract, self.settled.evaluations()),
            (Buckets.add, before.settled.evaluations(places)),
        ):
            for ordinal, part in evaluations:
                operation(self.settled, part, ordinal)
                operation(self.buckets, part, ordinal)

    # --- the sums as they follow from the ledger ---

    def recomputed(self) -> Buckets:
        """The sums as they follow from the ledger."""
        buckets = self.settled.copy()
        buckets.reserve(self.buckets.n_experts)
        for entry in self.ledger.entries.values():
            if entry.rounds:
                buckets.add(contribution(entry, self.method), entry.ordinal)
        return buckets

    def recount(self) -> Iterator[None]:
        """Compute the sums from the ledger, some entries an item. Nothing may change before it has ended."""
        buckets = self.settled.copy()
        buckets.reserve(self.buckets.n_experts)
        waiting = iter(self.ledger.entries.values())
        while some := list(islice(waiting, _AUDITED_AT_ONCE)):
            for entry in some:
                if entry.rounds:
                    part = contribution(entry, self.method)
                    buckets.add(part, entry.ordinal)
                    self.recent.note(entry, part)
            yield
        self.buckets = buckets

    def audit(self) -> Generator[None, None, bool]:
        """Compare sums and ledger, some entries an item; both may change in between. In the end: whether they agree."""
        self._audit += 1
        audited = self._audited = self.settled.copy()
        waiting = iter(list(self.ledger.entries))
        while some := list(islice(waiting, _AUDITED_AT_ONCE)):
            for entry in map(self.ledger.entries.get, some):
                if entry is not None:
                    self._look_at(entry, contribution(entry, self.method))
            yield
        came_meanwhile = [entry for entry in self.ledger.entries.values() if entry.audit != self._audit]
        for entry in came_meanwhile:
            self._look_at(entry, contribution(entry, self.method))
        if self._audited is not audited:
            return True  # the feed was reset in between: there is nothing left to compare
        self._audited = None
        return audited.equals(self.buckets)

    def _look_at(self, entry: Entry, part: Contribution) -> None:
        if self._audited is not None and entry.audit != self._audit:
            entry.audit = self._audit
            self._audited.reserve(self.buckets.n_experts)
            self._audited.add(part, entry.ordinal)

    # --- stored form ---

    def encode(self) -> bytes:
        """Stored form, without ledger and path-dependent state."""
        settled = self.settled.to_bytes(len(self.roster))
        return msgspec.msgpack.encode(StoredFeed(self.roster.stored(), self.settings.stored_meaning(), settled))

    def take_up(self, data: bytes, path_state: PathState, ledger: Mapping[str, Entry | Milliseconds]) -> None:
        """Load a stored feed. Call ``recount`` before anything else."""
        stored = decode_feed(data)
        self.roster = Roster(self.name, self._secret, stored.roster)
        self.adopt(with_stored_meaning(self.settings, stored.meaning), self.settings_hash)
        self.path_state = path_state
        self.hold_groups()
        self.settled = Buckets.from_bytes(stored.settled, len(self.roster), self.settings.memory)
        self.settled.reach(max(path_state.ordinals - 1, 0))
        self.buckets.reserve(len(self.roster))
        self.ledger.restore(ledger, path_state.ordinals)
        self.recent = Recent(path_state.ordinals)
        self.stored = not self.roster.erased  # else its owner may have died before he had scrubbed it


decode_feed = msgspec.msgpack.Decoder(StoredFeed).decode


def with_meaning(settings: FeedSettings, meaning: Mapping[str, object]) -> FeedSettings:
    """Settings whose fields that change meaning are replaced."""
    method = msgspec.convert(meaning.get("method", {}), MethodSettings)
    return msgspec.structs.replace(settings, **{**meaning, "method": method})
