"""Lines of an exported feed under another name of the feed, or with pseudonyms in place of ids.

A pseudonym is always the same for the same id and key; without the key there is no way back.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from stream_peer.errors import FeedTransferError
from stream_peer.events.feed_log import (
    AnyFeedLogRecord,
    ExpertChanged,
    FeedImported,
    GroupChanged,
    OutcomeRevealed,
    ProvisionalOutcome,
    Round,
    RoundWithdrawn,
    SettingsChanged,
)
from stream_peer.questions.dating import BEGINNING, Dating, Rules
from stream_peer.questions.moved import QuestionLine
from stream_peer.questions.rounds import refresh_emitted
from stream_peer.questions.state import (
    QuestionState,
    Stub,
    TextField,
    Told,
    decode_question_entry,
    encode_stub,
    encode_whole,
)
from stream_peer.settings.feed.document import load_document
from stream_peer.settings.feed.model import FeedSettings
from stream_peer.tools.transfer.feed_file import Header, Line, RecordLine

_LEAST_KEY_BYTES = 16
_DIGEST_BYTES = 12

Kind = Literal["expert", "question", "team"]
_PREFIX = {"expert": "e-", "question": "q-", "team": "t-"}


class Pseudonyms:
    """Pseudonyms under a key: ``e-`` and 24 hexadecimal digits for an expert, ``q-`` for a question, ``t-`` for a team.

    Keyed BLAKE2b of kind and id, 96 bits; a key longer than 64 bytes is hashed first.

    Raises
    ------
    FeedTransferError
        If the key is too short to keep anything secret.

    Examples
    --------
    >>> names = Pseudonyms(b"a key of some length")
    >>> names.of("expert", "ann") == names.of("expert", "ann") != names.of("question", "ann")
    True
    """

    def __init__(self, key: bytes, *, questions: bool = False) -> None:
        if len(key) < _LEAST_KEY_BYTES:
            raise FeedTransferError(
                f"the key of the pseudonyms has {len(key)} bytes; at least {_LEAST_KEY_BYTES} are needed"
            )
        self._key = key if len(key) <= hashlib.blake2b.MAX_KEY_SIZE else hashlib.blake2b(key).digest()
        self._questions = questions

    @property
    def fingerprint(self) -> str:
        """Eight hexadecimal digits that tell keys apart, and may be shown."""
        return hashlib.blake2b(self._key, digest_size=4, person=b"pseudonyms").hexdigest()

    def of(self, kind: Kind, name: str) -> str:
        """The pseudonym of an id."""
        named = kind.encode() + b"\0" + name.encode()
        return _PREFIX[kind] + hashlib.blake2b(named, digest_size=_DIGEST_BYTES, key=self._key).hexdigest()

    def expert(self, expert_id: str) -> str:
        """That of an expert."""
        return self.of("expert", expert_id)

    def team(self, team: str) -> str:
        """That of a team."""
        return self.of("team", team)

    def question(self, question_id: str) -> str:
        """That of a question, or its id where only experts get one."""
        return self.of("question", question_id) if self._questions else question_id


_FORMER = "an earlier release moved it here: it can be exported and imported only as it is, without --as or pseudonyms"
_replace = msgspec.structs.replace


def renamed(line: Line, before: str, feed: str) -> Line:
    """A line of the feed ``before`` as one of ``feed``. Who was forgotten is not in it: digests are of feed and id."""
    if isinstance(line, Header):
        return _replace(line, feed=feed, forgotten=[], settings=_renamed_settings(line.settings, before, feed))
    if isinstance(line, RecordLine):
        return _replace(line, record=_renamed_record(line.record, before, feed))
    if isinstance(line, QuestionLine):
        found = decode_question_entry(line.question_id, line.stored, {}, FeedSettings())
        if isinstance(found, Stub):
            told = _renamed_told(found.told, before, feed)
            return _replace(line, stored=encode_stub(_replace(found, feed=feed, told=told)))
        _rename(found, before, feed)
        return _replace(line, stored=encode_whole(found))
    return line


def _renamed_record(record: AnyFeedLogRecord, before: str, feed: str) -> AnyFeedLogRecord:
    if isinstance(record, FeedImported):
        raise FeedTransferError(_FORMER)
    if isinstance(record, SettingsChanged):
        return _replace(record, document=_renamed_settings(record.document, before, feed))
    return _replace(record, feed=feed)


def _renamed_settings(document: dict[str, Any], before: str, feed: str) -> dict[str, Any]:
    own = document.get("feeds", {}).get(before)
    return {**document, "feeds": {feed: own}} if own else document


def _rename(question: QuestionState, before: str, feed: str) -> None:
    question.own_feed = _renamed_field(question.own_feed, before, feed)
    question.other_feed = _renamed_field(question.other_feed, before, feed)
    if question.own_feed is None and question.other_feed is None:  # it was of the default feed without saying so
        question.other_feed = 0, feed
    question.told = _renamed_told(question.told, before, feed)
    question.told_provisional = _renamed_told(question.told_provisional, before, feed)
    if question.published_in is not None and question.published_in[0] == before:
        question.published_in = feed, question.published_in[1]
    question.emitted = {
        boundary: _replace(emitted, feed=feed) if emitted.feed == before else emitted
        for boundary, emitted in question.emitted.items()
    }


def _renamed_field(field: TextField | None, before: str, feed: str) -> TextField | None:
    return (field[0], feed) if field is not None and field[1] == before else field


def _renamed_told(told: Told | None, before: str, feed: str) -> Told | None:
    return _replace(told, feed=feed) if told is not None and told.feed == before else told


def all_with_pseudonyms(lines: Iterable[Line], names: Pseudonyms) -> Iterator[Line]:
    """The lines of an exported feed, the header first, with pseudonyms in place of ids."""
    settings = FeedSettings()
    for line in lines:
        if isinstance(line, Header):
            settings = load_document(line.settings).of(line.feed)
        found = with_pseudonyms(line, names, settings)
        if found is not None:
            yield found


def with_pseudonyms(line: Line, names: Pseudonyms, settings: FeedSettings) -> Line | None:
    """A line with pseudonyms in place of ids; None if it is about names. Who was forgotten is not in it.

    ``settings`` are the feed's: they say from when forecasts count.
    """
    if isinstance(line, Header):
        return _replace(line, pseudonyms=names.fingerprint, forgotten=[], names={})
    if isinstance(line, RecordLine):
        record = _record_with(line.record, names)
        return None if record is None else _replace(line, record=record)
    if isinstance(line, QuestionLine):
        return _question_with(line, names, settings)
    return line


def _record_with(record: AnyFeedLogRecord, names: Pseudonyms) -> AnyFeedLogRecord | None:
    if isinstance(record, FeedImported):
        raise FeedTransferError(_FORMER)
    if isinstance(record, Round):
        rows = sorted(zip(map(names.expert, record.experts), record.probabilities, strict=True))
        experts, probabilities = [expert for expert, _ in rows], [probability for _, probability in rows]
        record = _replace(record, experts=experts, probabilities=probabilities)
    elif isinstance(record, ExpertChanged):
        team = names.team(record.team) if isinstance(record.team, str) else record.team
        return None if record.rename else _replace(record, expert_id=names.expert(record.expert_id), team=team)
    elif isinstance(record, GroupChanged):
        return record if names.question(record.group_id) == record.group_id else None  # pseudonyms are in no group
    if isinstance(record, Round | RoundWithdrawn | OutcomeRevealed | ProvisionalOutcome):
        return _replace(record, question_id=names.question(record.question_id))
    return record


def _question_with(line: QuestionLine, names: Pseudonyms, settings: FeedSettings) -> QuestionLine:
    """A question's rounds are known again by hashes of what was emitted: those are computed under the new names."""
    found = decode_question_entry(line.question_id, line.stored, {}, settings)
    question_id = names.question(line.question_id)
    if isinstance(found, Stub):
        return _replace(line, question_id=question_id)
    found.history.rename(names.expert)
    found.history.rules = Rules((BEGINNING, Dating.of(settings)))
    refresh_emitted(found, found.plan())
    return _replace(line, question_id=question_id, stored=encode_whole(found))
