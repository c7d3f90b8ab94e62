"""The data export of a Metaculus project: ``question_data.csv`` and ``forecast_data.csv``, or the archive of both.

=======================  ==============================================================================================
question_data.csv        meaning
=======================  ==============================================================================================
``Question ID``          joins the files
``Question Type``        questions that are not ``binary`` are counted and left out
``Open Time``            the question opens
``Scheduled Close Time`` the question is to close
``Actual Close Time``    the earlier of it and the moment of the outcome: later forecasts do not count
``Resolution``           ``yes``, ``no``; ``annulled`` and ``ambiguous`` annul
``Resolution Known Time``  the outcome is known
=======================  ==============================================================================================

==========================  ===========================================================================================
forecast_data.csv           meaning
==========================  ===========================================================================================
``Forecaster Username``     the expert; without names ``Forecaster ID`` or ``Forecaster (Anonymized)``
``Start Time``              when the forecast was made
``End Time``                when it was withdrawn, if no other one begins then
``Forecaster Count``        only forecasts that the platform makes of others have one: they are left out
``Probability Yes``         the forecast
==========================  ===========================================================================================
"""

from functools import partial

from stream_peer.errors import RejectedEvent
from stream_peer.tools.formats.adapter import Adapter, DescribedQuestions, FormatOptions, one_source
from stream_peer.tools.formats.gathered import ANNULLED, Gathered
from stream_peer.tools.formats.sources import ImportSources, SourceRow
from stream_peer.tools.formats.values import Unused, identity, moment_of, moment_or_none, probability

_ANNULS = ("annulled", "ambiguous")
_TIMES = ("Open Time", "Scheduled Close Time", "Actual Close Time", "Resolution Known Time")
_EXPERTS = ("Forecaster Username", "Forecaster ID", "Forecaster (Anonymized)")


def read_metaculus(sources: ImportSources, gathered: Gathered, _: FormatOptions) -> None:
    """Gather questions, then forecasts."""
    described = DescribedQuestions()
    for source in one_source(sources, "table of questions", "Question ID", "Question Type", "Resolution"):
        gathered.each(sources.rows(source), partial(_ask, gathered=gathered, described=described))
    for source in one_source(sources, "table of forecasts", "Question ID", "Start Time", "Probability Yes"):
        gathered.each(sources.rows(source), partial(_take, gathered=gathered, described=described))


def _ask(row: SourceRow, gathered: Gathered, described: DescribedQuestions) -> None:
    question = identity(row.get("Question ID"), "Question ID")
    kind = str(row.get("Question Type")).lower()
    described.add(question, kind, is_yes_no=kind == "binary")
    opens, closes, closed, known = (moment_or_none(row.get(name), name) for name in _TIMES)
    gathered.question(question, opens=opens, closes=closes)
    outcome = row.get("Resolution")
    if outcome is not None:
        spelt = ANNULLED if str(outcome).lower() in _ANNULS else outcome
        gathered.outcome(question, spelt, resolved=known, closed=closed)


def _take(row: SourceRow, gathered: Gathered, described: DescribedQuestions) -> None:
    question = identity(row.get("Question ID"), "Question ID")
    described.check(question)
    if row.get("Forecaster Count") is not None:
        raise RejectedEvent(Unused.AGGREGATE, message="a forecast that the platform made of others")
    expert = identity(next((row.get(name) for name in _EXPERTS if row.get(name) is not None), None), "Forecaster ID")
    gathered.forecast(question, expert, probability(row.get("Probability Yes")), moment_of(row.get("Start Time")))
    end = moment_or_none(row.get("End Time"), "End Time")
    if end is not None:
        gathered.forecast(question, expert, None, end)


METACULUS = Adapter("question_data.csv and forecast_data.csv of a Metaculus export, or its zip archive", read_metaculus)
