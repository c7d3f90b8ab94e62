"""Manifold's dumps: bets and contracts, each a JSON array, or an archive of it.

===============  ======================================================================================================
bets             meaning
===============  ======================================================================================================
``contractId``   the question
``userId``       the expert
``probAfter``    the forecast: the price at which the trader stopped
``createdTime``  when it was made, in milliseconds since 1970
``amount``       0: nothing was traded, such as an order that waits; left out
``isRedemption``, ``isAnte``  not a trader's opinion; left out
===============  ======================================================================================================

===================  ==================================================================================================
contracts            meaning
===================  ==================================================================================================
``id``               the question
``outcomeType``      contracts that are not ``BINARY`` are counted and left out
``createdTime``      it opens
``closeTime``        it closes
``resolution``       ``YES``, ``NO``; ``CANCEL`` annuls; ``MKT``, a share of both, is no outcome
``resolutionTime``   the outcome is known
===================  ==================================================================================================
"""

from functools import partial

from stream_peer.errors import RejectedEvent
from stream_peer.tools.formats.adapter import Adapter, DescribedQuestions, FormatOptions, one_source
from stream_peer.tools.formats.gathered import ANNULLED, Gathered
from stream_peer.tools.formats.sources import ImportSources, SourceRow
from stream_peer.tools.formats.values import Unused, identity, moment_of, moment_or_none, probability


def read_manifold(sources: ImportSources, gathered: Gathered, _: FormatOptions) -> None:
    """Gather contracts, then bets."""
    described = DescribedQuestions()
    for source in one_source(sources, "dump of contracts", "id", "outcomeType"):
        gathered.each(sources.rows(source), partial(_ask, gathered=gathered, described=described))
    for source in one_source(sources, "dump of bets", "contractId", "userId", "probAfter"):
        gathered.each(sources.rows(source), partial(_take, gathered=gathered, described=described))


def _ask(row: SourceRow, gathered: Gathered, described: DescribedQuestions) -> None:
    question, kind = identity(row.get("id"), "id"), str(row.get("outcomeType"))
    described.add(question, kind, is_yes_no=kind == "BINARY")
    opens, closes = (moment_or_none(row.get(name), name) for name in ("createdTime", "closeTime"))
    gathered.question(question, opens=opens, closes=closes)
    outcome = row.get("resolution")
    if outcome is not None:
        known = moment_or_none(row.get("resolutionTime"), "resolutionTime")
        gathered.outcome(question, ANNULLED if outcome == "CANCEL" else outcome, resolved=known)


def _take(row: SourceRow, gathered: Gathered, described: DescribedQuestions) -> None:
    question = identity(row.get("contractId"), "contractId")
    described.check(question)
    if row.get("isRedemption") or row.get("isAnte") or row.get("amount") == 0:
        raise RejectedEvent(Unused.NO_FORECAST, message="an automatic bet, or one that was not filled")
    at = moment_of(row.get("createdTime"), "createdTime")
    gathered.forecast(question, identity(row.get("userId"), "userId"), probability(row.get("probAfter")), at)


MANIFOLD = Adapter("Manifold's dumps of bets and of contracts (JSON arrays, or their zip archives)", read_manifold)
