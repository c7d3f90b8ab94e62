"""Data sets of the quality benchmark: their events, their outcomes, and what the product forecasts of them.

A run is a replay of one file through the product's engine, as ``stream-peer replay FILE --feed-as ONE --set
round_every=null --reveal AT,SEED`` would have it: each question is scored once, at its close, under weights from
before, and its outcome, if it is revealed, is told right after.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from stream_peer.events.outputs import ScoredForecast
from stream_peer.log.draws import draw
from stream_peer.settings.feed.model import NEWEST_METHOD
from stream_peer.tools.replay.file_events import RevealedShare
from stream_peer.tools.replay.files import FileLine, read_lines
from stream_peer.tools.replay.history import FeedHistory
from stream_peer.tools.replay.replay import ReplayOptions, replay

Floats = npt.NDArray[np.float64]
ONE = "one"
NEWEST: Mapping[str, Any] = {"defaults": {"method_version": NEWEST_METHOD}}
AT_THE_CLOSE: Mapping[str, Any] = {"defaults": {"method_version": NEWEST_METHOD, "round_every": None}}
OF_THE_PRODUCT = ("stretched", "mix", "mean", "median", "logit_mean")


class Question(NamedTuple):
    """A question that was scored: who said what, and what came of it."""

    id: str
    experts: list[str]
    forecasts: Floats
    outcome: int


class Run(NamedTuple):
    """What came of a replay: squared losses summed by method, and where the feed stood at the end.

    ``questions``: in the order in which they were scored, those with an outcome in the file.
    """

    losses: dict[str, float]
    questions: list[Question]
    feeds: list[FeedHistory]

    def ratio(self, method: str) -> float:
        """Brier score of a method, divided by that of the plain mean."""
        return self.losses[method] / self.losses["mean"]


def data_sets(directory: Path) -> list[Path]:
    """The files of a directory that hold events."""
    return sorted(path for path in directory.iterdir() if path.name.endswith((".jsonl", ".jsonl.gz")))


def name_of(path: Path) -> str:
    """A file's name without endings."""
    return path.name.partition(".")[0]


@cache
def lines_of(path: Path) -> Sequence[FileLine]:
    """The lines of a file."""
    return list(read_lines(path))


@cache
def outcomes_of(path: Path) -> Mapping[str, int]:
    """The last outcome of each question in a file, whether it is to be revealed or not."""
    events = (msgspec.json.decode(line.payload) for line in lines_of(path))
    return {event["question_id"]: event["outcome"] for event in events if event["type"] == "resolution"}


def is_revealed(question: str, share: float, seed: int) -> bool:
    """Whether a run of that share and seed is told the outcome of a question."""
    return draw(b"", "", question, 0, f"reveal {seed}") < share


def run_as_one(path: Path, share: float, seed: int) -> Run:
    """One feed, one round a question, a share of the outcomes, each right after the closing round."""
    return _run(path, ReplayOptions(AT_THE_CLOSE, feed_as=ONE, reveal=RevealedShare(share, seed), publishes=False))


def run_as_it_is(path: Path) -> Run:
    """Feeds, rounds and outcomes with the delays of the file, and the built-in settings."""
    return _run(path, ReplayOptions(NEWEST, publishes=False))


def _run(path: Path, options: ReplayOptions) -> Run:
    outcomes = outcomes_of(path)
    feeds = list(replay([lines_of(path)], options).history.feeds.values())
    losses = dict.fromkeys(OF_THE_PRODUCT, 0.0)
    questions = []
    for feed in feeds:
        scored = {name: record.scored for name, record in feed.forecasts.items() if record.scored is not None}
        for question, forecast in sorted(scored.items(), key=lambda one: (one[1].boundary, one[0])):
            if outcomes.get(question) in (0, 1):
                _add_losses(losses, forecast, outcomes[question])
                said = feed.scored_rounds.of(question)
                questions.append(Question(question, list(said), np.array(list(said.values())), outcomes[question]))
    return Run(losses, questions, feeds)


def _add_losses(losses: dict[str, float], forecast: ScoredForecast, outcome: int) -> None:
    for method in OF_THE_PRODUCT:
        losses[method] += (getattr(forecast, method) - outcome) ** 2
