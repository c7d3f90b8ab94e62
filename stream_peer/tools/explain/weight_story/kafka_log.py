"""Accounts of weights from a feed's log in Kafka."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any

from stream_peer.kafka.client.reading import onlooker, read_to_end
from stream_peer.questions.control_stage import SETTINGS_KEY
from stream_peer.settings.process import Settings
from stream_peer.tools.explain.weight_account import Account
from stream_peer.tools.explain.weight_story.fold import WeightFold
from stream_peer.tools.explain.weight_story.request import LogRead
from stream_peer.tools.replay.feed_log_reader import place_of_log, pump_from_log

_EVERY = 500


def read_accounts(
    settings: Settings,
    feed: str,
    accounts: Sequence[Account],
    *,
    secret: bytes = b"",
    progress: Callable[[int, int], None] | None = None,
) -> LogRead:
    """Fold a feed's log from its start for accounts, as far as they ask. Which feeds there are: those of its partition.

    Parameters
    ----------
    settings : Settings
        Names the brokers and the topics.
    feed : str
    accounts : sequence of Account
    secret : bytes
        The deployment's, as its workers have it.
    progress : callable or None
        Told how many records of how many were read.

    Raises
    ------
    BrokerUnavailableError, NotAuthorisedError, TopicsError
        If the topics cannot be read.
    """
    return asyncio.run(_read(settings, feed, accounts, secret, progress))


async def _read(
    settings: Settings,
    feed: str,
    accounts: Sequence[Account],
    secret: bytes,
    progress: Callable[[int, int], None] | None,
) -> LogRead:
    keys: set[bytes] = set()
    async with onlooker(settings) as consumer:
        place = await place_of_log(settings, feed)
        (start,) = (await consumer.beginning_offsets([place])).values()
        (end,) = (await consumer.end_offsets([place])).values()
        fold = WeightFold(feed, accounts, place.partition, secret)
        async with aclosing(read_to_end(consumer, [place])) as batches:
            async for records in batches:
                keys.update(record.key for record in records if record.key)
                if not await _folded(fold, records, settings, place):
                    break
                if progress is not None:
                    progress(records[-1].offset + 1 - start, end - start)
    fold.finish()
    feeds = frozenset(key.decode(errors="replace") for key in keys - {SETTINGS_KEY})
    return LogRead(feed.encode() in keys, fold.follower.experts, feeds, start)


async def _folded(fold: WeightFold, records: Sequence[Any], settings: Settings, place: Any) -> bool:
    """Fold a batch; False if nothing that is asked for comes any more."""
    for number, record in enumerate(records):
        if fold.is_over(record):
            return False
        await pump_from_log(fold.fold(record), settings, place)
        if number % _EVERY == 0:
            await asyncio.sleep(0)  # whoever waits for us may have given up
    return True
