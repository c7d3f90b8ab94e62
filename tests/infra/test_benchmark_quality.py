"""The quality benchmark: rivals that do what they are named for, and a verdict that can fail."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.pages import marks, write
from benchmarks.quality import tasks_of
from benchmarks.quality_checks import Attack, Doubt
from benchmarks.quality_page import HIGHEST, METHODS, by_set, of_doubts, of_worlds, reached, summary, table
from benchmarks.quality_rivals import best_expert, expectation_maximization, gradient_boa, squared_losses
from benchmarks.quality_sets import Question, data_sets
from benchmarks.quality_worlds import KINDS, LEVELS, NOISE, ratio_of, world_of


def questions(count: int = 300) -> list[Question]:
    """Three good experts, three bad ones, and one that says the contrary of the truth four times in five."""
    random = np.random.default_rng(2)
    errors, found = np.array([0.1, 0.15, 0.2, 0.45, 0.45, 0.45, 0.8]), []
    for number in range(count):
        outcome = int(random.random() < 0.5)
        right = random.random(7) >= errors
        said = np.where(right, float(outcome), 1.0 - outcome)
        found.append(Question(f"q{number}", [f"e{place}" for place in range(7)], said, outcome))
    return found


def mean_losses(known: list[Question]) -> float:
    return squared_losses(np.array([question.forecasts.mean() for question in known]), known)


def test_dawid_and_skene_find_out_whom_to_believe_even_by_contraries() -> None:
    known = questions()

    assert squared_losses(expectation_maximization(known), known) < 0.5 * mean_losses(known)


def test_a_learner_of_combinations_beats_the_mean_with_outcomes_and_is_the_mean_without() -> None:
    known = questions()

    assert squared_losses(gradient_boa(known, 1.0, 0), known) < 0.7 * mean_losses(known)
    assert squared_losses(gradient_boa(known, 0.0, 0), known) == pytest.approx(mean_losses(known))


def test_the_best_expert_is_the_best_in_hindsight() -> None:
    known = questions()
    losses = [squared_losses(np.array([q.forecasts[place] for q in known]), known) for place in range(7)]

    assert squared_losses(best_expert(known), known) == min(losses)


@pytest.mark.parametrize(("coins", "votes", "holds"), [(1.0, 0.7, True), (1.01, 0.7, False), (1.0, 0.95, False)])
def test_simulated_worlds_hold_only_if_the_independent_and_the_noisy_ones_do(
    coins: float, votes: float, holds: bool
) -> None:
    found = {(kind, level): [coins if kind in NOISE else votes] for kind in KINDS for level in LEVELS}

    lines, told = of_worlds(found)

    assert told is holds
    assert len(lines) == len(KINDS) + 4


@pytest.mark.parametrize("kind", KINDS)
def test_a_simulated_world_is_the_same_each_time(kind: str) -> None:
    one, other = world_of(kind, 1), world_of(kind, 1)

    np.testing.assert_array_equal(one.forecasts, other.forecasts)
    assert len(one.forecasts) == len(one.outcomes)
    assert not np.array_equal(one.forecasts, world_of(kind, 7).forecasts)


def test_the_mix_is_no_worse_than_the_mean_where_votes_are_coins() -> None:
    assert ratio_of("coins", 0, 0.0) <= 1.003


@pytest.mark.parametrize(("ratio", "worst", "holds"), [(0.70, 1.0, True), (0.97, 0.98, False), (0.5, 1.04, False)])
def test_the_figures_hold_only_if_mean_and_worst_do(ratio: float, worst: float, holds: bool) -> None:
    ratios = {"one": dict.fromkeys(METHODS, ratio), "two": dict.fromkeys(METHODS, min(worst, 1.0) * ratio)}
    ratios["three"] = dict.fromkeys(METHODS, worst if worst > 1.0 else ratio)

    lines, found = reached(dict.fromkeys(HIGHEST, ratios))

    assert found is holds
    assert len(lines) == 2 + len(HIGHEST)


def test_a_table_has_a_row_for_each_set_and_three_to_sum_up() -> None:
    ratios = {"a": {"mix": 0.5}, "b": {"mix": 2.0}, "c": {"mix": 1.004}}

    rows = table(ratios, {"mix": "mix"})

    assert len(rows) == 2 + 3 + 3
    assert rows[-3:] == ["| **geometric mean** | **1.001** |", "| better / worse | 1 / 1 |", "| worst | 2.000 |"]


def test_the_mix_of_each_set_stands_once_beside_its_rivals() -> None:
    by_level = {level: {"a": dict.fromkeys(METHODS, ratio)} for level, ratio in ((0.0, 0.9), (0.1, 0.8))}

    rows = by_set(by_level, {"a": {"stretched": 0.7}})

    assert rows[0] == "|  | 0% | 10% | files | median | logit mean | best expert | Dawid–Skene |"
    assert rows[2] == "| a | 0.900 | 0.800 | 0.700 | 0.900 | 0.900 | 0.900 | 0.900 |"
    assert summary(by_level)[-1] == "| gradient BOA | 0.900 (0.900) | 0.800 (0.800) |"


def test_warnings_are_asked_for_only_where_agreement_misleads() -> None:
    fine, silent = Doubt(0.10, 0.15, "ok", "ok", so_far=False), Doubt(0.05, 0.30, "ok", "ok", so_far=False)
    named, early = silent._replace(trust="dependent"), silent._replace(trust="warming-up")

    assert of_doubts({"a": fine})[1]
    assert of_doubts({"a": fine, "b": named})[1]
    assert not of_doubts({"a": named, "b": silent})[1]
    assert not of_doubts({"a": early})[1]
    assert of_doubts({"a": early._replace(so_far=True)})[1]


def test_an_attack_is_met_only_if_exactly_the_clones_are_named_in_time_and_do_no_harm() -> None:
    met = Attack(60, [f"copy-{k}" for k in range(6)], ["warming-up", "dependent"], 0.96, 0.66, 0.95)

    assert met.holds
    for other in ({"alarm": 201}, {"alarm": None}, {"named": ["copy-0"]}, {"trusted": ["ok"]}, {"on": 0.9}):
        assert not met._replace(**other).holds


def test_a_page_gets_its_tables_between_the_marks_and_keeps_the_rest(tmp_path: Path) -> None:
    begin, end = marks()
    page = tmp_path / "page.md"
    page.write_text(f"before\n{begin}\nold\n{end}\nafter\n", encoding="utf-8")

    write(page, ["new"])
    write(page, ["newer"])

    assert page.read_text(encoding="utf-8") == f"before\n{begin}\nnewer\n{end}\nafter\n"


def test_only_middle_levels_are_drawn_several_times() -> None:
    tasks = tasks_of([Path("a.jsonl")], 4)

    assert len(tasks) == 3 * 4 + 3
    assert len(set(tasks)) == len(tasks)


@pytest.mark.data
def test_the_published_page_speaks_of_the_data_sets_there_are(repository: Path, data_directory: Path) -> None:
    text = (repository / "docs" / "measured" / "quality.md").read_text(encoding="utf-8")

    assert all(path.name.partition(".")[0] in text for path in data_sets(data_directory))
