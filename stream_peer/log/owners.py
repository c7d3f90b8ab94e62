"""Which worker owns a feed: HTTP asks it, the assignment of partitions updates it."""

from typing import NamedTuple, Protocol, TypeAlias

from stream_peer.events.outputs import MixedForecast, MixedGroup, ReferenceAnswer


class QuestionRecords(NamedTuple):
    """The newest outputs of a question, as of the last record that changed its feed."""

    reference_answer: ReferenceAnswer
    mixed_forecast: MixedForecast


class Home(Protocol):
    """The stage that a feed is folded in."""

    def has_feed(self, feed: str) -> bool:
        """Whether there is such a feed."""

    def question_records(self, feed: str, question_id: str) -> QuestionRecords | None:
        """The newest outputs of a question; None if no round of it was scored, or it has left the ledger."""

    def groups(self, feed: str) -> list[str]:
        """Groups of questions that the feed publishes, by name."""

    def group_record(self, feed: str, group: str) -> MixedGroup | None:
        """The newest record of a group; None if there is none, or a part of it has left the ledger or the feed."""


class Here(NamedTuple):
    """The asked worker owns the feed."""

    home: Home


class Elsewhere(NamedTuple):
    """Another member of the group owns the feed; ``url`` is the address that it advertises."""

    url: str


class Unknown(NamedTuple):
    """The owner is not known at this moment, and why."""

    reason: str


Owner: TypeAlias = Here | Elsewhere | Unknown


class Owners(Protocol):
    """Knows which member of the group owns which partition."""

    async def of(self, feed: str) -> Owner:
        """The owner of a feed: of the partition of the feed-log that it belongs to."""
