"""What a forecast costs with few and with many of everything: ``python -m benchmarks.scale [--short] [--write FILE]``.

Without Kafka, in CPU time:

- a forecast, with 1,000 to 1,000,000 open questions, and with questions of 10 to 10,000 experts;
- until a new owner of the partition has taken up so many open questions;
- a round of 50 experts, in 16 feeds, in 1,000, and in 1,000 of which one has nine rounds of ten.

It exits with 1 where a cost is not flat within 15 %, or a recovery takes longer than it may. ``--short`` goes up to
10,000 questions and 1,000 experts.
"""

import argparse
import gc
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from benchmarks.pages import draw, in_markdown, write
from benchmarks.pipeline import machine
from benchmarks.rebuild import GC_THRESHOLDS, MINUTE, rounds
from benchmarks.sizes import Again, questions
from benchmarks.soak_run import Durable
from benchmarks.workload import START
from stream_peer.events.feed_log import decode_feed_log, encode_feed_log
from stream_peer.events.times import to_iso
from stream_peer.events.topics import FEED_LOG, FORECAST_EVENTS
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.stage import Effects, LogRecord
from stream_peer.questions.stage import QuestionStage
from stream_peer.serve.pages.parts import INK, SERIES_COLOURS, PictureSize, quiet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OPEN = (1_000, 10_000, 100_000, 1_000_000)
EXPERTS = (10, 100, 1_000, 10_000)
TOLD = 1_000  # questions that are told; more are these again, under other ids
EXPERTS_OF_EACH = 6
WITH_MANY, FEWER = 100, 5_000  # questions with so many experts, and forecasts of a run: no expert says more than 64
FORECASTS, STRIDE, RUNS = 20_000, 512, 5  # a run ends with a snapshot, as in the worker; STRIDE as the driver's
ROUNDS, PUBLISHED_AFTER = 6_000, 500
FLAT_WITHIN = 0.15
RECOVERY_OF_A_MILLION = 15.0
SIZE = PictureSize(1080, 380)


class Cost(NamedTuple):
    """Microseconds of CPU for one forecast: its fold, and its part of a snapshot's entries."""

    fold: float
    state: float


class Feeds(NamedTuple):
    """Microseconds of CPU for one round: its fold, and its part of what is published of feeds after every 500."""

    fold: float
    publish: float


class Found(NamedTuple):
    """Everything, by how many there are; ``recovery`` in seconds."""

    questions: Mapping[int, Cost]
    recovery: Mapping[int, float]
    experts: Mapping[int, Cost]
    feeds: Mapping[str, Feeds]


def _again(rows: Sequence[tuple[int, bytes, bytes]], count: int) -> Iterator[tuple[int, bytes, bytes]]:
    """The rows of a changelog in which each question comes again under other ids, until there are so many."""
    of_questions = [row for row in rows if b"/q/" in row[1]]
    first = rows.index(of_questions[0])
    yield from rows[:first]
    for number in range(count):
        _, key, value = of_questions[number % len(of_questions)]
        yield first + number, key[: key.index(b"/q/") + 3] + _question_id(number).encode(), value
    for number, (_, key, value) in enumerate(rows[first + len(of_questions) :], first + count):
        yield number, key, value


def _question_id(number: int) -> str:
    return f"question-{number:07d}"


def _stage() -> QuestionStage:
    return QuestionStage(topic=FORECAST_EVENTS, partition=0, partitions=1, feed_log_partitions=1)


def recovery(count: int) -> tuple[float, Durable]:
    """CPU seconds in which so many open questions are taken up, and what did it."""
    rows = list(questions(min(count, TOLD), experts=EXPERTS_OF_EACH).log.rows())
    log = Again(list(_again(rows, count)))
    began = time.process_time()
    durable = Durable(_stage(), log, "next")
    return time.process_time() - began, durable


def cost(stage: QuestionStage, count: int, experts: int, forecasts: int = FORECASTS) -> Cost:
    """Medians over some runs of forecasts that come to any of the questions, from any of their experts."""
    draw_one = random.Random(count)
    folds, states = [], []
    stage.snapshot()
    known = stage.open_questions
    for run in range(RUNS):
        records = [_forecast(run * forecasts + n, draw_one, count, experts) for n in range(forecasts)]
        began = time.process_time()
        effects, done = Effects(), 0
        while done < len(records):
            done += stage.steps(records[done : done + STRIDE], effects)
        folded = time.process_time()
        stage.snapshot()
        folds.append(folded - began)
        states.append(time.process_time() - folded)
        if effects.outputs or stage.open_questions != known or effects.counts["event", "forecast"] != forecasts:
            msg = f"not all are forecasts of the open questions: {effects.counts}"
            raise RuntimeError(msg)
    return Cost(1e6 * median(folds) / forecasts, 1e6 * median(states) / forecasts)


def _forecast(number: int, draw_one: random.Random, count: int, experts: int) -> LogRecord:
    at = START + MINUTE + number
    value = {
        "type": "forecast",
        "question_id": _question_id(draw_one.randrange(count)),
        "expert_id": f"expert-{draw_one.randrange(experts):04d}",
        "probability": 0.4,
        "at": to_iso(at),
    }
    return LogRecord(1_000_000_000 + number, at, b"q", msgspec.json.encode(value))


def feeds(name_of: Callable[[int], str]) -> Feeds:
    """A feed stage that folds rounds of feeds, named by the number of the round, and publishes now and then."""
    stage = FeedStage(topic=FEED_LOG, partition=0)
    folded = published = 0.0
    for first in range(0, ROUNDS, PUBLISHED_AFTER):
        records = [_of_feed(record, name_of(record.offset)) for record in rounds(first, first + PUBLISHED_AFTER, 50)]
        began = time.process_time()
        effects = Effects()
        for record in records:
            stage.step(record, effects)
        then = time.process_time()
        stage.publish(effects)
        folded += then - began
        published += time.process_time() - then
    return Feeds(1e6 * folded / ROUNDS, 1e6 * published / ROUNDS)


def _of_feed(record: LogRecord, name: str) -> LogRecord:
    told = msgspec.structs.replace(decode_feed_log(record.value or b""), feed=name)
    return record._replace(key=name.encode(), value=encode_feed_log(told))


def measured(open_numbers: Sequence[int], expert_numbers: Sequence[int]) -> Found:
    """Everything."""
    by_questions, seconds, by_experts = {}, {}, {}
    for count in open_numbers:
        seconds[count], durable = recovery(count)
        by_questions[count] = cost(durable.stage, count, EXPERTS_OF_EACH)
        del durable
        gc.collect()
    for experts in expert_numbers:
        by_experts[experts] = cost(questions(WITH_MANY, experts=experts).stage, WITH_MANY, experts, FEWER)
        gc.collect()
    by_feeds = {
        "16 feeds": feeds(lambda number: f"feed-{number % 16}"),
        "1,000 feeds": feeds(lambda number: f"feed-{number % 1_000}"),
        "1,000, one of them with nine rounds of ten": feeds(lambda n: "hot" if n % 10 else f"feed-{n // 10 % 999}"),
    }
    return Found(by_questions, seconds, by_experts, by_feeds)


def faults(found: Found) -> list[str]:
    """What does not hold."""
    said = []
    for name, costs in (("open questions", found.questions), ("experts", found.experts)):
        folds = {count: one.fold for count, one in costs.items()}
        most, least = max(folds, key=folds.__getitem__), min(folds, key=folds.__getitem__)
        beyond = folds[most] / folds[least] - 1
        if beyond > FLAT_WITHIN:
            said.append(f"with {most:,} {name} a forecast costs {beyond:.0%} more than with {least:,}")
    for count, seconds in found.recovery.items():
        if seconds > RECOVERY_OF_A_MILLION * max(1.0, count / 1_000_000):
            said.append(f"{count:,} open questions were taken up in {seconds:.1f} s")
    return said


def tables(found: Found) -> Iterator[str]:
    """Lines of three tables."""
    questions = [
        (f"{count:,}", f"{one.fold:.2f}", f"{one.state:.2f}", f"{found.recovery[count]:.2f}")
        for count, one in found.questions.items()
    ]
    experts = [(f"{count:,}", f"{one.fold:.2f}", f"{one.state:.2f}") for count, one in found.experts.items()]
    feeds = [(name, f"{each.fold:,.0f}", f"{each.publish:,.0f}") for name, each in found.feeds.items()]
    yield from in_markdown(("open questions", "a forecast, µs", "its state, µs", "taken up, s"), questions, 0)
    yield from ("", *in_markdown(("experts of a question", "a forecast, µs", "its state, µs"), experts, 0))
    yield from ("", *in_markdown(("feeds", "a round, µs", "published of it, µs"), feeds))


def paint(axes: "Axes", found: Found) -> None:
    """A forecast's cost over how many there are, with the band in which it counts as flat."""
    quiet(axes)
    curves = {"open questions": found.questions, "experts of a question": found.experts}
    for colour, (name, costs) in zip(SERIES_COLOURS, curves.items(), strict=False):
        folds = [one.fold for one in costs.values()]
        axes.plot(list(costs), folds, color=colour, linewidth=2, marker="o", label=name)
        axes.axhspan(min(folds), (1 + FLAT_WITHIN) * min(folds), color=colour, alpha=0.12, linewidth=0)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("how many", color=INK)
    axes.set_ylabel("µs a forecast", color=INK)
    axes.legend(frameon=False, labelcolor=INK)


def main() -> int:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="up to 10,000 questions and 1,000 experts")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the tables into this page as well")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw what a forecast costs")
    options = parser.parse_args()
    began = machine(1)
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    found = measured(*((OPEN[:2], EXPERTS[:3]) if options.short else (OPEN, EXPERTS)))
    lines = [f"**Measured** on {began}:", "", *tables(found)]
    print("\n".join(lines))
    if options.write:
        write(options.write, lines, "scale")
    if options.picture:
        draw(options.picture, lambda axes: paint(axes, found), SIZE)
    wrong = faults(found)
    print("\n".join(wrong))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
