"""Price histories of Polymarket: answers of its ``prices-history`` endpoint, and its description of the markets.

======================  ===============================================================================================
markets (Gamma API)     meaning
======================  ===============================================================================================
``slug``                the question; without it ``conditionId``
``outcomes``            the question is whether the first of the two comes true; markets of more are left out
``clobTokenIds``        the tokens of the outcomes, in the same order
``startDate``           it opens
``endDate``             it is to close
``closed``, ``outcomePrices``  of a closed market the outcome: 1 and 0, or 0 and 1
``closedTime``          the outcome is known
======================  ===============================================================================================

Markets may stand in ``markets`` of events.

======================  ===============================================================================================
histories               meaning
======================  ===============================================================================================
``history``             points; of a token whose id is the file's name without ``.json``, or by token
``t``, ``p``            seconds since 1970; the price, which is the forecast, or 1 less it for the second outcome
======================  ===============================================================================================

The expert is ``polymarket``, or as ``--expert`` says.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import msgspec

from stream_peer.errors import RejectedEvent
from stream_peer.events.rejections import Reason
from stream_peer.tools.formats.adapter import Adapter, FormatOptions, one_source
from stream_peer.tools.formats.gathered import Gathered
from stream_peer.tools.formats.sources import ImportSource, ImportSources, SourceRow, normalised
from stream_peer.tools.formats.values import Unused, finite, identity, moment_of, moment_or_none, probability


def read_polymarket(sources: ImportSources, gathered: Gathered, options: FormatOptions) -> None:
    """Gather markets, then prices."""
    tokens: dict[str, tuple[str, bool]] = {}
    histories = one_source(sources, "price history", "history")
    for source in sources.all:
        if source not in histories:
            gathered.each(_markets(sources.rows(source)), partial(_ask, gathered=gathered, tokens=tokens))
    expert = options.expert or "polymarket"
    for source in histories:
        points = _points(sources.rows(source), source)
        gathered.each(points, partial(_take, gathered=gathered, tokens=tokens, expert=expert))


def _ask(market: SourceRow, gathered: Gathered, tokens: dict[str, tuple[str, bool]]) -> None:
    slug = market.get("slug")
    question = identity(market.get("conditionId") if slug is None else slug, "slug")
    pair = _listed(market.get("clobTokenIds"))
    if len(pair) != 2:
        raise RejectedEvent(Unused.NOT_YES_NO, message=f"market {question} has {len(pair)} outcomes")
    tokens.update({identity(token, "token"): (question, place == 0) for place, token in enumerate(pair)})
    opens, closes = (moment_or_none(market.get(name), name) for name in ("startDate", "endDate"))
    gathered.question(question, opens=opens, closes=closes)
    if market.get("closed"):
        known = moment_or_none(market.get("closedTime"), "closedTime")
        gathered.outcome(question, _outcome(question, market), resolved=known)


def _take(point: SourceRow, gathered: Gathered, tokens: Mapping[str, tuple[str, bool]], expert: str) -> None:
    token = point.get("token")
    if token not in tokens:
        raise RejectedEvent(Unused.UNKNOWN_QUESTION, message=f"no market has the token {token}")
    question, is_first = tokens[token]
    price = probability(point.get("p"))
    gathered.forecast(question, expert, price if is_first else 1.0 - price, moment_of(point.get("t"), "t"))


def _markets(rows: Iterator[SourceRow]) -> Iterator[SourceRow]:
    for row in rows:
        inner = row.get("markets")
        if inner is None:
            yield row
        else:
            yield from (item_row(row.place, market) for market in inner)


def _points(rows: Iterator[SourceRow], source: ImportSource) -> Iterator[SourceRow]:
    for row in rows:
        history = row.get("history")
        if isinstance(history, dict):
            by_token = history
        else:
            by_token = {(source.member or source.path.name).rpartition("/")[2].partition(".")[0]: history}
        for token, points in by_token.items():
            for count, point in enumerate(points or (), 1):
                found = item_row(f"{row.place} {token}:{count}", point)
                yield found._replace(fields={**found.fields, "token": token})


def item_row(place: str, item: Any) -> SourceRow:
    """An object within a document as a row of its own."""
    if not isinstance(item, dict):
        return SourceRow(place, {}, "it is no JSON object")
    return SourceRow(place, {normalised(name): value for name, value in item.items()})


def _listed(value: Any) -> list[Any]:
    """A list, or the JSON text of one."""
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except msgspec.DecodeError:
            return []
    return value if isinstance(value, list) else []


def _outcome(question: str, market: SourceRow) -> int:
    prices = [finite(price, "outcomePrices") for price in _listed(market.get("outcomePrices"))]
    if prices not in ([1.0, 0.0], [0.0, 1.0]):
        msg = f"market {question} closed at {market.get('outcomePrices')}, which is no outcome"
        raise RejectedEvent(Reason.OUTCOME_UNKNOWN, message=msg)
    return int(prices[0])


POLYMARKET = Adapter("price histories of Polymarket, and its markets (JSON of its API)", read_polymarket, ("expert",))
