"""One process of the soak: both stages of a partition, their state written as the worker writes it, sampled as it goes.

It is started by ``benchmarks.soak``, prints a line of JSON for every sample and says nothing else.
"""

import gc
import hashlib
import json
import resource
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.lives import Lives
from benchmarks.soak_log import Compacted, held
from benchmarks.workload import Message
from stream_peer.events import topics
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.changelog import ChangelogReader, Writer, token_row
from stream_peer.log.stage import Effects, LogRecord, Output
from stream_peer.questions.stage import QuestionStage
from stream_peer.settings.feed.document import load_document

CHUNK = 100
"""Questions between two marks: places from which the events can be told again."""


class Part(NamedTuple):
    """What a process is asked for: questions from ``begin`` to ``end`` of ``questions``, with what is in a directory.

    ``killed``: it ends without a last snapshot.
    """

    directory: str
    lives: tuple[Any, ...]
    document: dict[str, Any]
    questions: int
    end: int
    every: int
    samples: int
    killed: bool = False


class Durable:
    """A stage and its changelog."""

    def __init__(self, stage: FeedStage | QuestionStage, log: Compacted, token: str) -> None:
        self.stage: Any = stage
        self.log = log
        fold = ChangelogReader()
        log.append([token_row(0, token)])
        for place, key, value in log.rows():
            fold.add(place, key, value)
        found = fold.recovered()
        self.applied = found.applied
        stage.load(found.head, found.entries)
        if isinstance(stage, FeedStage):
            for _ in stage.recount():
                pass
            if stage.needs_rebuild:
                msg = "the state needs a rebuild"
                raise RuntimeError(msg)
        self._writer = Writer(fold, 0, token, fold.next)

    def step(self, record: LogRecord) -> list[Output]:
        """Fold a record."""
        effects = Effects()
        self.stage.step(record, effects)
        self.applied = record.offset
        return effects.outputs

    def snapshot(self) -> None:
        """Write what has changed, then the head."""
        snapshot = self.stage.snapshot()
        for rows in (self._writer.entry_rows(snapshot, self.applied), [self._writer.head_row(snapshot, self.applied)]):
            base = self.log.append(rows)
            self._writer.appended(base, self.log.end - base)
        self._writer.committed(snapshot, self.applied)


class Run:
    """Both stages, from where their state ends."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.lives = Lives(*part.lives)
        directory = Path(part.directory)
        settings = load_document(part.document)
        token = f"token-{time.time_ns()}"
        began = time.perf_counter()
        question = QuestionStage(
            topic=topics.FORECAST_EVENTS, partition=0, partitions=1, feed_log_partitions=1, settings=settings
        )
        feed = FeedStage(topic=topics.FEED_LOG, partition=0, secret=b"soak", settings=settings)
        self.question = Durable(question, Compacted(directory / "question.db"), token)
        self.feed = Durable(feed, Compacted(directory / "feed.db"), token)
        self.recovery_seconds = time.perf_counter() - began
        self._mark_file = directory / "mark.json"
        self._marks: list[tuple[int, int]] = [(0, 0)]
        if self._mark_file.exists():
            self._marks = [tuple(json.loads(self._mark_file.read_text()))]
        self._offset = self._marks[0][1]
        self._digest = hashlib.blake2b(digest_size=16)
        self.counts = {"events": 0, "outputs": 0, "feed_log": 0, "dead_letters": 0, "largest_dead_letter": 0}

    def run(self) -> None:
        """Fold the part's questions; print a sample now and then."""
        window = max(1, self.part.questions // self.part.samples)
        self._report(self._marks[0][0])
        for number, messages in self.lives.steps(self._marks[0][0], self.part.end):
            if number % CHUNK == 0:
                self._marks.append((number, self._offset))
            for message in messages:
                self._take(message)
            if (number + 1) % window == 0 and self._offset > self.question.applied:
                self._report(number + 1)
        if not self.part.killed:
            self._snapshot()
            self._report(self.part.end, state=True)

    def _take(self, message: Message) -> None:
        offset = self._offset
        self._offset += 1
        if offset <= self.question.applied:
            return
        self.counts["events"] += 1
        outputs = self.question.step(LogRecord(offset, message.at, message.key, message.value))
        self._put(outputs)
        if (offset + 1) % self.part.every == 0:
            self._snapshot()

    def _put(self, outputs: Iterable[Output]) -> None:
        for output in outputs:
            self.counts["outputs"] += 1
            self._digest.update(output.topic.encode() + (output.key or b"") + (output.value or b""))
            if output.topic == topics.FEED_LOG:
                self.counts["feed_log"] += 1
                at = self.feed.applied + 1
                self._put(self.feed.step(LogRecord(at, output.timestamp, output.key, output.value)))
            elif output.topic == topics.DEAD_LETTERS:
                self.counts["dead_letters"] += 1
                size = len(output.value or b"")
                self.counts["largest_dead_letter"] = max(size, self.counts["largest_dead_letter"])

    def _snapshot(self) -> None:
        effects = Effects()
        self.feed.stage.publish(effects)
        self._put(effects.outputs)
        for durable in (self.feed, self.question):
            durable.snapshot()
        for durable in (self.feed, self.question):
            durable.log.commit()
        self._marks = [mark for mark in self._marks if mark[1] <= self._offset][-1:]
        self._mark_file.write_text(json.dumps(self._marks[0]))

    def _report(self, number: int, *, state: bool = False) -> None:
        """Print what is held now; ``state``: and a digest of all of it."""
        sample = {
            "number": number,
            "seconds": time.process_time(),
            "rss": _rss(),
            "blocks": _blocks(),
            "recovery_seconds": self.recovery_seconds,
            "state": self.question.log.size() + self.feed.log.size(),
            "digest": self._digest.hexdigest(),
            **held(self.question.log.values(), self.feed.log.values())._asdict(),
            **self.counts,
        }
        self._digest = hashlib.blake2b(digest_size=16)
        if state:
            sample["final"] = self._state_digest()
        print(json.dumps(sample), flush=True)

    def _state_digest(self) -> str:
        digest = hashlib.blake2b(digest_size=16)
        for durable in (self.question, self.feed):
            for kind, value in sorted(durable.log.values()):
                digest.update(kind + value)
        return digest.hexdigest()


def _rss() -> int:
    """Bytes of memory that the process has now."""
    pages = Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]
    return int(pages) * resource.getpagesize()


def _blocks() -> int:
    """Objects in memory that are in use, but for large ones: exact, where memory is what the allocator makes of it."""
    gc.collect()
    return sys.getallocatedblocks()


def main() -> None:
    """Run the part that standard input describes."""
    part = Part(*json.loads(sys.stdin.read()))
    run = Run(part)
    gc.freeze()
    run.run()


if __name__ == "__main__":
    main()
