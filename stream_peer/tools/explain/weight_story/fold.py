"""Keeps accounts of weights from a feed-log that was written before: of files that were replayed, or of the brokers."""

from collections.abc import Sequence

from stream_peer.events import topics
from stream_peer.events.partitioning import partition_of
from stream_peer.feeds.fold import FeedFold, keys_of
from stream_peer.log.driver import Steps, fold, pump
from stream_peer.log.stage import LogRecord, Output, Record
from stream_peer.serve.explanation import WeightExplanation, WeightKind
from stream_peer.settings.feed.document import FeedSettingsBook
from stream_peer.tools.explain.weight_account import Account
from stream_peer.tools.explain.weight_follower import WeightFollower
from stream_peer.tools.explain.weight_story.story import story_of
from stream_peer.tools.replay.log import KeptLog


class WeightFold:
    """Folds the records of one partition for the accounts of a feed.

    Parameters
    ----------
    feed : str
    accounts : sequence of Account
    partition : int
    secret : bytes
        The deployment's.
    settings : FeedSettingsBook, optional
        In force until the log says otherwise.
    """

    def __init__(
        self,
        feed: str,
        accounts: Sequence[Account],
        partition: int = 0,
        secret: bytes = b"",
        settings: FeedSettingsBook | None = None,
    ) -> None:
        self.follower = WeightFollower(feed, accounts)
        self.stage = FeedFold(topic=topics.FEED_LOG, partition=partition, secret=secret, settings=settings)
        self._keys = keys_of(feed)

    def is_over(self, record: Record) -> bool:
        """Whether neither this record nor a later one concerns the accounts."""
        return self.follower.is_over(record)

    def fold(self, record: Record) -> Steps:
        """Fold a record, with the rebuilds that it calls for."""
        self.follower.before(record, self.stage)
        yield from fold(self.stage, record, self._keys)
        self.follower.after(record, self.stage)

    def finish(self) -> None:
        """The log has ended."""
        self.follower.finish(self.stage)


class StoryLog:
    """Keeps the feed-log of a replay, to explain the weights of experts once it is known whose are of interest.

    ``write`` is one for ``replay``. A context manager.

    Parameters
    ----------
    feed_log_partitions : int
        As of the replay.
    """

    def __init__(self, feed_log_partitions: int = 1) -> None:
        self._logs = [KeptLog() for _ in range(feed_log_partitions)]
        self._records = [0] * feed_log_partitions

    def __enter__(self) -> "StoryLog":
        return self

    def __exit__(self, *error: object) -> None:
        for log in self._logs:
            log.close()

    def write(self, output: Output) -> None:
        """Keep a record, if it is one of the feed-log."""
        if output.topic == topics.FEED_LOG:
            partition = output.partition or 0
            record = LogRecord(self._records[partition], output.timestamp, output.key, output.value)
            self._logs[partition].append(record)
            self._records[partition] += 1

    def stories(
        self,
        feed: str,
        experts: Sequence[str],
        settings: FeedSettingsBook,
        secret: bytes = b"",
        weight: WeightKind = "mix",
        questions: int = 3,
    ) -> list[WeightExplanation]:
        """Why the weights of a feed's experts moved, over their whole lives; of those that ever had one.

        Parameters
        ----------
        feed : str
        experts : sequence of str
        settings : FeedSettingsBook
            Those of the replay (``ReplayResult.settings``).
        secret : bytes
            As of the replay.
        weight : {"mix", "select"}
        questions : int
            How many questions to tell one by one.
        """
        accounts = [Account(expert) for expert in experts]
        partition = partition_of(feed, len(self._logs))
        log = self._logs[partition]
        folding = WeightFold(feed, accounts, partition, secret, settings)
        for record in log.up_to(self._records[partition]):
            if folding.is_over(record):
                continue
            pump(folding.fold(record), log.up_to)
        folding.finish()
        told = (story_of(account, feed, weight, questions) for account in accounts)
        return [story for story in told if story is not None]
