"""What the question stage and the control stage tell the feed stage: the feed-log, source of truth for ever.

Feeds tell each other one thing: that a question which moved was handed over.

Every record names its ``src``, the input record that caused it, so that a repeat can be recognised. Records are
JSON, keyed by feed; moments are milliseconds since 1970 UTC.
"""

from operator import lt
from typing import Annotated, Any, Literal

import msgspec

from stream_peer.errors import RejectedEvent
from stream_peer.events.rejections import Reason
from stream_peer.events.times import Milliseconds

Verdict = Literal[0, 1, "annulled", "open"]

Place = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""A partition, offset or count, as Kafka numbers them."""

Stated = Annotated[float, msgspec.Meta(extra_json_schema={"minimum": 0, "maximum": 1})]
"""A probability. ``read_feed_log`` checks a round's at once: the decoder would do it one by one."""


class Source(msgspec.Struct, frozen=True, array_like=True):
    """The input record that caused a record: where it stands, and which of its consequences this one is.

    ``topic`` is the logical name; of a record that was moved here ``import/`` and the id of the import, and ``offset``
    is its line in the file. ``generation`` tells the topic from one that was deleted under the same name, 0 if
    that is not known; ``index`` numbers the records caused by one input record, from 0. Sources of one (topic,
    partition) and generation compare by (offset, index).
    """

    topic: str
    partition: Place
    generation: Place
    offset: Place
    index: Place

    @property
    def place(self) -> tuple[str, int]:
        """The source partition."""
        return self.topic, self.partition

    @property
    def position(self) -> tuple[int, int]:
        """Grows along the source partition."""
        return self.offset, self.index


MOVED = "import/"
"""Begins the topic in sources of records that ``stream-peer import`` wrote; the import's id follows."""


class FeedLogRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """What all records of the feed-log have.

    ``deleted_at``: of the deletion of the feed that is the last one which the writing partition of the question stage
    has read: its moment; of a deletion, its own. 0: none.
    """

    src: Source
    feed: str
    deleted_at: Milliseconds = 0


class Round(FeedLogRecord, frozen=True, kw_only=True, tag="round"):
    """A question's forecasts as they stood at ``boundary``. Replaces what an earlier round of that boundary said.

    ``experts`` and ``probabilities`` are parallel, sorted by expert; a round over 900 KB is split by expert into
    ``parts`` records, each but the last with the same fields. ``after_outcome``: an outcome had been told before, be it
    retracted since, in this feed or in one that the question came from.
    """

    question_id: str
    boundary: Milliseconds
    final: bool = False
    after_outcome: bool = False
    weight: float = 1.0
    experts: list[str]
    probabilities: list[Stated]
    part: int = 0
    parts: int = 1


class RoundWithdrawn(FeedLogRecord, frozen=True, kw_only=True, tag="round-withdrawn"):
    """A boundary that was emitted does not exist any more."""

    question_id: str
    boundary: Milliseconds


class OutcomeRevealed(FeedLogRecord, frozen=True, kw_only=True, tag="outcome"):
    """What is known of a question's outcome: 0, 1, "annulled", or "open" (a resolution was retracted)."""

    question_id: str
    outcome: Verdict


class ProvisionalOutcome(FeedLogRecord, frozen=True, kw_only=True, tag="provisional-outcome"):
    """What a provisional resolution says, as long as there is no other: 0, 1, "annulled", or "open" (none any more).

    It is shown, and teaches nothing.
    """

    question_id: str
    outcome: Verdict


class GroupChanged(FeedLogRecord, frozen=True, kw_only=True, tag="group"):
    """Rounds or outcomes of a group's parts changed: all that this source causes of them stands before this record.

    So the group is published once for all of them. ``options``: how many the group has, with forecasts or without.
    """

    group_id: str
    options: Place = 0


class QuestionMoved(FeedLogRecord, frozen=True, kw_only=True, tag="moved"):
    """A question leaves the feed and goes ``to`` another one: the ``move``-th time that it moves."""

    question_id: str
    move: Place
    to: str


class QuestionArrived(FeedLogRecord, frozen=True, kw_only=True, tag="arrived"):
    """A question came to the feed ``from`` another one, which goes on to publish it until it hands it over."""

    question_id: str
    move: Place
    origin: str = msgspec.field(name="from")


class HandedOver(FeedLogRecord, frozen=True, kw_only=True, tag="handed-over"):
    """The feed that a question left has published its last of it: this feed publishes it from here on."""

    question_id: str
    move: Place


class NamedBlock(msgspec.Struct, frozen=True, kw_only=True):
    """Experts who say the same, by first ids. The numbers are those of a group in ``weights``."""

    experts: list[str]
    agreement: float
    expected: float
    questions: Place


class BlockNamed(FeedLogRecord, frozen=True, kw_only=True, tag="block-named"):
    """Experts of the feed were found to say the same when it had so many ``questions``.

    The feed is rebuilt, and holds each block together from its first question to that one. A feed writes the record
    itself, at most once in 200 questions; each holds all blocks of its moment.
    """

    questions: Place
    blocks: list[NamedBlock]


class ExpertChanged(FeedLogRecord, frozen=True, kw_only=True, tag="expert"):
    """From here on: the expert's team, whether it is excluded, what it is called, whether it asked to be forgotten.

    What is left out stays as it is. Rounds go on to name a renamed expert by its first id. In a feed that moved, an
    expert who was forgotten before is named by ``digest`` alone, and ``expert_id`` is empty.
    """

    expert_id: str
    team: str | msgspec.UnsetType | None = msgspec.UNSET
    excluded: bool | msgspec.UnsetType = msgspec.UNSET
    rename: str | None = None
    forget: bool = False
    digest: bytes | None = None


class FeedChanged(FeedLogRecord, frozen=True, kw_only=True, tag="feed"):
    """New sums from here on (``reset``), or the end of the feed (``delete``); revisions go on."""

    reset: bool = False
    delete: bool = False


class FeedImported(FeedLogRecord, frozen=True, kw_only=True, tag="feed-import"):
    """A part of the state of a feed that an earlier release moved here; with ``partition`` one of its questions.

    This release only reads it: a feed moves by moving its log.
    """

    import_id: str
    part: Place
    parts: Place
    digest: str
    data: bytes
    partition: Place | None = None
    partitions: Place | None = None


class SettingsChanged(FeedLogRecord, frozen=True, kw_only=True, tag="settings"):
    """The feed settings document (``defaults`` and ``feeds``) from here on; ``feed`` is empty: it is for all."""

    feed: str = ""
    document: dict[str, Any]
    hash: str


AnyFeedLogRecord = (
    Round
    | RoundWithdrawn
    | OutcomeRevealed
    | ProvisionalOutcome
    | GroupChanged
    | QuestionMoved
    | QuestionArrived
    | HandedOver
    | BlockNamed
    | ExpertChanged
    | FeedChanged
    | FeedImported
    | SettingsChanged
)


def shared_fields(event: msgspec.Struct, kind: type[msgspec.Struct]) -> dict[str, Any]:
    """What an event says that one of another kind says as well, by field: for handing it on as that."""
    return {name: getattr(event, name) for name in kind.__struct_fields__ if name in event.__struct_fields__}


decode_feed_log = msgspec.json.Decoder(AnyFeedLogRecord).decode
encode_feed_log = msgspec.json.Encoder().encode


def read_feed_log(value: bytes | None) -> AnyFeedLogRecord:
    """Decode a record that may be anything.

    Raises
    ------
    RejectedEvent
        If it is none of ours: something else wrote to the feed-log.
    """
    if not value:
        raise RejectedEvent(Reason.EMPTY, message="the feed-log holds no empty records of ours")
    try:
        event: AnyFeedLogRecord = decode_feed_log(value)
    except msgspec.ValidationError as error:
        raise RejectedEvent(Reason.WRONG_TYPE, message=str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RejectedEvent(Reason.NOT_JSON, message=str(error)) from error
    if isinstance(event, Round):
        _check(event)
    return event


def _check(event: Round) -> None:
    experts, probabilities = event.experts, event.probabilities
    if not experts or len(experts) != len(probabilities) or not all(map(lt, experts, experts[1:])):
        raise RejectedEvent(Reason.WRONG_TYPE, field="experts", message="must be sorted, each with a probability")
    if not 0.0 <= min(probabilities) <= max(probabilities) <= 1.0:
        raise RejectedEvent(Reason.PROBABILITY_RANGE, field="probabilities", message="must be within 0..1")
