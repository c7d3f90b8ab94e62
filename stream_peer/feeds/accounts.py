"""A feed's ledger and its sums, kept in step: sums = settled + the contributions of all entries, bit for bit.

An audit builds the sums from the ledger again while both go on changing: an entry that it has looked at takes its
changes to the audit's sums as well; others come with theirs when it gets to them.
"""

from collections.abc import Generator, Iterator, Mapping
from itertools import islice

from stream_peer.events.times import Milliseconds
from stream_peer.feeds.blocks import Blocks
from stream_peer.feeds.contributions import contribution
from stream_peer.feeds.ledger import Entry, Ledger, Limits
from stream_peer.feeds.methods.method import Method
from stream_peer.feeds.sums import Contribution, IndexArray
from stream_peer.settings.feed.model import FeedSettings

_AUDITED_AT_ONCE = 32


class Accounts:
    """Ledger and sums of a feed.

    Attributes
    ----------
    ledger : Ledger
    settled : Blocks
        What entries have added that are in the ledger no more.
    blocks : Blocks
        What all questions have added.
    """

    def __init__(self, settings: FeedSettings, n_experts: int = 0) -> None:
        self.ledger = Ledger(Limits.of(settings))
        self.settled = Blocks(settings.memory)
        self.blocks = Blocks(settings.memory)
        self.reserve(n_experts)
        self._audited: Blocks | None = None
        self._audit = 0

    def reserve(self, n_experts: int) -> None:
        """Have room for at least that many experts."""
        self.blocks.reserve(n_experts)

    def has_rounds(self) -> bool:
        """Whether anything was scored."""
        return any(entry.rounds for entry in self.ledger.entries.values()) or not self.settled.is_zero()

    def take_in(self, question_id: str) -> Entry:
        """The entry of a question, a new one if need be."""
        entry = self.ledger.take_in(question_id)
        self.blocks.reach(entry.ordinal)
        self.settled.reach(entry.ordinal)
        if self._audited is not None:
            self._audited.reach(entry.ordinal)
        return entry

    def add(self, part: Contribution, entry: Entry) -> None:
        """Put an entry's contribution in."""
        self.blocks.add(part, entry.ordinal)
        if self._audited is not None and entry.audit == self._audit:
            self._audited.reserve(self.blocks.n_experts)
            self._audited.add(part, entry.ordinal)

    def subtract(self, part: Contribution, entry: Entry) -> None:
        """Take an entry's contribution out."""
        self.blocks.subtract(part, entry.ordinal)
        if self._audited is not None and entry.audit == self._audit:
            self._audited.subtract(part, entry.ordinal)

    def expire(self, now: Milliseconds, method: Method) -> Iterator[tuple[str, Entry]]:
        """Entries that leave the ledger: what they added to the sums stays for good."""
        for question_id, entry in self.ledger.expire(now):
            part = contribution(entry, method)
            self.settled.reserve(self.blocks.n_experts)
            self.settled.add(part, entry.ordinal)
            self._look_at(entry, part)
            yield question_id, entry

    def restore(self, settled: Blocks, ledger: Mapping[str, Entry | Milliseconds], ordinals: int) -> None:
        """Take up what was stored; the sums must be ``recomputed``."""
        entries = {name: entry for name, entry in ledger.items() if isinstance(entry, Entry)}
        expired = {name: when for name, when in ledger.items() if not isinstance(when, Entry)}
        self.ledger.restore(entries, expired, ordinals)
        self.settled = settled
        self.settled.reach(max(ordinals - 1, 0))

    def keep_evaluations(self, before: "Accounts", places: IndexArray) -> None:
        """After a rebuild: how scored forecasts did of questions that have left the ledger stays as it was known.

        ``places``: by the places of experts before it, those that they have now, -1 where they have none.
        """
        for operation, evaluations in (
            (Blocks.subtract, self.settled.evaluations()),
            (Blocks.add, before.settled.evaluations(places)),
        ):
            for ordinal, part in evaluations:
                operation(self.settled, part, ordinal)
                operation(self.blocks, part, ordinal)

    def recomputed(self, method: Method) -> Blocks:
        """The sums as they follow from the ledger."""
        blocks = self.settled.copy()
        blocks.reserve(self.blocks.n_experts)
        for entry in self.ledger.entries.values():
            if entry.rounds:
                blocks.add(contribution(entry, method), entry.ordinal)
        return blocks

    def recount(self, method: Method) -> Iterator[None]:
        """Compute the sums from the ledger, some entries an item. Nothing may change before it has ended."""
        blocks = self.settled.copy()
        blocks.reserve(self.blocks.n_experts)
        waiting = iter(self.ledger.entries.values())
        while some := list(islice(waiting, _AUDITED_AT_ONCE)):
            for entry in some:
                if entry.rounds:
                    blocks.add(contribution(entry, method), entry.ordinal)
            yield
        self.blocks = blocks

    def audit(self, method: Method) -> Generator[None, None, bool]:
        """Compare sums and ledger, some entries an item; both may change in between. In the end: whether they agree."""
        self._audit += 1
        audited = self._audited = self.settled.copy()
        waiting = iter(list(self.ledger.entries))
        while some := list(islice(waiting, _AUDITED_AT_ONCE)):
            for entry in map(self.ledger.entries.get, some):
                if entry is not None:
                    self._look_at(entry, contribution(entry, method))
            yield
        came_meanwhile = [entry for entry in self.ledger.entries.values() if entry.audit != self._audit]
        for entry in came_meanwhile:
            self._look_at(entry, contribution(entry, method))
        self._audited = None
        return audited.equals(self.blocks)

    def _look_at(self, entry: Entry, part: Contribution) -> None:
        if self._audited is not None and entry.audit != self._audit:
            entry.audit = self._audit
            self._audited.reserve(self.blocks.n_experts)
            self._audited.add(part, entry.ordinal)
