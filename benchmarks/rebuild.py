"""A rebuild alone, without Kafka: records per CPU-second of the fold with its decoding, and the memory that it takes.

``python -m benchmarks.rebuild [--rounds N] [--experts N] [--short] [--json]``. One feed, each round of another
question; at the end of the log settings change how many experts a question needs, so that everything is rebuilt. What
follows a rebuild is measured too: making the rows of its snapshot, and loading that snapshot again, as the next owner
of the partition does.
"""

import argparse
import gc
import json
import resource
import time
from collections.abc import Iterator, Mapping

import numpy as np

from stream_peer.events.feed_log import Round, SettingsChanged, Source, encode_feed_log
from stream_peer.events.topics import FEED_LOG, FORECAST_EVENTS
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.driver import answer, rebuild
from stream_peer.log.stage import Effects, LogRecord
from stream_peer.settings.feed.document import load_document

ROUNDS = 200_000
SHORT_ROUNDS = 5_000
EXPERTS = 50
FEED = "feed"
START = 1_704_067_200_000
MINUTE = 60_000
BATCH = 500
GC_THRESHOLDS = 100_000, 50, 100  # as the worker sets them
BEFORE, AFTER = 3, 4


def source(partition: int, offset: int) -> Source:
    """Where a record of the feed-log came from."""
    return Source(FORECAST_EVENTS, partition, 0, offset, 0)


def settings_record(offset: int, min_experts: int) -> LogRecord:
    """Settings that say how many experts a question needs."""
    document = {"defaults": {"history": True, "min_experts": min_experts}}
    event = SettingsChanged(src=source(1, offset), feed="", document=document, hash=load_document(document).hash)
    value = encode_feed_log(event)
    return LogRecord(offset, START, b"settings", value)


def rounds(first: int, last: int, experts: int) -> Iterator[LogRecord]:
    """Rounds of as many questions; experts see the same outcome through noise of their own."""
    names = [f"expert-{number:04d}" for number in range(experts)]
    skill = np.linspace(0.5, 2.5, experts)
    for offset in range(first, last):
        random = np.random.default_rng(offset)
        signal = (1.0 if random.random() < 0.5 else -1.0) * skill + random.normal(0.0, 1.0, experts)
        at = START + offset * MINUTE
        event = Round(
            src=source(0, offset),
            question_id=f"question-{offset:07d}",
            feed=FEED,
            boundary=at,
            final=True,
            weight=1.0,
            experts=names,
            probabilities=np.round(1.0 / (1.0 + np.exp(-signal)), 4).tolist(),
        )
        yield LogRecord(offset, at, FEED.encode(), encode_feed_log(event))


def stage_that_needs_rebuild(records: int, experts: int) -> FeedStage:
    """A stage whose settings have changed at the end of a log of so many rounds; it has folded one of them."""
    stage, effects = FeedStage(topic=FEED_LOG, partition=0), Effects()
    stage.step(settings_record(0, BEFORE), effects)
    stage.step(next(rounds(1, 2, experts)), effects)
    stage.step(settings_record(records, AFTER), effects)
    return stage


def peak_mb() -> float:
    """The kernel's high-water mark of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def carry_out_rebuilds(stage: FeedStage, count: int, experts: int) -> float:
    """Carry it out; CPU seconds without the making of the records."""
    steps = rebuild(stage, count)
    next(steps)
    seconds = 0.0
    for first in range(0, count + 1, BATCH):
        batch = [settings_record(0, BEFORE)] if first == 0 else []
        batch += rounds(max(first, 1), min(first + BATCH, count), experts)
        batch += [settings_record(count, AFTER)] if first + BATCH > count else []
        began = time.process_time()
        steps.send(batch)
        seconds += time.process_time() - began
    began = time.process_time()
    answer(steps, ())
    stage.publish(Effects())
    return seconds + time.process_time() - began


def snapshot(stage: FeedStage) -> tuple[float, bytes, Mapping[bytes, bytes]]:
    """CPU seconds of all rows, the head, and the rows."""
    began = time.process_time()
    taken = stage.snapshot()
    rows = {key: value for key, value in taken.entries.items() if value is not None}
    return time.process_time() - began, taken.head, rows


def load(head: bytes, rows: Mapping[bytes, bytes]) -> float:
    """CPU seconds until another stage has taken the state up."""
    began = time.process_time()
    FeedStage(topic=FEED_LOG, partition=0).load(head, rows)
    return time.process_time() - began


def measure(count: int, experts: int) -> dict[str, float]:
    """Everything, as figures by name."""
    stage = stage_that_needs_rebuild(count, experts)
    before = peak_mb()
    seconds = carry_out_rebuilds(stage, count, experts)
    after = peak_mb()
    snapshot_seconds, head, rows = snapshot(stage)
    del stage
    size = sum(len(key) + len(value) for key, value in rows.items())
    return {
        "records": count + 1,
        "experts": experts,
        "records_per_cpu_second": round((count + 1) / seconds),
        "state_mb": round(size / 1e6, 1),
        "memory_mb": round(after - before, 1),
        "snapshot_seconds": round(snapshot_seconds, 2),
        "load_seconds": round(load(head, rows), 2),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--experts", type=int, default=EXPERTS, help="of each round")
    parser.add_argument("--short", action="store_true", help=f"{SHORT_ROUNDS} rounds")
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    options = parser.parse_args()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    found = measure(SHORT_ROUNDS if options.short else options.rounds, options.experts)
    print(json.dumps(found) if options.json else ", ".join(f"{name} {value:,}" for name, value in found.items()))


if __name__ == "__main__":
    main()
