"""The two stages alone, without Kafka: forecasts per CPU-second of each, over the workload of the pipeline.

``python benchmarks/engine.py [--short] [--messages] [--json] [--against TREE]``. What the pipeline costs beyond it is
Kafka, Faust and the changelog. State is taken every 20,000 records, as the worker does, and thrown away.
"""

import argparse
import gc
import json
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.rounds import compare
from benchmarks.workload import QUESTIONS, Workload
from stream_peer.events.topics import FEED_LOG, FORECAST_EVENTS
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.stage import Effects, LogRecord, Output
from stream_peer.questions.stage import QuestionStage
from stream_peer.settings.feed.document import load_document
from stream_peer.settings.feed.model import NEWEST_METHOD

PARTITIONS = 16
NOW = 1_790_000_000_000
SNAPSHOT_RECORDS = 20_000
BATCH = 5_000
SHORT = 8


def fold(stage: FeedStage | QuestionStage, records: Sequence[LogRecord]) -> tuple[float, list[Output]]:
    """CPU seconds, and what came out."""
    outputs: list[Output] = []
    since = 0
    start = time.process_time()
    for first in range(0, len(records), BATCH):
        effects = Effects()
        for record in records[first : first + BATCH]:
            stage.step(record, effects)
        outputs += effects.outputs
        since += BATCH
        if since >= SNAPSHOT_RECORDS:
            outputs += snapshot(stage)
            since = 0
    outputs += snapshot(stage)
    return time.process_time() - start, outputs


def snapshot(stage: FeedStage | QuestionStage) -> list[Output]:
    """Publish and take the state, in the worker's order."""
    effects = Effects()
    if isinstance(stage, FeedStage):
        stage.publish(effects)
    stage.snapshot()
    return effects.outputs


def log_of(outputs: Iterable[Output]) -> list[list[LogRecord]]:
    """The feed-log that the question stages wrote, by partition."""
    logs: list[list[LogRecord]] = [[] for _ in range(PARTITIONS)]
    for output in outputs:
        if output.topic == FEED_LOG and output.partition is not None:
            log = logs[output.partition]
            log.append(LogRecord(len(log), output.timestamp, output.key, output.value))
    return logs


def measure(workload: Workload) -> dict[str, float]:
    """CPU seconds of each stage, and forecasts per CPU-second of both."""
    settings = load_document({"defaults": {"history": True, "method_version": NEWEST_METHOD}})
    question_seconds, feed_log = 0.0, list[Output]()
    for partition in range(PARTITIONS):
        messages = workload.partition(partition, PARTITIONS)
        records = [LogRecord(n, NOW, *message[1:]) for n, message in enumerate(messages)]
        stage = QuestionStage(
            topic=FORECAST_EVENTS,
            partition=partition,
            partitions=PARTITIONS,
            feed_log_partitions=PARTITIONS,
            settings=settings,
        )
        seconds, outputs = fold(stage, records)
        question_seconds += seconds
        feed_log += outputs
    feed_seconds, results = 0.0, 0
    for partition, log in enumerate(log_of(feed_log)):
        seconds, outputs = fold(FeedStage(topic=FEED_LOG, partition=partition, settings=settings), log)
        feed_seconds += seconds
        results += len(outputs)
    return {
        "forecasts_per_cpu_second": round(workload.forecasts / (question_seconds + feed_seconds)),
        "question_seconds": round(question_seconds, 3),
        "feed_seconds": round(feed_seconds, 3),
        "feed_log_records": len(feed_log),
        "outputs": results,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="an eighth of the events")
    parser.add_argument("--messages", action="store_true", help="forecasts messages of 50 instead of single events")
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    parser.add_argument("--against", type=Path, metavar="TREE", help="another checkout: what a round costs in each")
    options = parser.parse_args()
    if options.against:
        for line in compare(options.against.resolve()):
            print(line, flush=True)
        return
    gc.freeze()
    found = measure(Workload(QUESTIONS // SHORT if options.short else QUESTIONS, as_messages=options.messages))
    print(json.dumps(found) if options.json else ", ".join(f"{name} {value:,}" for name, value in found.items()))


if __name__ == "__main__":
    main()
