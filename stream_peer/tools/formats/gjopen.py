"""Exports of Good Judgment Open, INFER and other sites on Cultivate Forecasts: questions with answers; prediction sets.

===================================  ==================================================================================
questions with answers               meaning
===================================  ==================================================================================
``discover question id``             joins the files
``answer id``                        one row an answer. A question with one answer, or with one that is called ``Yes``
                                     (``answer name``) and one other, is used; others are counted and left out
``answer resolved probability``      1 or 0; empty: not resolved
``question status``                  ``voided`` annuls
``question correctness known at``    the outcome is known; else ``question resolved at``
``question starts at``, ``question ends at``  optional: it opens, it closes
===================================  ==================================================================================

===================================  ==================================================================================
prediction sets                      meaning
===================================  ==================================================================================
``membership guid``                  the expert; else ``membership id``
``answer id``                        one row an answer: those of the answer yes are used
``forecasted probability``           the forecast
``prediction set created at``        when it was made
``made after correctness known``     true: left out
===================================  ==================================================================================
"""

from collections.abc import Mapping
from functools import partial

from stream_peer.errors import RejectedEvent
from stream_peer.tools.formats.adapter import Adapter, DescribedQuestions, FormatOptions, one_source
from stream_peer.tools.formats.gathered import ANNULLED, Gathered
from stream_peer.tools.formats.sources import ImportSources, SourceRow
from stream_peer.tools.formats.values import Unused, identity, moment_of, moment_or_none, probability

_QUESTION = "discover question id"
_OF_ANSWERS = (_QUESTION, "answer id", "answer resolved probability")
_OF_PREDICTIONS = (_QUESTION, "answer id", "forecasted probability", "prediction set created at")
_KNOWN = ("question correctness known at", "question resolved at")


def read_gjopen(sources: ImportSources, gathered: Gathered, _: FormatOptions) -> None:
    """Gather the answers of all questions, then the predictions of their answers yes."""
    answers: dict[str, list[SourceRow]] = {}

    def answer(row: SourceRow) -> None:
        answers.setdefault(identity(row.get(_QUESTION), _QUESTION), []).append(row)

    for source in one_source(sources, "table of questions", *_OF_ANSWERS):
        gathered.each(sources.rows(source), answer)
    described, yes = DescribedQuestions(), {question: _yes(rows) for question, rows in answers.items()}
    for question, rows in answers.items():
        gathered.attempt(rows[0].place, _ask, question, yes[question], gathered, described)
    for source in one_source(sources, "table of prediction sets", *_OF_PREDICTIONS):
        gathered.each(sources.rows(source), partial(_take, yes=yes, gathered=gathered, described=described))


def _yes(rows: list[SourceRow]) -> SourceRow | None:
    """The answer yes of a question: its only one, or that of two which is called so."""
    if len(rows) == 1:
        return rows[0]
    named = [row for row in rows if str(row.get("answer name")).lower() == "yes"]
    return named[0] if len(rows) == 2 and len(named) == 1 else None


def _ask(question: str, yes: SourceRow | None, gathered: Gathered, described: DescribedQuestions) -> None:
    described.add(question, "one with other answers than yes and no", is_yes_no=yes is not None)
    if yes is None:
        return
    opens, closes = (moment_or_none(yes.get(name), name) for name in ("question starts at", "question ends at"))
    gathered.question(question, opens=opens, closes=closes)
    known = next((moment_of(yes.get(name), name) for name in _KNOWN if yes.get(name) is not None), None)
    if str(yes.get("question status")).lower() == "voided":
        gathered.outcome(question, ANNULLED, resolved=known)
    elif yes.get("answer resolved probability") is not None:
        gathered.outcome(question, str(yes.get("answer resolved probability")), resolved=known)


def _take(
    row: SourceRow, yes: Mapping[str, SourceRow | None], gathered: Gathered, described: DescribedQuestions
) -> None:
    question = identity(row.get(_QUESTION), _QUESTION)
    described.check(question)
    of_yes = yes[question]
    if of_yes is not None and identity(row.get("answer id"), "answer id") != identity(of_yes.get("answer id"), "id"):
        raise RejectedEvent(Unused.NO_FORECAST, message="the answer no says what the answer yes says")
    if str(row.get("made after correctness known")).lower() == "true":
        raise RejectedEvent(Unused.AFTER_OUTCOME, message="it was made when the outcome was known")
    expert = row.get("membership guid")
    expert = identity(row.get("membership id") if expert is None else expert, "membership guid")
    at = moment_of(row.get("prediction set created at"), "prediction set created at")
    gathered.forecast(question, expert, probability(row.get("forecasted probability")), at)


GJOPEN = Adapter("questions with answers, and prediction sets, of Good Judgment Open or INFER (CSV)", read_gjopen)
