"""Explanations of weights from a feed-log: of a replay that kept it, or of the brokers."""

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

from stream_peer.events import topics
from stream_peer.events.partitioning import partition_of
from stream_peer.feeds.fold import FeedFold, keys_of
from stream_peer.feeds.methods.method import MethodOf
from stream_peer.feeds.methods.served import served_method
from stream_peer.kafka.client.read import groupless_reader, read_to_end
from stream_peer.log.driver import Steps, fold, pump
from stream_peer.log.stage import Effects, LogRecord, Output, Record
from stream_peer.serve.explanation import ExplainFault, ExplainRequest, WeightExplanation, WeightKind
from stream_peer.settings.feed.document import FeedSettingsBook
from stream_peer.settings.process import Settings
from stream_peer.tools.explain.weight import answer_request, explanation_of, probe_for
from stream_peer.tools.explain.weight_timeline import WeightProbe, WeightTimeline
from stream_peer.tools.replay.feed_log_reader import place_of_log, pump_from_log
from stream_peer.tools.replay.log import KeptLog


class ProbedFold:
    """Folds the records of one partition for a probe, and publishes nothing.

    Parameters
    ----------
    probe : WeightProbe
    partition : int
    secret : bytes
        The deployment's.
    settings : FeedSettingsBook, optional
        In force until the log says otherwise.
    method_of : FeedSettings -> Method, optional
        As of ``FeedFold``.
    """

    def __init__(
        self,
        probe: WeightProbe,
        partition: int = 0,
        secret: bytes = b"",
        settings: FeedSettingsBook | None = None,
        method_of: MethodOf = served_method,
    ) -> None:
        self.probe = probe
        self._stage = FeedFold(
            topic=topics.FEED_LOG, partition=partition, secret=secret, settings=settings, method_of=method_of
        )
        self._keys = keys_of(probe.feed)

    def fold(self, record: Record) -> Steps:
        """Fold a record, with the rebuilds that it calls for."""
        self.probe.before_record(record, self._stage)
        yield from fold(self._stage, record, self._keys)
        self.probe.after_record(Effects(), self._stage)


class ReplayedLog:
    """Keeps the feed-log of a replay, to explain the weights of experts once it is known whose are of interest.

    ``write`` is one for ``replay``. A context manager.

    Parameters
    ----------
    feed_log_partitions, method_of
        As of the replay.
    """

    def __init__(self, feed_log_partitions: int = 1, method_of: MethodOf = served_method) -> None:
        self._method_of = method_of
        self._logs = [KeptLog() for _ in range(feed_log_partitions)]
        self._records = [0] * feed_log_partitions

    def __enter__(self) -> "ReplayedLog":
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

    def explanations(
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
            How many questions to list.
        """
        probe = WeightProbe(feed, [WeightTimeline(expert) for expert in experts])
        partition = partition_of(feed, len(self._logs))
        log = self._logs[partition]
        folding = ProbedFold(probe, partition, secret, settings, self._method_of)
        for record in log.up_to(self._records[partition]):
            pump(folding.fold(record), log.up_to)
        found = (explanation_of(timeline, feed, weight, questions) for timeline in probe.timelines)
        return [explanation for explanation in found if explanation is not None]


def explain_from_kafka(
    request: ExplainRequest, settings: Settings, secret: bytes, progress: Callable[[int, int], None] | None = None
) -> WeightExplanation | ExplainFault:
    """Explain from a feed's log in Kafka. The feeds that there are: those of its partition.

    Parameters
    ----------
    request : ExplainRequest
    settings : Settings
        Names the brokers and the topics.
    secret : bytes
        The deployment's, as its workers have it.
    progress : callable or None
        Gets the number of records read, and of all.

    Raises
    ------
    BrokerUnavailableError, NotAuthorisedError, TopicsError
        If the topics cannot be read.
    """
    probe = probe_for(request)
    return answer_request(request, probe, read_for(probe, settings, secret, progress))


def read_for(
    probe: WeightProbe, settings: Settings, secret: bytes, progress: Callable[[int, int], None] | None = None
) -> int:
    """Fold a feed's log for a probe, as far as its spans reach; the offset of the first record that the log still has.

    Raises
    ------
    BrokerUnavailableError, NotAuthorisedError, TopicsError
        If the topics cannot be read.
    """
    with groupless_reader(settings) as consumer:
        place = place_of_log(consumer, settings, probe.feed)
        (start,) = consumer.beginning_offsets([place]).values()
        (end,) = consumer.end_offsets([place]).values()
        folding = ProbedFold(probe, place.partition, secret)
        with closing(read_to_end(consumer, [place])) as batches:
            for records in batches:
                probe.note_feeds(records)
                if not _folded(folding, records, settings, place):
                    break
                if progress is not None:
                    progress(records[-1].offset + 1 - start, end - start)
    probe.finish()
    return int(start)


def _folded(folding: ProbedFold, records: Sequence[Any], settings: Settings, place: Any) -> bool:
    """Fold a batch; False if no later record belongs to a span."""
    for record in records:
        if folding.probe.is_over(record):
            return False
        pump_from_log(folding.fold(record), settings, place)
    return True
