"""What ``memory`` gains and costs: the mix on real feeds, error rates and weights in worlds that change.

``python -m benchmarks.memory [FILE …] [--worlds] [--questions N] [--repeats N]``. Of each file (JSON lines, plain or
gzip) the Brier score of the mixed forecast over that of the plain mean, every question scored at its close with the
weights of that moment (``round_every: null``, one feed), with no outcome told and with a tenth of them. Of worlds, with
no outcome told: the root mean square of what the published error rate is off the true one of the moment, and what
``select`` loses a question beyond the expert who is best at the moment. Both by `memory`: null, 3000, 1000, 300.
"""

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

from benchmarks.pages import in_markdown
from stream_peer.events.feed_log import Round, Source, encode_feed_log
from stream_peer.feeds.feed_reading import read
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.stage import Effects, LogRecord
from stream_peer.numerics.arguments import FloatArray
from stream_peer.settings.feed.document import load_document
from stream_peer.tools.replay.file_events import RevealedShare
from stream_peer.tools.replay.files import read_lines
from stream_peer.tools.replay.replay import ReplayOptions, replay

MEMORIES = (None, 3000, 1000, 300)
SHARES = (0.0, 0.1)
FEED = "all"
EXPERTS = 12
START = 1_704_067_200_000
WORLDS = ("steady", "harder by half", "best and worst change places", "random walk")
LOOK_FROM = 500
"""Questions after which a world is looked at: until then little is known whatever is forgotten."""


def outcomes(path: Path) -> dict[str, int]:
    """What became of the questions of a file."""
    found = {}
    for line in read_lines(path):
        event = msgspec.json.decode(line.payload)
        if event.get("type") == "resolution" and event["outcome"] in (0, 1):
            found[event["question_id"]] = event["outcome"]
    return found


def ratio(path: Path, memory: int | None, share: float) -> float:
    """Brier score of the mixed forecasts of a file over that of the plain means."""
    document = {"defaults": {"round_every": None, "memory": memory}}
    options = ReplayOptions(document=document, feed_as=FEED, reveal=RevealedShare(share))
    truth = outcomes(path)
    forecasts = replay([read_lines(path)], options).history.feeds[FEED].forecasts
    losses = np.array(
        [
            [(made.scored.mix - truth[question]) ** 2, (made.scored.mean - truth[question]) ** 2]
            for question, made in sorted(forecasts.items())
            if question in truth and made.scored is not None
        ]
    )
    mix, mean = losses.mean(axis=0)
    return float(mix / mean)


def errors_of(world: str, questions: int, generator: np.random.Generator) -> FloatArray:
    """How often each expert errs, question by question."""
    errors = np.tile(np.linspace(0.15, 0.45, EXPERTS), (questions, 1))
    half = slice(questions // 2, None)
    if world == "harder by half":
        errors[half] = 0.5 - 0.4 * (0.5 - errors[half])
    elif world == "best and worst change places":
        errors[half] = errors[half, ::-1]
    elif world == "random walk":
        steps = 0.03 * generator.normal(size=(questions, EXPERTS)).cumsum(axis=0)
        errors = 0.05 + 0.45 / (1.0 + np.exp(-np.log((errors - 0.05) / (0.5 - errors)) - steps))
    return errors


def rounds(errors: FloatArray, happened: np.ndarray, generator: np.random.Generator) -> Iterator[LogRecord]:
    """Rounds of as many questions; experts say how sure they may be, on the side that they see."""
    names = [f"expert-{number:02d}" for number in range(EXPERTS)]
    right = generator.random(errors.shape) >= errors
    forecasts = np.where(right == happened[:, None], 1.0 - errors, errors)
    for number, row in enumerate(forecasts.tolist()):
        event = Round(
            src=Source("forecast-events", 0, 0, number, 0),
            feed=FEED,
            question_id=f"q{number}",
            boundary=START + number,
            experts=names,
            probabilities=row,
        )
        yield LogRecord(number, START + number, FEED.encode(), encode_feed_log(event))


def true_rate(errors: FloatArray) -> float:
    """How often a leave-one-out majority of such experts is wrong: the mean over those left out."""
    rates = []
    for left_out in range(len(errors)):
        wrong = np.ones(1)
        for error in np.delete(errors, left_out):
            wrong = np.convolve(wrong, [1.0 - error, error])
        rates.append(float(wrong[len(wrong) // 2 :].sum()))
    return float(np.mean(rates))


def in_world(world: str, memory: int | None, questions: int, seed: int) -> tuple[float, float]:
    """Mean square of what the error rate is off, and mean loss of ``select`` beyond the best expert's."""
    generator = np.random.default_rng(seed)
    errors = errors_of(world, questions, generator)
    happened = generator.random(questions) < 0.5
    stage = FeedStage(topic="feed-log", partition=0, settings=load_document({"defaults": {"memory": memory}}))
    off, lost = [], []
    for number, record in enumerate(rounds(errors, happened, generator)):
        stage.step(record, Effects())
        if number < LOOK_FROM:
            continue
        feed = stage.feeds.by_name[FEED]
        if number % 25 == 0:
            off.append((read(feed).rates.estimate.zero - true_rate(errors[number])) ** 2)
        facts = feed.ledger.entries[f"q{number}"].facts()[-1]
        losses = errors[number] * (1.0 - errors[number])  # in expectation, of who says how sure it may be
        lost.append(float((facts.select * losses).sum() - losses.min()))
    return float(np.mean(off)), float(np.mean(lost))


def real_sets(paths: Sequence[Path]) -> None:
    """Print the table of the files."""
    for share in SHARES:
        found = {path.name.partition(".")[0]: [ratio(path, memory, share) for memory in MEMORIES] for path in paths}
        logs = np.log(np.array(list(found.values())))
        found["geometric mean"] = np.exp(logs.mean(axis=0)).tolist()
        head = [f"mix / plain mean, {share:.0%} told", *(str(memory or "null") for memory in MEMORIES)]
        rows = [[name, *(f"{value:.3f}" for value in row)] for name, row in found.items()]
        print("\n".join(in_markdown(head, rows)), flush=True)


def worlds(questions: int, repeats: int) -> None:
    """Print the table of the worlds."""
    rows = []
    for world in WORLDS:
        cells = []
        for memory in MEMORIES:
            found = np.array([in_world(world, memory, questions, seed) for seed in range(repeats)])
            off, lost = found.mean(axis=0)
            cells.append(f"{math.sqrt(off):.3f} / {lost:.4f}")
        rows.append([world, *cells])
    head = ["error rate off / select loses", *(str(memory or "null") for memory in MEMORIES)]
    print("\n".join(in_markdown(head, rows)))


def main(arguments: Sequence[str]) -> int:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--worlds", action="store_true")
    parser.add_argument("--questions", type=int, default=3000)
    parser.add_argument("--repeats", type=int, default=4)
    chosen = parser.parse_args(arguments)
    if chosen.files:
        real_sets(chosen.files)
    if chosen.worlds:
        worlds(chosen.questions, chosen.repeats)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
