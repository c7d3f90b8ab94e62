"""The fast path of the question stage: runs of forecasts that change nothing but histories and the clock.

Nearly all records are such forecasts, and what one of them costs is what the stage costs. So they are folded in one
loop, without a call or an object for each where none is needed. The loop ends before the first record that is anything
else. `QuestionStage.step` folds that one, as it folds every record: these too, to the same state.
"""

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from datetime import UTC, datetime, timedelta
from math import nan

import msgspec

from stream_peer.events.incoming import MAX_EVENT_BYTES, SCHEMA_VERSION, Forecast, Forecasts, decode_usual
from stream_peer.events.times import YEAR_2000, Milliseconds
from stream_peer.log.clock import Agenda, Clock
from stream_peer.log.stage import Effects, Record
from stream_peer.questions.dating import Periods
from stream_peer.questions.history import MAX_ENTRIES, pack_entry
from stream_peer.questions.state import QuestionState
from stream_peer.questions.store import QuestionStore

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_KINDS = frozenset((Forecast, Forecasts))

NoteUnusual = Callable[[QuestionState, Collection[str], Effects], None]


class _NotPlainError(Exception):
    """A record that `QuestionStage.step` has to fold."""


_ENDS_RUN = (_NotPlainError, TypeError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""TypeError: a time has no offset. The last three: it cannot be decoded, or not at once."""


class PlainForecasts:
    """Folds runs of plain forecasts.

    Plain is a forecast in the usual form, without headers, of a live question without an outcome. It is stated for a
    time that is neither too late nor ahead, and names no feed but that of the question. With it neither does a round
    change that is due, nor does any other become due.

    Parameters
    ----------
    store : QuestionStore
    clock : Clock
    agenda : Agenda
        When questions are due.
    periods : Periods
        From when rules date forecasts.
    names : mapping
        Feeds with renamed experts: their forecasts are not plain.
    digests : set
        Of erased ids; if there are any, forecasts of experts that are new to a question are not plain.
    note_unusual : callable
        Called after forecasts were added to a question that is stored in chunks, or too many of one expert.
    """

    __slots__ = ("_agenda", "_clock", "_digests", "_names", "_note_unusual", "_periods", "_store")

    def __init__(
        self,
        store: QuestionStore,
        clock: Clock,
        agenda: Agenda,
        periods: Periods,
        names: Mapping[str, object],
        digests: Set[bytes],
        note_unusual: NoteUnusual,
    ) -> None:
        self._store = store
        self._clock = clock
        self._agenda = agenda
        self._periods = periods
        self._names = names
        self._digests = digests
        self._note_unusual = note_unusual

    # A call for each forecast would cost a tenth of all that is done with it, so all is in one function.
    def take(self, records: Sequence[Record], start: int, effects: Effects) -> int:  # noqa: C901, PLR0912, PLR0915
        """Fold records from ``start`` to the first that is not plain; return the index of that one."""
        clock, live, names, since = self._clock, self._store.live, self._names, self._periods.since
        skew, due = clock.skew, self._agenda.next
        if clock.now >= due:
            return start
        index, singles = start, 0
        try:
            for index in range(start, len(records)):
                record = records[index]
                key, value, arrived = record.key, record.value, record.timestamp
                if record.headers or (key is not None and not key.isascii()):
                    break
                if value is None or len(value) > MAX_EVENT_BYTES:
                    break
                event = decode_usual(value)
                if type(event) not in _KINDS or event.schema != SCHEMA_VERSION:
                    break
                question = live.get(event.question_id)
                if question is None or question.foreign or question.feed in names:
                    break
                history, settings = question.history, question.settings
                limit, feed, at = settings.backdate_limit, event.feed, (event.at - _EPOCH) // _MILLISECOND
                # Not credible, or one of these is due: the question's plan or one of its rounds, or another question.
                if at < YEAR_2000 or (at > arrived and at - arrived > min(settings.horizon, skew)):
                    break
                if not question.alert < at < due or at < history.first:
                    break
                # It may count from another moment than stated, or for another feed.
                if history.is_resolved or arrived < since or (limit is not None and at < arrived - limit):
                    break
                if feed is not None and feed != question.feed:
                    break
                if type(event) is Forecast:
                    expert_id, probability = event.expert_id, event.probability
                    who = history.experts.get(expert_id)
                    if who is None:
                        self._check_new((expert_id,))
                        who = history.number(expert_id)
                    history.log += pack_entry(at, arrived, nan if probability is None else probability, who)
                    count = history.counts[who] + 1
                    history.counts[who] = count
                    if count > MAX_ENTRIES or question.changed_experts is not None:
                        self._note_unusual(question, (expert_id,), effects)
                    singles += 1
                else:
                    self._add_all(question, event.forecasts, at, arrived, effects)
                if feed is not None and (question.other_feed is None or at >= question.other_feed[0]):
                    question.other_feed = at, feed
                question.touched = arrived
                if not question.dirty:
                    self._store.touch(question)
                if at > clock.now:  # noqa: PLR1730 - max() costs twice as much, once a forecast
                    clock.now = at
            else:
                index = len(records)
        except _ENDS_RUN:
            pass
        if singles:
            effects.counts["event", "forecast"] += singles
        return index

    def _add_all(
        self,
        question: QuestionState,
        forecasts: Mapping[str, float | None],
        at: Milliseconds,
        arrived: Milliseconds,
        effects: Effects,
    ) -> None:
        """Add the forecasts of a message."""
        if not forecasts.keys() <= question.history.experts.keys():
            self._check_new(forecasts)
        if question.history.add_all(forecasts, at, arrived, at) or question.changed_experts is not None:
            self._note_unusual(question, forecasts, effects)
        effects.counts["event", "forecasts"] += 1
        effects.counts["forecasts", ""] += len(forecasts)

    def _check_new(self, experts: Collection[str]) -> None:
        """Experts that are new to a question have ids of as many bytes as characters, and none can be erased."""
        if self._digests or not all(map(str.isascii, experts)):
            raise _NotPlainError
