"""Accounts of weights from a feed's log in Kafka."""

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

from stream_peer.kafka.client.read import onlooker, read_to_end
from stream_peer.questions.control_stage import SETTINGS_KEY
from stream_peer.settings.process import Settings
from stream_peer.tools.explain.weight_account import Account
from stream_peer.tools.explain.weight_story.fold import WeightFold
from stream_peer.tools.explain.weight_story.request import LogRead
from stream_peer.tools.replay.feed_log_reader import place_of_log, pump_from_log


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
    keys: set[bytes] = set()
    with onlooker(settings) as consumer:
        place = place_of_log(consumer, settings, feed)
        (start,) = consumer.beginning_offsets([place]).values()
        (end,) = consumer.end_offsets([place]).values()
        fold = WeightFold(feed, accounts, place.partition, secret)
        with closing(read_to_end(consumer, [place])) as batches:
            for records in batches:
                keys.update(record.key for record in records if record.key)
                if not _folded(fold, records, settings, place):
                    break
                if progress is not None:
                    progress(records[-1].offset + 1 - start, end - start)
    fold.finish()
    feeds = frozenset(key.decode(errors="replace") for key in keys - {SETTINGS_KEY})
    return LogRead(feed.encode() in keys, fold.follower.experts, feeds, start)


def _folded(fold: WeightFold, records: Sequence[Any], settings: Settings, place: Any) -> bool:
    """Fold a batch; False if nothing that is asked for comes any more."""
    for record in records:
        if fold.is_over(record):
            return False
        pump_from_log(fold.fold(record), settings, place)
    return True
