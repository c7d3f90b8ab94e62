"""Questions of an exported feed taken up by the question stage: with their histories, and with what was emitted.

A question that is known here already, since events of it came first, is put together with what the file says of it:
of each field the later statement counts, as ever.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar

import msgspec

from stream_peer.errors import StateError
from stream_peer.events.times import Milliseconds
from stream_peer.log.portable import Header, QuestionLine
from stream_peer.log.transfers import import_refusal, read_transfer
from stream_peer.questions.reconcile import Reconciler
from stream_peer.questions.state import QuestionState, Stub, decode_question_entry
from stream_peer.questions.store import READABLE, SCHEMA, QuestionStore
from stream_peer.settings.feed.model import FeedSettings

Dated = TypeVar("Dated", bound=tuple[Milliseconds, object])


class ImportedQuestions:
    """The questions of one partition.

    Parameters
    ----------
    data : bytes
        A whole transfer.
    feed : str
    settings : FeedSettings
        Of the feed.

    Attributes
    ----------
    clock : int
        The latest time of the partitions that they come from.
    forgotten : list of bytes
        Digests of ids that are refused in the feed.
    names : dict of str to list of str
        Ids that its experts were given later.

    Raises
    ------
    RejectedEvent
        If it cannot be read.
    """

    def __init__(self, data: bytes, feed: str, settings: FeedSettings) -> None:
        header, *lines = read_transfer(data, feed)
        if not isinstance(header, Header) or header.question_schema not in READABLE:
            message = f"it was exported by another release, whose questions this one does not read (it reads {SCHEMA})"
            raise import_refusal(message)
        self.forgotten, self.names = header.forgotten, header.names
        found = [line for line in lines if isinstance(line, QuestionLine)]
        self.clock = max((line.clock for line in found), default=0)
        self._found = dict(_decoded(line, settings) for line in found)

    def take_up(
        self, store: QuestionStore, reconciler: Reconciler, is_foreign: Callable[[str], bool]
    ) -> Iterator[QuestionState]:
        """Those that are alive, each once it is in the store. Stubs are, too; they need no look."""
        for question_id, found in self._found.items():
            known = store.live.get(question_id)
            if question_id in store.stubs:
                continue
            if isinstance(found, Stub):
                if known is None or not known.emitted:
                    found = _stub_with(found, known)  # noqa: PLW2901 - the same, with what is known here
                    if known is not None:
                        reconciler.let_go(known, wholly=True)
                    store.put_stub(question_id, found)
                continue
            if known is not None:
                _put_together(found, known)
            found.foreign = is_foreign(question_id)
            store.touch(found)
            yield found


def _decoded(line: QuestionLine, settings: FeedSettings) -> tuple[str, QuestionState | Stub]:
    try:
        return line.question_id, decode_question_entry(line.question_id, line.stored, {}, settings)
    except StateError as error:
        raise import_refusal(str(error)) from None


def _stub_with(stub: Stub, known: QuestionState | None) -> Stub:
    """A question whose history has gone: forecasts that came here before the file are as late as any other."""
    truth = None if known is None else known.truth
    if truth is None or (stub.truth is not None and stub.truth.at > truth.at):
        return stub
    return msgspec.structs.replace(stub, truth=truth)


def _put_together(found: QuestionState, known: QuestionState) -> None:
    """Add what is known here, which came later in the log, to what the file says."""
    found.opens = _later(found.opens, known.opens)
    found.closes = _later(found.closes, known.closes)
    found.weight = _later(found.weight, known.weight)
    found.own_feed = _later(found.own_feed, known.own_feed)
    found.other_feed = _later(found.other_feed, known.other_feed)
    found.declared = known.declared if found.declared is None else found.declared
    found.told = known.told or found.told
    if found.terms is None:
        found.terms, found.terms_at = known.terms, known.terms_at
    found.touched = max(found.touched, known.touched)
    found.emitted.update(known.emitted)
    found.history.merge(list(known.history.experts), known.history.log)
    found.history.first = min(found.history.first, known.history.first)
    found.history.gone = min(found.history.gone, known.history.gone)
    found.chunks = known.chunks
    found.heard_from = set(found.history.experts) if known.chunks else None
    named = found.own_feed or found.other_feed
    found.feed = found.feed if named is None else named[1]
    found.told_provisional = known.told_provisional or found.told_provisional
    if known.provisional is not None and (found.provisional is None or known.provisional.at >= found.provisional.at):
        found.provisional = known.provisional
    if known.truth is not None and (found.truth is None or known.truth.at >= found.truth.at):
        found.truth = known.truth


def _later(one: Dated | None, other: Dated | None) -> Dated | None:
    if one is None or other is None:
        return one or other
    return other if other[0] >= one[0] else one
