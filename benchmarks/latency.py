"""From a record's append to what follows from it: ``python -m benchmarks.latency [--seconds N] [--archive QUESTIONS]``.

An open loop: forecasts come at their times, however slow the worker is. Told apart are

- rounds: a forecast moves the clock past a question's close, until the last of the question's three outputs;
- outcomes: a resolution, until the peer losses with it;
- state: a forecast, until the head of the state that covers it.

All moments are the broker's, when it appended a record, so neither the feeder nor a reader is in them. In the second
half the settings of a feed with many rounds change, and it is rebuilt; what shares its partition is told apart.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
from aiokafka import AIOKafkaProducer
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from benchmarks.checks import read_all
from benchmarks.deployment import Deployment
from benchmarks.feeding import feed
from benchmarks.measuring import Cost, Groups, Meter, wait_for
from benchmarks.pages import draw, in_markdown, write
from benchmarks.pipeline import broker, machine
from benchmarks.workload import FORECASTS_PER_QUESTION, Message, Workload
from stream_peer.events.feed_log import OutcomeRevealed, Round, decode_feed_log
from stream_peer.events.partitioning import partition_of
from stream_peer.events.topics import FEED_LOG, FORECAST_EVENTS
from stream_peer.log.changelog import HeadRecord
from stream_peer.serve.pages.parts import INK, SERIES_COLOURS, PictureSize, quiet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PARTITIONS, FEEDS = 4, 50
RATE = 5_000
LIFE = 10_000
BEFORE = 3 * LIFE  # what comes earlier is not looked at: the worker, its caches and the feeds are new
TICK_SECONDS = 0.01
DEADLINE = 300.0
ARCHIVE = "feed-0"
OUTPUTS = ("reference-answers", "peer-losses", "mixed-forecasts")
PERCENTILES = (50, 90, 99, 99.9)
SIZE = PictureSize(1080, 380)

Waits = Mapping[str, Sequence[int]]
"""Milliseconds, by what was waited for."""

_decode_head = msgspec.msgpack.Decoder(HeadRecord).decode


class _State(msgspec.Struct):
    question: str
    state: str


_decode_state = msgspec.json.Decoder(_State).decode


class Logs(NamedTuple):
    """Records of a deployment's topics, as a client reads them."""

    events: Sequence[Any]
    feed_log: Sequence[Any]
    outputs: Mapping[str, Sequence[Any]]
    changelog: Sequence[Any]


class Span(NamedTuple):
    """What is looked at: causes appended from ``begin`` to ``end``. From ``rebuild`` on a feed is rebuilt."""

    begin: int
    rebuild: int
    end: int


def waits(logs: Logs, span: Span, archive_partition: int) -> Waits:
    """How long each consequence took."""
    found: dict[str, list[int]] = {"rounds": [], "outcomes": []}
    appended = {(record.partition, record.offset): record.timestamp for record in logs.events}
    shown = {topic: _first_shown(records) for topic, records in logs.outputs.items()}
    for record in logs.feed_log:
        told = decode_feed_log(record.value)
        cause = appended.get((told.src.partition, told.src.offset), 0)
        if told.src.topic != FORECAST_EVENTS or not span.begin <= cause < span.end:
            continue
        place = "" if cause < span.rebuild else ", a rebuild in its partition"
        if place and record.partition != archive_partition:
            place = ", a rebuild elsewhere"
        if isinstance(told, Round):
            moments = [seen[told.question_id, False] for seen in shown.values()]
            found.setdefault(f"rounds{place}", []).append(max(moments) - cause)
        elif isinstance(told, OutcomeRevealed):
            found.setdefault(f"outcomes{place}", []).append(shown["peer-losses"][told.question_id, True] - cause)
    return {**found, "state": _until_durable(logs, span)}


def _first_shown(records: Sequence[Any]) -> dict[tuple[str, bool], int]:
    """When a question was first published, and when it was first published with its outcome."""
    found: dict[tuple[str, bool], int] = {}
    for record in records:
        said = _decode_state(record.value)
        found.setdefault((said.question, said.state == "resolved"), record.timestamp)
    return found


def _until_durable(logs: Logs, span: Span) -> list[int]:
    heads: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for record in logs.changelog:
        if record.key.endswith(b"/head"):
            heads[record.partition].append((_decode_head(record.value).applied, record.timestamp))
    found: list[int] = []
    for partition, written in heads.items():
        applied, moments = np.array(written).T
        mine = [r for r in logs.events if r.partition == partition and span.begin <= r.timestamp < span.end]
        places = np.searchsorted(applied, [record.offset for record in mine])
        found += (moments[places] - [record.timestamp for record in mine]).tolist()
    return found


def table(measured: Waits, cores: float) -> list[str]:
    """Percentiles of all waits."""
    rows = []
    for name, found in measured.items():
        if found:
            parts = np.percentile(found, [*PERCENTILES, 100], method="higher")
            rows.append([name, f"{len(found):,}", *(f"{part:,.0f}" for part in parts)])
    head = "milliseconds until", "how many", *(f"p{part:g}" for part in PERCENTILES), "most"
    return [*in_markdown(head, rows), "", f"The worker took {cores:.2f} of a core."]


def paint(axes: "Axes", measured: Waits) -> None:
    """How many of a hundred waited how long."""
    quiet(axes)
    edges = np.geomspace(1, 10_000, 61)
    for colour, (name, found) in zip(SERIES_COLOURS, measured.items(), strict=False):
        shares = 100 * np.histogram(np.maximum(found, 1), edges)[0] / max(1, len(found))
        axes.stairs(shares, edges, color=colour, linewidth=2, label=name)
    axes.set_xscale("log")
    axes.set_xlabel("milliseconds", color=INK)
    axes.set_ylabel("of a hundred", color=INK)
    axes.legend(frameon=False, labelcolor=INK)


class Feeder:
    """Sends every message when its time has come. ``late``: milliseconds by which it came later than that."""

    def __init__(self, bootstrap: str, topic: str, workload: Workload) -> None:
        self._bootstrap, self._topic = bootstrap, topic
        self._queues = [iter(workload.messages(partition, PARTITIONS)) for partition in range(PARTITIONS)]
        self.late: list[int] = []

    async def run(self) -> None:
        """Send all."""
        async with AIOKafkaProducer(bootstrap_servers=self._bootstrap, enable_idempotence=True) as producer:
            await asyncio.gather(*(self._send(producer, partition) for partition in range(PARTITIONS)))

    async def _send(self, producer: AIOKafkaProducer, partition: int) -> None:
        sent = []
        for messages in self._due(self._queues[partition]):
            ahead = messages[-1].at / 1000 - time.time()
            await asyncio.sleep(max(0.0, ahead))
            self.late.append(round(-1000 * min(0.0, messages[-1].at / 1000 - time.time())))
            batch = producer.create_batch()
            for message in messages:
                batch.append(key=message.key, value=message.value, timestamp=None)
            sent.append(await producer.send_batch(batch, self._topic, partition=partition))
        await asyncio.gather(*sent)

    def _due(self, queue: Iterator[Message]) -> Iterator[list[Message]]:
        """Messages of one tick of the clock."""
        due: list[Message] = []
        for message in queue:
            if due and message.at - due[0].at >= 1000 * TICK_SECONDS:
                yield due
                due = []
            due.append(message)
        if due:
            yield due


class Run:
    """One deployment, measured while forecasts come."""

    def __init__(self, deployment: Deployment, seconds: float, archive: int, settings: Mapping[str, Any]) -> None:
        self._deployment = deployment
        self._seconds = seconds
        self._archive = archive
        self._settings = dict(settings)
        self.late: list[int] = []

    def measure(self) -> tuple[Waits, Cost]:
        """Run it, and read what it wrote."""
        self._prepare(history=True)
        deployment, topic = self._deployment, self._deployment.topic(FORECAST_EVENTS)
        with Groups(deployment.bootstrap) as groups, deployment.worker() as process, Meter(process.pid) as meter:
            deployment.command("settings", "apply")
            wait_for(lambda: min(groups.ends(topic).values()) > 0, DEADLINE, "the settings never came", process)
            feed(deployment.bootstrap, topic, PARTITIONS, Workload(self._archive, as_messages=True, feeds=1))
            wait_for(lambda: self._has_read_all(groups), DEADLINE, "the archive was never folded", process)
            span, cost = asyncio.run(self._live(meter))
            wait_for(lambda: self._has_read_all(groups), DEADLINE, "the worker never finished", process)
        return waits(self._logs(), span, partition_of(ARCHIVE.encode(), PARTITIONS)), cost

    async def _live(self, meter: Meter) -> tuple[Span, Cost]:
        count = int(self._seconds * RATE / FORECASTS_PER_QUESTION)
        within = int(1000 * self._seconds)
        start = _now() + 1000 * (5 + within // 10_000)  # it takes some time to make the events
        workload = Workload(count, start=start, within=within, open_for=LIFE, feeds=FEEDS, resolved=1.0, name="live")
        feeder = Feeder(self._deployment.bootstrap, self._deployment.topic(FORECAST_EVENTS), workload)
        begin, end = workload.start + BEFORE, workload.start + within
        sending = asyncio.create_task(feeder.run())
        await asyncio.sleep((begin - _now()) / 1000)
        since = time.monotonic()
        await asyncio.sleep((end - begin) / 2000)
        rebuild = _now() if self._archive else end
        if self._archive:
            self._prepare(history=True, loss="log")
            await asyncio.to_thread(self._deployment.command, "settings", "apply")
        await asyncio.sleep((end - _now()) / 1000)
        cost = meter.between(since, time.monotonic())
        await sending
        self.late = feeder.late
        return Span(begin, rebuild, end), cost

    def _prepare(self, **archive: Any) -> None:
        """The settings, and of outputs the time at which they are appended."""
        counts = {"forecast_events": PARTITIONS, "feed_log": PARTITIONS}
        every = {"round_every": "1d", "grace": "0s"}
        self._deployment.prepare(partitions=counts, defaults=every, feeds={ARCHIVE: archive}, **self._settings)
        admin: Any = KafkaAdminClient(bootstrap_servers=self._deployment.bootstrap)
        names = [self._deployment.topic(name) for name in OUTPUTS]
        by_append = {"message.timestamp.type": "LogAppendTime"}
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, configs=by_append) for name in names])
        admin.close()

    def _has_read_all(self, groups: Groups) -> bool:
        reads = {"question": FORECAST_EVENTS, "feed": FEED_LOG}
        group, topic = self._deployment.group, self._deployment.topic
        return all(groups.has_read_all(group(stage), topic(name)) for stage, name in reads.items())

    def _logs(self) -> Logs:
        def read(name: str) -> list[Any]:
            return read_all(self._deployment.bootstrap, name)

        topic = self._deployment.topic
        changelog = read(self._deployment.group("question") + "-question-state-changelog")
        return Logs(
            read(topic(FORECAST_EVENTS)), read(topic(FEED_LOG)), {t: read(topic(t)) for t in OUTPUTS}, changelog
        )


def _now() -> int:
    return time.time_ns() // 1_000_000


def main() -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=150.0, help="of forecasts; the first 30 are not looked at")
    parser.add_argument("--archive", type=int, default=5_000, help="questions of the feed that is rebuilt; 0: none is")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the worker")
    parser.add_argument("--bootstrap", help="a broker that is there; otherwise one is started")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the table into this page as well")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw the histogram")
    options = parser.parse_args()
    settings = {name: msgspec.yaml.decode(value) for name, _, value in (one.partition("=") for one in options.set)}
    began = machine(1)
    with (
        tempfile.TemporaryDirectory(prefix="stream-peer-latency-") as name,
        broker(options.bootstrap, Path(name)) as at,
    ):
        directory = Path(name) / "worker"
        directory.mkdir()
        run = Run(Deployment(at, f"latency-{_now()}-", directory), options.seconds, options.archive, settings)
        measured, cost = run.measure()
    late = np.percentile(run.late, 99)
    heading = f"**Measured** on {began}; {RATE:,} forecasts a second, 99 of 100 sent at most {late:.0f} ms late:"
    lines = [heading, "", *table(measured, cost.cpu_seconds / cost.wall_seconds)]
    print("\n".join(lines))
    if options.write:
        write(options.write, lines, "latency")
    if options.picture:
        draw(options.picture, lambda axes: paint(axes, measured), SIZE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
