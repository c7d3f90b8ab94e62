"""What one of each takes, in memory and in the changelogs after compaction: the tables of docs/sizing.md.

``python -m benchmarks.sizes [--json] [--write docs/measured/sizes.md]``. The stages are run with so many of a thing and
with twice as many; the difference is what it takes. Memory counts the stage and what recovery keeps of its changelog.
"""

import argparse
import gc
import json
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import cramjam
import msgspec

from benchmarks.pages import in_markdown
from benchmarks.soak_log import Compacted
from benchmarks.soak_run import Durable
from benchmarks.workload import DAY, START, Workload
from stream_peer.events import topics
from stream_peer.events.feed_log import OutcomeRevealed, Round, Source, encode_feed_log
from stream_peer.events.times import Milliseconds, to_iso
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.signatures import Signatures
from stream_peer.log.stage import Effects, LogRecord, Output
from stream_peer.questions.stage import QuestionStage
from stream_peer.settings.feed.document import load_document

MANY = 400
LONG_AFTER = START + 365 * DAY
YEARS_AFTER = START + 5 * 365 * DAY
MILLION = 1_000_000


class Size(NamedTuple):
    """Bytes of one of them."""

    memory: float
    state: float

    def minus(self, other: "Size", times: float = 1.0) -> "Size":
        """What is beyond another, by so many."""
        return Size((self.memory - other.memory) / times, (self.state - other.state) / times)


def size_of(made: Callable[[int], Durable], many: int = MANY) -> Size:
    """Of one more of what ``made`` makes: the difference between twice as many and as many."""
    one, two = _measured(made, many), _measured(made, 2 * many)
    return two.minus(one, many)


def _measured(made: Callable[[int], Durable], count: int) -> Size:
    made(2)
    gc.collect()
    tracemalloc.start()
    durable = made(count)
    gc.collect()
    memory, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return Size(memory, durable.log.size())


# --- the question stage ---


def questions(count: int, *, experts: int = 6, forecasts: int = 1, until: Milliseconds = 0) -> Durable:
    """A question stage with so many questions, open or closed so long ago that only stubs are left."""
    stage = QuestionStage(
        topic=topics.FORECAST_EVENTS, partition=0, partitions=1, feed_log_partitions=1, settings=load_document({})
    )
    durable = Durable(stage, Compacted(Path(":memory:")), "token")
    offset = -1
    for offset, (at, value) in enumerate(_told(count, experts, forecasts)):
        durable.step(LogRecord(offset, at, b"q", value))
    if until:
        tick = msgspec.json.encode({"type": "tick", "now": to_iso(until)})
        signed = Signatures().signed(Output(topics.FORECAST_EVENTS, b"tick", tick, until, 0))
        durable.step(LogRecord(offset + 1, until, b"tick", tick, signed.headers))
    durable.snapshot()
    durable.snapshot()
    return durable


def _told(count: int, experts: int, forecasts: int) -> Iterator[tuple[Milliseconds, bytes]]:
    encode = msgspec.json.encode
    for number in range(count):
        about: dict[str, Any] = {"question_id": f"question-{number:07d}", "at": to_iso(START)}
        times = {"opens_at": to_iso(START), "closes_at": to_iso(START + 30 * DAY)}
        yield START, encode({"type": "question", "feed": "econ", **about, **times})
        for index in range(forecasts):
            for expert in range(experts):
                about["at"] = to_iso(START + index * 1000)
                about["expert_id"] = f"expert-{expert:04d}"
                yield START + index * 1000, encode({"type": "forecast", "probability": 0.3, **about})


# --- the feed stage ---


def feed_of(
    count: int, *, experts: int = 6, rounds: int = 1, pool: int = 0, expired: bool = False, **settings: Any
) -> Durable:
    """A feed stage whose ledger has so many entries; with ``expired`` their names only.

    ``pool``: so many experts take part in turn.
    """
    book = load_document({"defaults": settings})
    durable = Durable(
        FeedStage(topic=topics.FEED_LOG, partition=0, settings=book), Compacted(Path(":memory:")), "token"
    )
    for offset, (at, event) in enumerate(_rounds(count, experts, rounds, pool, expired=expired)):
        durable.step(LogRecord(offset, at, b"econ", encode_feed_log(event)))
    durable.stage.publish(Effects())
    durable.snapshot()
    durable.snapshot()
    return durable


def _rounds(
    count: int, experts: int, rounds: int, pool: int, *, expired: bool
) -> Iterator[tuple[Milliseconds, Round | OutcomeRevealed]]:
    offset = 0
    for number in range(count):
        for index in range(rounds):
            names = [f"expert-{(number * experts * bool(pool) + n) % max(pool, experts):06d}" for n in range(experts)]
            yield (
                START,
                Round(
                    src=Source(topics.FORECAST_EVENTS, 0, 0, offset, 0),
                    feed="econ",
                    question_id=f"question-{number:07d}",
                    boundary=START + index * DAY,
                    experts=sorted(names),
                    probabilities=[0.01 + 0.98 * ((7 * n + number) % 50) / 50 for n in range(experts)],
                ),
            )
            offset += 1
    if expired:
        source = Source(topics.FORECAST_EVENTS, 0, 0, offset, 0)
        yield YEARS_AFTER, OutcomeRevealed(src=source, feed="econ", question_id="last", outcome=1)


def experts_of(count: int, **settings: Any) -> Durable:
    """A feed of so many experts, whose questions have all left the ledger."""
    return feed_of(-(-count // 20), experts=20, pool=count, expired=True, ledger_max=1, **settings)


# --- logs ---


def feed_log_round(experts: int) -> dict[str, float]:
    """Bytes of a round in the feed-log: as it is, and compressed as the worker does it, alone and in a batch of 50."""
    workload = Workload(400)
    stage = QuestionStage(
        topic=topics.FORECAST_EVENTS,
        partition=0,
        partitions=1,
        feed_log_partitions=1,
        settings=load_document({"defaults": {"history": True}}),
    )
    effects = Effects()
    heard = {f'"expert-{n}"'.encode() for n in range(60)} if experts == 50 else _SOME[:experts]
    for offset, message in enumerate(workload.partition(0, 1)):
        is_forecast = b'"forecast"' in message.value
        if not is_forecast or any(name in message.value for name in heard):
            stage.step(LogRecord(offset, message.at or YEARS_AFTER, *message[1:]), effects)
    values = [output.value or b"" for output in effects.outputs if output.topic == topics.FEED_LOG]
    rounds = [value for value in values if b'"type":"round"' in value]
    batches = [b"".join(rounds[start : start + 50]) for start in range(0, len(rounds), 50)]
    return {
        "": sum(map(len, rounds)) / len(rounds),
        ", zstd, alone": sum(len(bytes(cramjam.zstd.compress(one))) for one in rounds) / len(rounds),
        ", zstd, in fifties": sum(len(bytes(cramjam.zstd.compress(batch))) for batch in batches) / len(rounds),
    }


_SOME = [f'"expert-{n}"'.encode() for n in range(2, 60, 8)]


def output_sizes(experts: int) -> dict[str, float]:
    """Bytes of what is published: of a round by topic, and the newest weights."""
    stage = FeedStage(topic=topics.FEED_LOG, partition=0)
    effects = Effects()
    for offset, (at, event) in enumerate(_rounds(20, experts, 1, 0, expired=False)):
        stage.step(LogRecord(offset, at, b"econ", encode_feed_log(event)), effects)
    stage.publish(effects)
    last = {output.topic: len(output.value or b"") for output in effects.outputs}
    return {f"{topic}, {experts} experts": size for topic, size in sorted(last.items())}


def dead_letter_size() -> int:
    """Bytes around the payload of a dead letter: headers and key."""
    stage = QuestionStage(topic=topics.FORECAST_EVENTS, partition=0, partitions=1, feed_log_partitions=1)
    effects = Effects()
    stage.step(LogRecord(0, START, b"question-0000001", b"{}"), effects)
    letter: Output = effects.outputs[0]
    return sum(len(name) + len(value) for name, value in letter.headers) + len(letter.key or b"")


def recovery_seconds(made: Callable[[int], Durable], make: Callable[[], Any], many: int = 2_000) -> float:
    """Seconds to take a million of them up again."""
    durable = made(many)
    rows = list(durable.log.rows())
    log = Again(rows)
    began = time.process_time()
    Durable(make(), log, "next")
    return (time.process_time() - began) / many * MILLION


class Again(Compacted):
    """A changelog that is in memory, so that reading it costs nothing."""

    def __init__(self, rows: list[tuple[int, bytes, bytes]]) -> None:
        super().__init__(Path(":memory:"))
        self._rows = rows
        self.end = rows[-1][0] + 1

    def rows(self) -> Iterator[tuple[int, bytes, bytes]]:
        """What it was made of, and what was appended since."""
        yield from self._rows
        yield from super().rows()


# --- the table ---


def measured() -> dict[str, Any]:
    """All figures, by name."""
    found: dict[str, Any] = {}
    found["live question, 6 experts"] = live = size_of(questions)
    more = size_of(lambda count: questions(count, forecasts=5), 200)
    found["history entry"] = more.minus(live, 4 * 6)
    many = size_of(lambda count: questions(count, experts=50), 100)
    found["expert of a live question"] = many.minus(live, 44)
    rounds = size_of(lambda count: questions(count, until=START + 28 * DAY), 200)
    found["round of a live question"] = rounds.minus(live, 3)
    found["stub"] = size_of(lambda count: questions(count, until=LONG_AFTER), 1_000)
    found["ledger entry, 6 experts, 1 round"] = entry = size_of(feed_of)
    found["expert of a round in the ledger"] = size_of(lambda count: feed_of(count, experts=50), 200).minus(entry, 44)
    found["further round in the ledger, 6 experts"] = size_of(lambda count: feed_of(count, rounds=4), 200).minus(
        entry, 3
    )
    found["name of an expired question"] = size_of(lambda count: feed_of(count, expired=True))
    found["expert of a feed"] = size_of(experts_of)
    found["expert of a feed, vote_rule half"] = size_of(lambda count: experts_of(count, vote_rule="half"))
    found["expert of a feed, memory set"] = size_of(
        lambda count: feed_of(80, experts=count // 8, pool=count, expired=True, ledger_max=1, memory=8), 240
    )
    for experts in (6, 50):
        found |= {f"feed-log, round of {experts}{how}": size for how, size in feed_log_round(experts).items()}
        found |= output_sizes(experts)
    found["dead letter beside its payload"] = dead_letter_size()
    return found


def recoveries() -> dict[str, float]:
    """Seconds of recovery for a million of each."""

    def question_stage() -> QuestionStage:
        return QuestionStage(topic=topics.FORECAST_EVENTS, partition=0, partitions=1, feed_log_partitions=1)

    def feed_stage() -> FeedStage:
        return FeedStage(topic=topics.FEED_LOG, partition=0)

    return {
        "live questions, 6 experts": recovery_seconds(questions, question_stage),
        "stubs": recovery_seconds(lambda n: questions(n, until=LONG_AFTER), question_stage),
        "ledger entries, 6 experts": recovery_seconds(feed_of, feed_stage),
        "ledger entries, 50 experts": recovery_seconds(lambda n: feed_of(n, experts=50), feed_stage),
        "names": recovery_seconds(lambda n: feed_of(n, expired=True), feed_stage),
    }


def tables(found: dict[str, Any], seconds: dict[str, float]) -> Iterator[str]:
    """Lines of three tables: of what stays, of records, of recoveries."""
    both = [(name, size) for name, size in found.items() if isinstance(size, Size)]
    records = [(name, f"{size:,.0f}") for name, size in found.items() if not isinstance(size, Size)]
    sizes = [(name, f"{size.memory:,.0f}", f"{size.state:,.0f}") for name, size in both]
    yield from (*in_markdown(("one more, bytes", "memory", "state"), sizes), "")
    yield from (*in_markdown(("one more record", "bytes"), records), "")
    yield from in_markdown(("recovery of a million", "seconds"), [(name, f"{t:,.1f}") for name, t in seconds.items()])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the tables into this page as well")
    options = parser.parse_args()
    found, seconds = measured(), recoveries()
    if options.json:
        print(json.dumps({"bytes": found, "recovery": seconds}))
        return
    lines = "\n".join(tables(found, seconds))
    print(lines)
    if options.write:
        options.write.write_text(f"{lines}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
