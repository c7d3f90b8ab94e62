"""The script that made the demo's events: weak classifiers forecast whether a handwritten digit is even.

``python -m stream_peer.tools.demo.make_data`` writes ``data/digits_even.jsonl.gz``; the same scikit-learn gives the
same bytes. The experts are real in the sense that matters: nobody chose their errors. Each of forty small
classifiers saw some of the training rows and some of the pixels, so that they err in different places, some more
often than others. Beside them, two experts copy another one, and one draws its numbers from a hat.
"""

import gzip
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from stream_peer.tools.demo.feed import DATA, FEED, RANDOM_EXPERT

FloatArray = NDArray[np.float64]

QUESTIONS = 900
CLASSIFIERS = 40
COPIES = ("weak-07", "weak-19")
PANEL = tuple(f"weak-{number:02d}" for number in range(31, 41))
"""Experts whose forecasts come together, in one ``forecasts`` message a question."""

START = datetime(2025, 3, 3, tzinfo=UTC)
QUESTION_EVERY = timedelta(minutes=15)
OPEN_FOR = timedelta(minutes=90)
REVISED = 0.4
WITHDRAWN = 0.004
LATE = 0.01
RESOLVED = 0.65

MALFORMED = (
    b'{"type":"forecast","question_id":"digit-0181","expert_id":"weak-03","probability":0.',
    b'{"type":"forecast","question_id":"digit-0452","expert_id":"weak-11","probability":87,"at":"2025-03-07T16:40:00Z"}',
    b'{"type":"resolution","question_id":"digit-0560","outcome":0.49,"at":"2025-03-10T11:00:00Z"}',
)
"""Cut off by the sender; a percentage; an outcome that is neither yes nor no."""

_SEED = 20250303


class Expert(NamedTuple):
    """What an expert would say of each question, at first and on reflection, and how often it is there."""

    expert_id: str
    presence: float
    first: FloatArray
    final: FloatArray


class DemoEvent(NamedTuple):
    """A message and the moment it arrives, which for a late one is after the moment it speaks of."""

    moment: datetime
    payload: bytes


def make_experts(rng: np.random.Generator) -> tuple[list[Expert], NDArray[np.int_]]:
    """Train the classifiers; return the experts and the outcomes of the held-out questions."""
    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True)
    pixels, even = pixels / 16.0, (digits % 2 == 0).astype(int)
    order = rng.permutation(len(pixels))
    held_out, training = order[:QUESTIONS], order[QUESTIONS:]
    experts = [
        _classifier(number, rng, pixels[training], even[training], pixels[held_out]) for number in range(CLASSIFIERS)
    ]
    by_id = {expert.expert_id: expert for expert in experts}
    experts += [by_id[original]._replace(expert_id=f"copy-of-{original}") for original in COPIES]
    hat = rng.uniform(0.02, 0.98, (2, QUESTIONS))
    experts.append(Expert(RANDOM_EXPERT, 0.8, hat[0], hat[1]))
    return experts, even[held_out]


def _classifier(
    number: int, rng: np.random.Generator, rows: FloatArray, even: NDArray[np.int_], questions: FloatArray
) -> Expert:
    """One weak classifier. Its first look covers half of its pixels, the others at their average."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.tree import DecisionTreeClassifier

    seen = rng.choice(len(rows), size=int(rng.integers(25, 260)), replace=False)
    pixels = rng.choice(rows.shape[1], size=int(rng.integers(3, 17)), replace=False)
    kinds = (LogisticRegression(), DecisionTreeClassifier(max_depth=4, min_samples_leaf=3, random_state=0))
    model = (*kinds, GaussianNB(var_smoothing=0.05))[number % 3]
    model.fit(rows[seen][:, pixels], even[seen])
    whole = questions[:, pixels]
    glance = whole.copy()
    unseen = len(pixels) // 2
    glance[:, :unseen] = rows[seen][:, pixels[:unseen]].mean(axis=0)
    presence = 0.3 + 0.7 * ((number * 17) % CLASSIFIERS) / (CLASSIFIERS - 1)
    first, final = (np.clip(model.predict_proba(look)[:, 1], 0.01, 0.99) for look in (glance, whole))
    return Expert(f"weak-{number + 1:02d}", presence, first, final)


def make_events() -> list[bytes]:
    """All messages in the order of their arrival, the malformed ones included."""
    rng = np.random.default_rng(_SEED)
    experts, outcomes = make_experts(rng)
    arrivals: list[DemoEvent] = []
    for index in range(QUESTIONS):
        arrivals += _question(index, rng, experts)
    arrivals += _resolutions(rng, outcomes)
    lines = [arrival.payload for arrival in sorted(arrivals, key=lambda arrival: arrival.moment)]
    for part, payload in enumerate(MALFORMED, start=1):
        lines.insert(len(lines) * part // 5, payload)
    return lines


def question_id(index: int) -> str:
    """Name of the question on the held-out row ``index``."""
    return f"digit-{index + 1:04d}"


def _question(index: int, rng: np.random.Generator, experts: list[Expert]) -> Iterator[DemoEvent]:
    """One question and all that is said of it: alone, in the panel's message, and by those who copy."""
    opens_at = START + index * QUESTION_EVERY
    name = question_id(index)
    times = {"opens_at": _iso(opens_at), "closes_at": _iso(opens_at + OPEN_FOR)}
    yield _arrival(opens_at, {"type": "question", "question_id": name, "feed": FEED, **times})
    panel: dict[str, float] = {}
    copied: dict[str, list[tuple[int, float | None]]] = {}
    for expert in experts:
        original = expert.expert_id.removeprefix("copy-of-")
        if original != expert.expert_id:
            said = [(minute + 2, probability) for minute, probability in copied[original]]
        else:
            said = _said(index, rng, expert, alone=expert.expert_id not in PANEL)
        copied[expert.expert_id] = said
        if expert.expert_id in PANEL:
            panel.update((expert.expert_id, p) for _, p in said if p is not None)
        else:
            yield from _forecasts(name, opens_at, expert.expert_id, said, rng)
    moment = opens_at + timedelta(minutes=5)
    yield _arrival(moment, {"type": "forecasts", "question_id": name, "at": _iso(moment), "forecasts": panel})


def _said(index: int, rng: np.random.Generator, expert: Expert, *, alone: bool) -> list[tuple[int, float | None]]:
    """What the expert says of a question: (minute after opening, probability or None = withdrawn), maybe nothing."""
    present, revises, withdraws = rng.random(3)
    first_minute, second_minute = int(rng.integers(1, 40)), int(rng.integers(45, 86))
    if present >= expert.presence:
        return []
    first, final = (round(float(values[index]), 2) for values in (expert.first, expert.final))
    if not alone:
        return [(0, final)]
    said: list[tuple[int, float | None]] = [(first_minute, final)]
    if revises < REVISED:
        said = [(first_minute, first), (second_minute, final)]
    if withdraws < WITHDRAWN:
        said.append((second_minute + 1, None))
    return said


def _forecasts(
    name: str, opens_at: datetime, expert_id: str, said: list[tuple[int, float | None]], rng: np.random.Generator
) -> Iterator[DemoEvent]:
    for minute, probability in said:
        at = opens_at + timedelta(minutes=minute)
        delay = timedelta(minutes=int(rng.integers(30, 240))) if rng.random() < LATE else timedelta(0)
        event = {"question_id": name, "expert_id": expert_id, "probability": probability, "at": _iso(at)}
        yield _arrival(at + delay, {"type": "forecast", **event})


def _resolutions(rng: np.random.Generator, outcomes: NDArray[np.int_]) -> Iterator[DemoEvent]:
    """Outcomes, one to five days late, of part of the questions; one corrected, one annulled, one retracted."""
    revealed = [index for index in range(QUESTIONS) if rng.random() < RESOLVED]
    corrected, annulled, retracted = revealed[40], revealed[80], revealed[120]
    for index in revealed:
        late = timedelta(minutes=int(rng.integers(24 * 60, 5 * 24 * 60)))
        at = START + index * QUESTION_EVERY + OPEN_FOR + late
        outcome: Any = None if index == annulled else int(outcomes[index])
        if index == corrected:
            yield _resolution(index, 1 - outcome, at)
            at += timedelta(hours=6)
        yield _resolution(index, outcome, at)
        if index == retracted:
            yield _resolution(index, "open", at + timedelta(hours=12))


def _resolution(index: int, outcome: Any, at: datetime) -> DemoEvent:
    return _arrival(at, {"type": "resolution", "question_id": question_id(index), "outcome": outcome, "at": _iso(at)})


def _arrival(moment: datetime, event: dict[str, Any]) -> DemoEvent:
    return DemoEvent(moment, msgspec.json.encode(event))


def _iso(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def write_events(path: Path) -> int:
    """Write the events, compressed and free of dates, so that equal events are equal bytes; return how many."""
    lines = make_events()
    path.write_bytes(gzip.compress(b"\n".join(lines) + b"\n", compresslevel=9, mtime=0))
    return len(lines)


def main() -> None:
    """Write the data to the path given, or to its place in the package."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else DATA
    count = write_events(path)
    sys.stdout.write(f"{path}: {count:,} events, {path.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
