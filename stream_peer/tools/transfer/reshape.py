"""Exported lines under another name of the feed, or with pseudonyms in place of ids."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from stream_peer.events.feed_log import Round
from stream_peer.log.portable import EntryLine, ExpiredLine, FeedLine, Header, Line, QuestionLine, WaitingLine
from stream_peer.questions.dating import BEGINNING, Dating, Rules
from stream_peer.questions.rounds import emitted_anew
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
from stream_peer.tools.transfer.pseudonyms import Pseudonyms

_replace = msgspec.structs.replace


def renamed(line: Line, before: str, feed: str) -> Line:
    """A line of the feed ``before`` as one of ``feed``. Who was forgotten is not in it: digests are of feed and id."""
    if isinstance(line, Header):
        return _replace(line, feed=feed, forgotten=[], settings=_renamed_settings(line.settings, before, feed))
    if isinstance(line, WaitingLine):
        return _replace(line, round=_replace(line.round, feed=feed))
    if isinstance(line, QuestionLine):
        found = decode_question_entry(line.question_id, line.stored, {}, FeedSettings())
        if isinstance(found, Stub):
            told = _renamed_told(found.told, before, feed)
            return _replace(line, stored=encode_stub(_replace(found, feed=feed, told=told)))
        _rename(found, before, feed)
        return _replace(line, stored=encode_whole(found))
    return line


def _renamed_settings(document: dict[str, Any], before: str, feed: str) -> dict[str, Any]:
    own = document.get("feeds", {}).get(before)
    return {**document, "feeds": {feed: own}} if own else document


def _rename(question: QuestionState, before: str, feed: str) -> None:
    question.own_feed = _renamed_field(question.own_feed, before, feed)
    question.other_feed = _renamed_field(question.other_feed, before, feed)
    if question.own_feed is None and question.other_feed is None:  # it was of the default feed without saying so
        question.other_feed = 0, feed
    question.told = _renamed_told(question.told, before, feed)
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
        yield with_pseudonyms(line, names, settings)


def with_pseudonyms(line: Line, names: Pseudonyms, settings: FeedSettings) -> Line:
    """A line with pseudonyms in place of ids. Who was forgotten or renamed is not in it: no id would tell.

    ``settings`` are the feed's: they say from when forecasts count.
    """
    if isinstance(line, Header):
        return _replace(line, pseudonyms=names.fingerprint, forgotten=[], names={})
    if isinstance(line, FeedLine):
        return _replace(
            line,
            experts=[names.expert(expert) for expert in line.experts],
            teams={names.expert(expert): names.team(team) for expert, team in line.teams.items()},
            excluded=[names.expert(expert) for expert in line.excluded],
        )
    if isinstance(line, WaitingLine):
        return _replace(line, round=_round_with(line.round, names))
    if isinstance(line, EntryLine | ExpiredLine):
        return _replace(line, question_id=names.question(line.question_id))
    if isinstance(line, QuestionLine):
        return _question_with(line, names, settings)
    return line


def _round_with(event: Round, names: Pseudonyms) -> Round:
    experts = [names.expert(expert) for expert in event.experts]
    return _replace(event, experts=experts, question_id=names.question(event.question_id))


def _question_with(line: QuestionLine, names: Pseudonyms, settings: FeedSettings) -> QuestionLine:
    """A question's rounds are known again by hashes of what was emitted: those are made anew, under the new names."""
    found = decode_question_entry(line.question_id, line.stored, {}, settings)
    question_id = names.question(line.question_id)
    if isinstance(found, Stub):
        return _replace(line, question_id=question_id)
    found.history.rename(names.expert)
    found.history.rules = Rules((BEGINNING, Dating.of(settings)))
    emitted_anew(found, found.plan())
    return _replace(line, question_id=question_id, stored=encode_whole(found))
