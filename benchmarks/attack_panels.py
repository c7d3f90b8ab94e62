"""What is attacked, and by whom: panels of experts from data sets, and attackers who join them.

A panel is 400 questions of one data set with its twelve busiest experts. An attack adds forecasts to each question.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec
import numpy as np

from benchmarks.quality_sets import Floats, data_sets, lines_of, name_of, outcomes_of

QUESTIONS = 400
EXPERTS = 12

PANELS = {
    "crowd_sentiment_sp_full": "independent labellers",
    "rain_innsbruck": "shared errors",
    "flu_trend_2324": "probabilities",
    "ml_digits_weak": "shared errors, probabilities",
}
"""The data sets, each with what it is an example of."""

Row: TypeAlias = dict[str, float]
"""Forecasts of one question, by expert."""


class Panel(NamedTuple):
    """A panel of experts: what each said of each question, and what came of it."""

    name: str
    rows: Sequence[Row]
    outcomes: Sequence[int]

    @property
    def size(self) -> int:
        """Experts of a question, in the mean."""
        return round(sum(map(len, self.rows)) / len(self.rows))


def panels(directory: Path) -> list[Panel]:
    """Those of the data sets of a directory."""
    return [_panel(path) for path in data_sets(directory) if name_of(path) in PANELS]


def _panel(path: Path) -> Panel:
    """The questions with the most forecasts of the busiest experts, in the order of the file."""
    said: dict[str, Row] = {}
    for event in (msgspec.json.decode(line.payload) for line in lines_of(path)):
        if event["type"] == "forecast":
            said.setdefault(event["question_id"], {})[event["expert_id"]] = event["probability"]
    busiest = [expert for expert, _ in Counter(expert for row in said.values() for expert in row).most_common(EXPERTS)]
    outcomes = outcomes_of(path)
    rows = {
        question: {expert: row[expert] for expert in busiest if expert in row}
        for question, row in said.items()
        if outcomes.get(question) in (0, 1)
    }
    fullest = set(sorted(rows, key=lambda question: -len(rows[question]))[:QUESTIONS])
    chosen = [question for question in rows if question in fullest]
    return Panel(name_of(path), [rows[question] for question in chosen], [outcomes[question] for question in chosen])


class Attack(NamedTuple):
    """An attacked panel: its forecasts, who the attackers are, and how many of them there are in one question."""

    rows: Sequence[Row]
    attackers: frozenset[str]
    at_once: int


Attacker: TypeAlias = Callable[[Panel, np.random.Generator], Attack]


def _bad_forecasts(panel: Panel, random: np.random.Generator) -> Floats:
    """What one of the worst tenth says; where it is absent, it errs in 40 %."""
    losses = {expert: _brier(panel, expert) for expert in {expert for row in panel.rows for expert in row}}
    by_loss = sorted(losses, key=lambda expert: (losses[expert], expert))
    bad = by_loss[-1 - len(by_loss) // 10]
    own = _own_way(panel, random)
    return np.array([row.get(bad, said) for row, said in zip(panel.rows, own.tolist(), strict=True)])


def _brier(panel: Panel, expert: str) -> float:
    pairs = zip(panel.rows, panel.outcomes, strict=True)
    return float(np.mean([(row[expert] - outcome) ** 2 for row, outcome in pairs if expert in row]))


def _own_way(panel: Panel, random: np.random.Generator) -> Floats:
    """Forecasts that are on the wrong side in 40 % of the questions, as sure as those of the panel."""
    sure = np.array([abs(p - 0.5) for row in panel.rows for p in row.values()])
    outcomes = np.array(panel.outcomes)
    right = random.random(len(outcomes)) >= 0.4
    side = np.where(right, 2.0 * outcomes - 1.0, 1.0 - 2.0 * outcomes)
    return np.clip(0.5 + side * random.choice(sure, len(outcomes)), 0.0, 1.0)


def _joined(panel: Panel, forecasts: Floats, names: Sequence[str] | None = None) -> Attack:
    """Attackers whose columns are given; NaN where they are absent."""
    ids = names or [f"attacker-{number:02}" for number in range(forecasts.shape[1])]
    rows = [
        row | {one: p for one, p in zip(ids, said, strict=True) if not math.isnan(p)}
        for row, said in zip(panel.rows, forecasts.tolist(), strict=True)
    ]
    return Attack(rows, frozenset(ids), len(ids))


def _copies(share: float | int, jitter: float = 0.0, own: float = 0.0) -> Attacker:
    """Copies of a bad expert: so many, or such a share of the panel; in a share ``own`` each goes its own way."""

    def attack(panel: Panel, random: np.random.Generator) -> Attack:
        n = share if isinstance(share, int) else round(share * panel.size)
        said = np.repeat(_bad_forecasts(panel, random)[:, None], n, axis=1)
        for column in range(n):
            leaves = random.random(len(said)) < own
            said[leaves, column] = _own_way(panel, random)[leaves]
        said = np.clip(said + jitter * random.standard_normal(said.shape), 0.0, 1.0)
        return _joined(panel, said)

    return attack


def _coin(share: float | int) -> Attacker:
    """So many say the same, which is drawn by a coin."""

    def attack(panel: Panel, random: np.random.Generator) -> Attack:
        n = share if isinstance(share, int) else round(share * panel.size)
        said = np.where(random.random(len(panel.rows)) < 0.5, 0.05, 0.95)
        return _joined(panel, np.repeat(said[:, None], n, axis=1))

    return attack


def _new_ids(name: str, every: int) -> Attacker:
    """Half as many as the panel say what a bad expert says, under new ids after so many questions each."""

    def attack(panel: Panel, random: np.random.Generator) -> Attack:
        n, said = round(0.5 * panel.size), _bad_forecasts(panel, random)
        rows = [
            row | {f"{name}-{question // every:03}-{number}": p for number in range(n)}
            for question, (row, p) in enumerate(zip(panel.rows, said.tolist(), strict=True))
        ]
        return Attack(rows, frozenset(expert for row in rows for expert in row if expert.startswith(f"{name}-")), n)

    return attack


def _abstainers(panel: Panel, random: np.random.Generator) -> Attack:
    """Half as many answer only where the crowd is nearly unanimous, and against it in a tenth of the rest."""
    n = round(0.5 * panel.size)
    means = np.array([np.mean(list(row.values())) for row in panel.rows])
    clear = np.abs(means - 0.5) >= 0.4
    against = random.random((len(means), n)) < 0.1
    said = np.where(clear[:, None], means[:, None], np.where(against, 1.0 - means[:, None], np.nan))
    return _joined(panel, said)


def _drift(panel: Panel, random: np.random.Generator) -> Attack:  # noqa: ARG001 - all attackers are called alike
    """The best expert slides to the opposite of what it thinks, from question 120 to 280."""
    losses = {expert: _brier(panel, expert) for expert in {expert for row in panel.rows for expert in row}}
    best = min(losses, key=lambda expert: (losses[expert], expert))
    slide = np.clip((np.arange(len(panel.rows)) - 120) / 160, 0.0, 1.0).tolist()
    rows = [
        {expert: (1 - s) * p + s * (1 - p) if expert == best else p for expert, p in row.items()}
        for row, s in zip(panel.rows, slide, strict=True)
    ]
    return Attack(rows, frozenset([best]), 1)


ATTACKS: Mapping[str, Attacker] = {
    "3 copies": _copies(3),
    "half the panel, jitter .02": _copies(0.5, jitter=0.02),
    "as many as the panel": _copies(1.0),
    "as many, jitter .02": _copies(1.0, jitter=0.02),
    "as many, 5 % own way": _copies(1.0, own=0.05),
    "as many, 15 % own way": _copies(1.0, own=0.15),
    "as many, one coin": _coin(1.0),
    "half as many, one coin": _coin(0.5),
    "3, one coin": _coin(3),
    "half as many, ids used once": _new_ids("once", 1),
    "half as many, ids used 50 times": _new_ids("sybil", 50),
    "half as many abstainers": _abstainers,
    "the best turns": _drift,
}
BLOCKS = frozenset(name for name in ATTACKS if name.startswith("as many"))
"""Those that must be named soon."""
UNLIMITED = frozenset(["the best turns"])
"""A panel that loses its best expert is not what it was."""


# --- followers ---


class Follower(NamedTuple):
    """One account that sends what was published ``lag`` rounds before, and ``own`` parts of what it thinks itself."""

    what: str
    lag: int
    own: float


FOLLOWERS = {
    f"{'half ' if own else ''}copy of `{what}`, {_AGO}": Follower(what, lag, own)
    for own in (0.0, 0.5)
    for what in ("mean", "mix")
    for lag, _AGO in ((1, "an hour later"), (2, "a day later"))
}
ROUNDS = 3
FOLLOWED = 250


def follower_panels(directory: Path) -> list[Panel]:
    """Seven simulated experts of different skill, and the data sets."""
    return [_seven(), *(panel._replace(rows=panel.rows[:FOLLOWED]) for panel in panels(directory))]


def _seven() -> Panel:
    """Seven experts who err independently, each with its own skill."""
    random = np.random.default_rng(7)
    truth = random.random(FOLLOWED) < 0.5
    side = np.where(truth, 1.0, -1.0)[:, None]
    skill = np.linspace(0.5, 1.1, 7)
    logits = 1.5 * (side * skill * skill + skill * random.standard_normal((FOLLOWED, 7)))
    said = 1.0 / (1.0 + np.exp(-logits))
    rows = [{f"expert-{number}": p for number, p in enumerate(row)} for row in said.tolist()]
    return Panel("seven experts", rows, truth.astype(int).tolist())


def rounds_of(panel: Panel, random: np.random.Generator) -> Iterator[list[Row]]:
    """Of each question its rounds: three of five experts are there at the first, the others come later."""
    for row in panel.rows:
        came = np.searchsorted([0.6, 0.8], random.random(len(row)))
        yield [
            {expert: p for (expert, p), since in zip(row.items(), came.tolist(), strict=True) if since <= number}
            for number in range(ROUNDS)
        ]


def own_opinion(panel: Panel, random: np.random.Generator) -> Floats:
    """What a follower thinks itself: it errs in 40 %."""
    return _own_way(panel, random)
