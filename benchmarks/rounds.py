"""What a round, an outcome and a publish cost, beside another checkout: ``python -m benchmarks.engine --against TREE``.

Each checkout folds the same feed-log in a process of its own. They take turns of some records, so that both have the
same share of whatever else the machine does; a ratio is the median over pairs of the same record.
"""

import gc
import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

sys.path.insert(0, os.environ.get("PYTHONPATH", str(Path(__file__).parents[1])))

from stream_peer.events.feed_log import OutcomeRevealed, Round, Source, encode_feed_log
from stream_peer.events.topics import DEAD_LETTERS

FEED = "f"
HOUR = 3_600_000
START = 1_704_067_200_000
RESOLVED = 0.2
PUBLISH_EVERY = 20
ROOT = Path(__file__).parents[1]

MODULES = {
    "stage": ("stream_peer.feeds.stage", "stream_peer.engine.feed"),
    "log": ("stream_peer.log.stage", "stream_peer.engine.stage"),
    "settings": ("stream_peer.settings.feed.document", "stream_peer.events.feed_settings"),
}
"""Where a checkout has them: as here, or as before the rooms."""

PLAIN: Mapping[str, Any] = {"method_version": 2}
EVERYTHING: Mapping[str, Any] = {
    **PLAIN,
    "guard": "on",
    "memory": 400,
    "shadows": [
        {"name": "flat", "mixer": {"peer_rate": 1.0}},
        {"name": "quick", "mixer": {"truth_rate": 4.0}, "stretch": False},
    ],
}


@dataclass(frozen=True)
class Case:
    """A log to fold: of how many questions, with how many experts a round of how many, under which settings."""

    name: str
    questions: int
    present: int
    experts: int
    settings: Mapping[str, Any]
    turn: int = 60
    skip: int = 300

    @property
    def records(self) -> Iterator[tuple[int, str]]:
        """Time and value of each record: one round a question; a fifth get their outcome, three questions later."""
        random = np.random.default_rng(1)
        names = sorted(f"expert-{number}" for number in range(self.experts))
        skill = random.uniform(0.3, 1.5, self.experts)
        outcomes: dict[int, OutcomeRevealed] = {}
        for number in range(self.questions):
            at = START + number * HOUR
            truth = int(random.random() < 0.5)
            who = np.sort(random.permutation(self.experts)[: self.present])
            logits = skill[who] * (2 * truth - 1) + random.normal(0.0, 1.0, self.present)
            name = f"q{number:06d}"
            asked = Round(
                feed=FEED,
                question_id=name,
                src=Source("forecast-events", 0, 1, number, 0),
                boundary=at - 1000,
                final=True,
                experts=[names[place] for place in who.tolist()],
                probabilities=(1.0 / (1.0 + np.exp(-logits))).round(3).tolist(),
            )
            yield at, encode_feed_log(asked).decode()
            if random.random() < RESOLVED:
                source = Source("forecast-events", 0, 1, number + 3, 1)
                told = OutcomeRevealed(feed=FEED, question_id=name, src=source, outcome=1 if truth else 0)
                outcomes[number + 3] = told
            if number in outcomes:
                yield at + 1, encode_feed_log(outcomes[number]).decode()


CASES = (
    Case("50 of 60 experts", 1_500, 50, 60, PLAIN),
    Case("50 of 60 experts, with guard, memory and shadows", 1_500, 50, 60, EVERYTHING),
    Case("10,000 of 12,000 experts", 90, 10_000, 12_000, PLAIN, 6, 30),
    Case("10,000 of 12,000 experts, with guard, memory and shadows", 90, 10_000, 12_000, EVERYTHING, 6, 30),
)


def compare(tree: Path, cases: Sequence[Case] = CASES) -> Iterator[str]:
    """A line of text for each kind of work."""
    for case in cases:
        yield case.name
        values = list(case.records)
        found: dict[str, list[tuple[float, float]]] = {}
        sides = [_Side(side, case, values) for side in (tree, ROOT)]
        try:
            for turn, first in enumerate(range(0, len(values), case.turn)):
                order = sides if turn % 2 else sides[::-1]
                times = [side.fold(first, first + case.turn) for side in order]
                for before, now in zip(*(times if turn % 2 else times[::-1]), strict=True):
                    if first >= case.skip:
                        found.setdefault(before[0], []).append((before[1], now[1]))
        finally:
            for side in sides:
                side.end()
        for kind, pairs in found.items():
            before, now = (median(times) for times in zip(*pairs, strict=True))
            ratio = median(after / earlier for earlier, after in pairs)
            yield f"  {kind}: {before:,.0f} us there, {now:,.0f} us here, ratio {ratio:.2f}"


class _Side:
    """A process that folds with the code of one checkout."""

    def __init__(self, tree: Path, case: Case, values: Sequence[tuple[int, str]]) -> None:
        environment = {**os.environ, "PYTHONPATH": str(tree)}
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
        )
        self._ask([dict(case.settings), values])

    def fold(self, first: int, last: int) -> list[tuple[str, float]]:
        """Kind and CPU microseconds of each piece of work of some records."""
        return [(kind, spent) for kind, spent in self._ask([first, last])]

    def _ask(self, question: object) -> Any:
        questions, answers = self._process.stdin, self._process.stdout
        if questions is None or answers is None:
            raise ValueError(self._process)
        questions.write(json.dumps(question) + "\n")
        questions.flush()
        return json.loads(answers.readline())

    def end(self) -> None:
        """Nothing more is asked."""
        self._process.communicate()


def _answer() -> None:
    """Fold what is asked for by lines of standard input."""
    stages, log, settings = (_module(*names) for names in MODULES.values())
    defaults, values = json.loads(sys.stdin.readline())
    book = settings.load_document({"defaults": defaults})
    stage = stages.FeedStage(topic="feed-log", partition=0, settings=book)
    records = [log.LogRecord(n, at, FEED.encode(), value.encode()) for n, (at, value) in enumerate(values)]
    gc.freeze()
    print("[]", flush=True)
    for line in sys.stdin:
        first, last = json.loads(line)
        print(json.dumps([found for record in records[first:last] for found in _timed(stage, log, record)]), flush=True)


def _timed(stage: Any, log: Any, record: Any) -> Iterator[tuple[str, float]]:
    kind = "round" if b'"type":"round"' in record.value else "outcome"
    effects, begin = log.Effects(), time.process_time()
    stage.step(record, effects)
    yield kind, (time.process_time() - begin) * 1e6
    if any(output.topic == DEAD_LETTERS for output in effects.outputs):
        raise ValueError(record)
    if record.offset % PUBLISH_EVERY == 0:
        effects, begin = log.Effects(), time.process_time()
        stage.publish(effects, [FEED])
        yield "publish", (time.process_time() - begin) * 1e6


def _module(now: str, before: str) -> Any:
    try:
        return importlib.import_module(now)
    except ModuleNotFoundError:
        return importlib.import_module(before)


if __name__ == "__main__":
    _answer()
