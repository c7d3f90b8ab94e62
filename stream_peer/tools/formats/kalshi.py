"""Price histories of Kalshi: answers of its candlestick endpoints, and its description of the markets.

=====================  ================================================================================================
markets                meaning
=====================  ================================================================================================
``ticker``             the question
``open_time``          it opens
``close_time``         it closes
``result``             ``yes`` or ``no``; empty: not settled
``settlement_ts``      the outcome is known; without it at ``close_time``
=====================  ================================================================================================

=====================  ================================================================================================
candlesticks           meaning
=====================  ================================================================================================
``ticker``             the question; ``market_ticker`` where ``markets`` holds several
``end_period_ts``      seconds since 1970: when the price stood
``price``              ``close_dollars``, or ``close`` in cents: the forecast
``yes_bid``, ``yes_ask``  without a trade the forecast is between the two
=====================  ================================================================================================

The expert is ``kalshi``, or as ``--expert`` says.
"""

from collections.abc import Iterator
from typing import Any

from stream_peer.errors import RejectedEvent, UnreadableFileError
from stream_peer.tools.formats.adapter import Adapter, FormatOptions
from stream_peer.tools.formats.gathered import Gathered
from stream_peer.tools.formats.polymarket import item_row
from stream_peer.tools.formats.sources import ImportSources, SourceRow
from stream_peer.tools.formats.values import Unused, finite, identity, moment_of, moment_or_none, probability


def read_kalshi(sources: ImportSources, gathered: Gathered, options: FormatOptions) -> None:
    """Gather markets and candlesticks, whichever order they stand in: a question may be described after its prices."""

    def take(row: SourceRow) -> None:
        if row.get("end_period_ts") is not None:
            expert = options.expert or "kalshi"
            at = moment_of(row.get("end_period_ts"), "end_period_ts")
            gathered.forecast(identity(row.get("ticker"), "ticker"), expert, probability(_price(row)), at)
            return
        question = identity(row.get("ticker"), "ticker")
        opens, closes = (moment_or_none(row.get(name), name) for name in ("open_time", "close_time"))
        gathered.question(question, opens=opens, closes=closes)
        if row.get("result") is not None:
            known = moment_or_none(row.get("settlement_ts"), "settlement_ts")
            gathered.outcome(question, row.get("result"), resolved=known)

    for source in sources.all:
        if not sources.columns(source) & {"markets", "market", "candlesticks", "ticker"}:
            msg = f"{source.name} has neither markets nor candlesticks"
            raise UnreadableFileError(msg)
        gathered.each(_flat(sources.rows(source)), take)


def _flat(rows: Iterator[SourceRow]) -> Iterator[SourceRow]:
    """Markets and candlesticks, out of whatever holds them; a candlestick knows the ticker of what holds it."""
    for row in rows:
        ticker = row.get("ticker") if row.get("market_ticker") is None else row.get("market_ticker")
        market = row.get("market")
        inner = row.get("markets") or ([market] if isinstance(market, dict) else [])
        candles = row.get("candlesticks")
        if candles is not None:
            for count, candle in enumerate(candles, 1):
                found = item_row(f"{row.place} {ticker}:{count}", candle)
                yield found._replace(fields={**found.fields, "ticker": ticker})
        elif inner:
            yield from _flat(item_row(row.place, one) for one in inner)
        else:
            yield row


def _price(row: SourceRow) -> float:
    """The last trade of the period, else the middle of bid and ask.

    Raises
    ------
    RejectedEvent
        If there was neither.
    """
    traded = _close(row.get("price"))
    if traded is not None:
        return traded
    bid, ask = _close(row.get("yes_bid")), _close(row.get("yes_ask"))
    if bid is None or ask is None:
        raise RejectedEvent(Unused.NO_FORECAST, message="no price, and no bid and ask")
    return (bid + ask) / 2


def _close(prices: Any) -> float | None:
    """What a period closed at, as a probability."""
    if not isinstance(prices, dict):
        return None
    if prices.get("close_dollars") is not None:
        return finite(prices["close_dollars"], "close_dollars")
    return None if prices.get("close") is None else finite(prices["close"], "close") / 100


KALSHI = Adapter("candlesticks of Kalshi, and its markets (JSON of its API)", read_kalshi, ("expert",))
