"""Feeds that an earlier release moved here: their state lies in the feed-log, in parts of ``feed-import`` records.

This release moves the log of a feed, so it never writes such records. It reads them because the feed-log is for ever:
whatever is folded from it must begin with the same feed. The facts of these feeds were computed elsewhere, so nothing
here can score them again: settings that change their meaning are refused, and an expert who is forgotten is taken out
of them, while what was said of others stays.
"""

import struct
import zlib
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from stream_peer.errors import SettingsError
from stream_peer.events.feed_log import FeedImported, Place, Round, Verdict
from stream_peer.events.incoming import QuestionWeight
from stream_peer.events.times import Milliseconds
from stream_peer.feeds.buckets import Buckets
from stream_peer.feeds.contributions import contribution
from stream_peer.feeds.facts import unpack
from stream_peer.feeds.feed import Feed, Imported, PathState, StoredFeed
from stream_peer.feeds.feeds import Feeds
from stream_peer.feeds.ledger import Entry
from stream_peer.feeds.roster import Roster, StoredRoster
from stream_peer.feeds.scored import facts_at_places, position_in, scored_with_places
from stream_peer.log.ids import Given
from stream_peer.log.stage import Record
from stream_peer.log.transfers import import_refusal
from stream_peer.numerics.arguments import IndexArray
from stream_peer.settings.feed.model import with_stored_meaning

SCHEMA = 7
"""Of the state in them. There has been no release with another one."""

Bits = npt.NDArray[np.bool_]
Ledger = dict[str, Entry | Milliseconds]


class FormerHeader(msgspec.Struct, frozen=True, kw_only=True, tag="header", tag_field="kind"):
    """The first line. ``next_revision``: the one that was to come next where the feed comes from."""

    feed: str
    next_revision: int
    forgotten: list[bytes]
    names: Given = {}
    feed_schema: int


class FeedLine(msgspec.Struct, frozen=True, kw_only=True, tag="feed", tag_field="kind"):
    """The feed without its ledger. Experts are numbered by their places, from 0; ``settled`` are sums, packed."""

    experts: list[str]
    teams: dict[str, str]
    excluded: list[str]
    meaning: dict[str, object]
    settled: bytes
    path_state: PathState = msgspec.field(name="standing")  # as earlier releases wrote it


class EntryLine(msgspec.Struct, frozen=True, kw_only=True, tag="entry", tag_field="kind"):
    """A question in the ledger; ``rounds`` are its packed facts, ``first_final`` those of its scored forecast."""

    question_id: str
    weight: QuestionWeight
    evidence: Verdict
    touched: Milliseconds
    ordinal: Place
    rounds: list[bytes]
    first_final: bytes | None
    revision: int
    provisional: Verdict = "open"


class ExpiredLine(msgspec.Struct, frozen=True, kw_only=True, tag="expired", tag_field="kind"):
    """A question that has left the ledger."""

    question_id: str
    at: Milliseconds


class WaitingLine(msgspec.Struct, frozen=True, kw_only=True, tag="waiting", tag_field="kind"):
    """The parts of a round that are there so far."""

    round: Round


class FormerEnd(msgspec.Struct, frozen=True, kw_only=True, tag="end", tag_field="kind"):
    """How many lines come before this one."""

    lines: int


Line = FormerHeader | FeedLine | EntryLine | ExpiredLine | WaitingLine | FormerEnd

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.json.Decoder(Line).decode
_UNFIT = (
    *(ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError),
    *(struct.error, zlib.error, msgspec.MsgspecError, SettingsError),
)
"""What numbers that nobody has written can lead to."""


def fresh(feeds: Feeds, name: str) -> Feed:
    """The feed, if it knows no questions.

    Raises
    ------
    RejectedEvent
        If it does.
    """
    feed = feeds.feed(name)
    if feed.has_rounds() or feed.ledger.entries:
        raise import_refusal("the feed knows questions already; reset or delete it before")
    return feed


def take_up(feeds: Feeds, event: FeedImported, whole: bytes, record: Record) -> list[Round]:
    """Let the feed begin with what all parts hold together. Returns rounds of which parts are missing.

    Raises
    ------
    RejectedEvent
        If it cannot be read, or the feed knows questions already; then nothing has changed.
    """
    feed = fresh(feeds, event.feed)
    try:
        header, line, *lines = _lines(whole)
        if not isinstance(header, FormerHeader) or not isinstance(line, FeedLine):
            raise import_refusal("the feed itself is missing")
        _check_header(header, feed.name)
        stay = _who_stays(feed.roster, line.experts, header.names)
        line, ledger = _feed_without(line, stay), _ledger(lines, stay)
        _check_sums(feed, line, ledger)
    except _UNFIT as error:
        raise import_refusal(f"it holds what no release has written: {error}") from None
    stored = _stored(feed, header, line)
    feeds.store.leave_all(feed)
    imported = Imported(event.import_id)
    feed.take_up(stored, _standing(feeds, feed, line, header.next_revision, imported, record), ledger)
    for _ in feed.recount():
        pass
    feeds.store.touch_all(feed)
    feeds.publisher.changed(feed)
    return [found.round for found in lines if isinstance(found, WaitingLine)]


def _lines(whole: bytes) -> list[Line]:
    *lines, end = map(_decode, zlib.decompress(whole).splitlines())
    if not isinstance(end, FormerEnd) or end.lines != len(lines):
        raise import_refusal("it is not whole")
    return lines


def _check_header(header: FormerHeader, feed: str) -> None:
    if header.feed != feed:
        raise import_refusal("it is of another feed")
    if header.feed_schema != SCHEMA:
        raise import_refusal(f"its state has schema {header.feed_schema}, and this release reads {SCHEMA}")


def _who_stays(roster: Roster, experts: Sequence[str], names: Given) -> Bits:
    """By the places of experts: whether nobody asked to forget them here by any of their ids."""
    ids = ((expert, *names.get(expert, ())) for expert in experts)
    return np.array([not any(map(roster.is_erased, known)) for known in ids], dtype=bool)


def _ledger(lines: Iterable[Line], stay: Bits) -> Ledger:
    ledger: Ledger = {}
    for line in lines:
        if isinstance(line, EntryLine):
            ledger[line.question_id] = _entry(line, stay)
        elif isinstance(line, ExpiredLine):
            ledger[line.question_id] = line.at
    return ledger


def _entry(line: EntryLine, stay: Bits) -> Entry:
    rounds, scored = tuple(line.rounds), line.first_final
    if rounds or scored:
        _check_facts((*rounds, scored) if scored else rounds, len(stay))
    if not stay.all():
        places = (np.cumsum(stay) - 1).astype(np.int32)
        kept = (_facts_without(packed, stay, places) for packed in rounds)
        rounds = tuple(packed for packed in kept if packed is not None)
        scored = scored and scored_with_places(scored, np.where(stay, places, np.int32(-1)))
    return Entry(
        line.weight, line.evidence, rounds, line.touched, line.ordinal, scored, line.revision, line.provisional
    )


def _check_facts(rounds: tuple[bytes, ...], n_experts: int) -> None:
    """Whether facts are as long as they say, and of experts that there are."""
    for facts in map(unpack, rounds):
        present = len(facts.experts)
        lowest, highest = int(facts.experts.min(initial=0)), int(facts.experts.max(initial=0))
        of_experts = (facts.forecasts, facts.select, facts.answers, facts.ties)
        if any(len(array) != present for array in of_experts) or lowest < 0:
            msg = "facts that are cut off"
            raise ValueError(msg)
        if highest >= n_experts > 0 or not (facts.selected is None or 0 <= facts.selected < max(present, 1)):
            msg = "facts of an expert that the feed does not have"
            raise ValueError(msg)


def _check_sums(feed: Feed, line: FeedLine, ledger: Ledger) -> None:
    """Whether all questions can be summed up, under the settings under which they were scored."""
    settings = with_stored_meaning(feed.settings, line.meaning)
    method = feed.method_of(settings)
    buckets = Buckets.from_bytes(line.settled, len(line.experts), settings.memory)
    buckets.reach(max(line.path_state.ordinals - 1, 0))
    for entry in ledger.values():
        if isinstance(entry, Entry):
            buckets.add(contribution(entry, method), entry.ordinal)


def _standing(
    feeds: Feeds, feed: Feed, line: FeedLine, next_revision: int, imported: Imported, record: Record
) -> PathState:
    """That of the file; revisions are above those of the file, and above those that the feed has had here.

    What a replay has made of the future is said as of now: brokers take no records from there.
    """
    found, highest = line.path_state, feeds.highest(feed)
    least = highest + 1 if highest >= 0 else -1
    base = max(next_revision - record.offset - 1, least - record.offset)
    path_state = msgspec.structs.replace(found, base=base, lost=feed.path_state.lost, imported=imported)
    if found.revision < least or found.at > record.timestamp:
        path_state = msgspec.structs.replace(path_state, revision=base + record.offset, at=record.timestamp)
    return path_state


def _stored(feed: Feed, header: FormerHeader, line: FeedLine) -> bytes:
    """The line as the feed would have stored it, with what was asked of its experts here."""
    roster = feed.roster
    teams = {**roster.teams, **line.teams}
    excluded, forgotten = roster.excluded.union(line.excluded), roster.erased.union(header.forgotten)
    names = roster.names.joined(header.names)
    if any(names.first(expert) != expert for expert in line.experts):
        raise import_refusal("an expert of it has an id that another one was given here: delete the feed before")
    merged = StoredRoster(line.experts, teams, sorted(excluded), sorted(forgotten), names.given)
    return _encode(StoredFeed(merged, line.meaning, line.settled))


# --- without those who asked to be forgotten; what was said of the others stays as it was said ---


def _feed_without(line: FeedLine, stay: Bits) -> FeedLine:
    """The feed without some experts, by their places: the others get new places."""
    if stay.all():
        return line
    experts = [expert for expert, stays in zip(line.experts, stay.tolist(), strict=True) if stays]
    named = set(experts)
    return msgspec.structs.replace(
        line,
        experts=experts,
        teams={expert: team for expert, team in line.teams.items() if expert in named},
        excluded=[expert for expert in line.excluded if expert in named],
        settled=_settled_without(line, stay),
        path_state=_standing_without(line.path_state, stay),
    )


def _facts_without(packed: bytes, stay: Bits, places: IndexArray) -> bytes | None:
    """A round's facts without some of its experts; None if nobody is left. If one was selected, the next best is."""
    facts = unpack(packed)
    rows = stay[facts.experts]
    if not rows.any():
        return None
    kept = position_in(facts.selected, rows)
    return facts_at_places(facts, rows, places, int(np.argmax(facts.select[rows])) if kept is None else kept).pack()


def _standing_without(path_state: PathState, stay: Bits) -> PathState:
    """Groups and drift name places; a group of which a single expert is left is none."""
    places = {place: number for number, place in enumerate(np.flatnonzero(stay).tolist())}
    kept = (group.without(places) for group in path_state.groups)
    groups = [group for group in kept if group is not None]
    drift = path_state.drift.without(places)
    return msgspec.structs.replace(path_state, groups=groups, drift=drift)


def _settled_without(line: FeedLine, stay: Bits) -> bytes:
    memory = line.meaning.get("memory")
    settled = Buckets.from_bytes(line.settled, len(line.experts), memory if isinstance(memory, int) else None)
    for sums in settled.by_number.values():
        sums.matrix = sums.matrix[:, : len(stay)][:, stay]
        sums.histograms = sums.histograms[stay[: len(sums.histograms)]]
    return settled.to_bytes(int(np.count_nonzero(stay)))
