"""What a change of the error rates' status may do to weights, in worlds where the rates cannot be told."""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from stream_peer.events.feed_log import FeedLogRecord
from stream_peer.events.outputs import Weights
from stream_peer.feeds.reading.trust import SHRINK, SHRINK_STEP
from stream_peer.log.stage import Effects
from tests.feed_histories import log_of, outcome, round_of, stage

MIX_STEP, SELECT_STEP, PAPER_STEP = 0.02, 0.25, 0.1
"""As documented."""

SETTINGS: list[tuple[dict[str, Any], set[str]]] = [
    ({"vote_rule": "half"}, {"ok"}),
    ({"vote_rule": "own-median"}, {"ok", "uninformative"}),
    ({"vote_rule": "auto"}, {"ok", "uninformative"}),
    ({"preset": "paper"}, {"balanced", "uninformative"}),
]
"""And the statuses that are reached."""


class Step(NamedTuple):
    """What a record did."""

    before: str
    after: str
    select: float
    mix: float


def world(share_of_ones: float, *, copies: bool, seed: int, questions: int = 100) -> list[FeedLogRecord]:
    """Ten calibrated experts, or copies of two of them."""
    generator = np.random.default_rng(seed)
    skills, prior = generator.uniform(0.3, 1.2, 10), np.log(share_of_ones / (1 - share_of_ones))
    events: list[FeedLogRecord] = []
    for number in range(questions):
        y = int(generator.random() < share_of_ones)
        odds = prior + 2 * skills * ((2 * y - 1) * skills + generator.normal(size=10))
        forecasts = 1 / (1 + np.exp(-odds))
        if copies:
            forecasts = forecasts[np.arange(10) % 2]
        events.append(round_of(f"q{number}", {f"e{k}": float(p) for k, p in enumerate(forecasts)}))
    return events


def steps(events: list[FeedLogRecord], settings: dict[str, Any]) -> Iterator[Step]:
    feed_stage = stage(**settings)
    before: Weights | None = None
    for record in log_of(events):
        feed_stage.step(record, Effects())
        after = feed_stage.views()["f"].weights
        if before is not None and before.experts:
            yield Step(before.error_rate.status, after.error_rate.status, *moved(before, after))
        before = after


def moved(before: Weights, after: Weights) -> tuple[float, float]:
    pairs = list(zip(before.experts, after.experts, strict=True))
    return max(abs(a.select - b.select) for a, b in pairs), max(abs(a.mix - b.mix) for a, b in pairs)


@pytest.mark.case("C18")
@pytest.mark.parametrize(("settings", "reached"), SETTINGS)
def test_a_change_of_status_moves_no_weight_by_more_than_the_documented_step(
    settings: dict[str, Any], reached: set[str]
) -> None:
    worlds = [(share, copies) for share in (0.5, 0.03, 0.97, 0.2) for copies in (False, True)]
    found = [step for share, copies in worlds for step in steps(world(share, copies=copies, seed=1), settings)]

    changes = [step for step in found if step.before != step.after]
    assert len(changes) >= 8
    assert reached <= {step.after for step in changes}
    paper = "preset" in settings
    assert max(step.select for step in changes) <= (PAPER_STEP if paper else SELECT_STEP)
    assert max(step.mix for step in changes) <= (PAPER_STEP if paper else MIX_STEP)
    assert max(step.select for step in changes) <= max(step.select for step in found if step.before == step.after)


def test_the_steps_are_those_of_the_documentation(repository: Path) -> None:
    text = " ".join((repository / "docs" / "semantics.md").read_text(encoding="utf-8").split())

    assert f"no `mix` by more than {MIX_STEP:g} and no `select` by more than {SELECT_STEP:g}" in text
    assert f"under the preset `paper` neither by more than {PAPER_STEP:g}" in text


# --- trust ---


def of_unlike_questions(generator: np.random.Generator, questions: int) -> list[FeedLogRecord]:
    """Half of them easy, half of them hard for all of ten experts."""
    chances = np.linspace(0.7, 1.0, 10) * generator.choice([0.05, 0.95], (questions, 1))
    right = generator.random((questions, 10)) < 0.5 + 0.5 * chances
    sides = np.where(right ^ (generator.random((questions, 1)) < 0.5), 1.0, -1.0)
    forecasts = (0.5 + sides * generator.uniform(0.05, 0.45, (questions, 10))).tolist()
    return [round_of(f"q{k}", {f"e{e}": p for e, p in enumerate(f)}) for k, f in enumerate(forecasts)]


def misjudged(generator: np.random.Generator, questions: int) -> list[FeedLogRecord]:
    """Experts agree on what turns out wrong in a third of the questions; then all of it is taken back."""
    sides = np.where(generator.random((questions, 10)) < np.linspace(0.6, 0.95, 10), 1.0, -1.0)
    forecasts = (0.5 + sides * generator.uniform(0.05, 0.45, (questions, 10))).tolist()
    rounds = [round_of(f"q{k}", {f"e{e}": p for e, p in enumerate(f)}) for k, f in enumerate(forecasts)]
    told = [outcome(f"q{k}", 1 if generator.random() < 0.6 else 0) for k in range(questions)]
    return [*rounds, *told, *(outcome(f"q{k}", "open") for k in range(questions))]


@pytest.mark.case("C18")
@pytest.mark.parametrize(("world_of", "alarm"), [(of_unlike_questions, "dependent"), (misjudged, "contradicted")])
def test_trust_that_is_lost_or_comes_back_moves_no_weight_by_more_than_the_documented_steps(
    world_of: Callable[[np.random.Generator, int], list[FeedLogRecord]], alarm: str
) -> None:
    feed_stage, newest = stage(vote_rule="half"), list[Weights]()
    for record in log_of(world_of(np.random.default_rng(2), 230)):
        feed_stage.step(record, Effects())
        newest.append(feed_stage.views()["f"].weights)
    pairs = [(before, after) for before, after in pairwise(newest) if before.experts]
    changes = [(before, after) for before, after in pairs if before.status != after.status]

    assert alarm in {after.status for _, after in changes}
    assert max(after.select_shrink for after in newest) == max(
        SHRINK[after.status] for _, after in changes if after.status in SHRINK
    )
    assert max(abs(after.select_shrink - before.select_shrink) for before, after in pairs) <= SHRINK_STEP + 1e-9
    assert max(moved(*change)[0] for change in changes) <= SELECT_STEP
    assert max(moved(*change)[1] for change in changes) <= MIX_STEP
    if world_of is misjudged:
        assert newest[-1].status == "ok"
        assert newest[-1].select_shrink == 0.0


def test_the_step_of_shrinking_is_that_of_the_documentation(repository: Path) -> None:
    text = " ".join((repository / "docs" / "semantics.md").read_text(encoding="utf-8").split())

    assert f"moves by at most {SHRINK_STEP:g} towards" in text
    for state, share in SHRINK.items():
        assert re.search(rf"\| `{state}` \|[^|]*\|[^|]*\| {share:g} \|", text)
