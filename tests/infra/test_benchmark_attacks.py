"""The benchmark of attacks: attackers do what they are named for, and a verdict that can fail."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.attack_panels import ATTACKS, FOLLOWERS, Panel, follower_panels
from benchmarks.attacks import LEVELS, Life, Result, follow, live, page


@pytest.fixture(scope="module")
def panel() -> Panel:
    random = np.random.default_rng(3)
    truth = random.random(120) < 0.5
    right = random.random((120, 6)) >= np.array([0.1, 0.15, 0.2, 0.2, 0.25, 0.35])
    said = np.where(right == truth[:, None], 0.9, 0.1)
    rows = [{f"e{place}": p for place, p in enumerate(row)} for row in said.tolist()]
    return Panel("six", rows, truth.astype(int).tolist())


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_leaves_the_questions_as_they_are(panel: Panel, name: str) -> None:
    attack = ATTACKS[name](panel, np.random.default_rng(2))

    assert len(attack.rows) == len(panel.rows)
    assert all(row.keys() <= attacked.keys() for row, attacked in zip(panel.rows, attack.rows, strict=True))
    assert all(0.0 <= p <= 1.0 for row in attack.rows for p in row.values())


def test_copies_that_go_their_own_way_disagree_more_often(panel: Panel) -> None:
    def disagreement(name: str) -> float:
        rows = ATTACKS[name](panel, np.random.default_rng(2)).rows
        return float(np.mean([(row["attacker-00"] > 0.5) != (row["attacker-01"] > 0.5) for row in rows]))

    assert disagreement("as many as the panel") == 0.0
    assert 0.0 < disagreement("as many, 5 % own way") < disagreement("as many, 15 % own way") < 0.25


def test_ids_that_are_used_once_are_in_one_question_each(panel: Panel) -> None:
    attack = ATTACKS["half as many, ids used once"](panel, np.random.default_rng(2))

    assert len(attack.attackers) == 3 * len(panel.rows)
    assert all(len(row.keys() & attack.attackers) == 3 for row in attack.rows)


def test_a_life_says_who_is_named_and_what_the_attackers_hold(panel: Panel) -> None:
    attack = ATTACKS["as many as the panel"](panel, np.random.default_rng(2))

    found = live(attack.rows, panel, attack.attackers, {"guard": "on"}, 0.0)

    assert found.alarm is not None
    assert found.named == 1.0
    assert 0.0 < found.held[1] < 0.5


def test_a_follower_is_in_the_panel_and_an_unfollowed_one_has_none(panel: Panel) -> None:
    followed = follow(panel, FOLLOWERS["copy of `mean`, an hour later"], {"guard": "on"}, 0.0)
    alone = follow(panel, None, {"guard": "on"}, 0.0)

    assert followed.held[1] > 0.0
    assert alone.held == (0.0, 0.0)


def test_the_verdict_fails_with_what_is_beyond_a_limit_in_bold() -> None:
    good, bad = Life([0.1] * 30, 50, 1.0), Life([0.2] * 30, 50, 1.0)
    alone = {(level, "six"): good for level in LEVELS}
    attacked = {(level, attack, "six"): good for level in LEVELS for attack in ("", "3 copies")}

    lines, holds = page(Result(attacked, alone, {}))
    worse, fails = page(Result({**attacked, (0.0, "3 copies", "six"): bad}, alone, {}))

    assert holds
    assert "All limits hold." in lines
    assert not fails
    assert any("**2.00**" in line for line in worse)


def held_by(follower: str, level: float, tmp_path: Path, **settings: object) -> tuple[float, float]:
    (seven,) = follower_panels(tmp_path)  # a directory without data sets
    return follow(seven, FOLLOWERS[follower], settings, level).held


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("follower", FOLLOWERS)
def test_a_follower_holds_at_most_a_twentieth_of_select(follower: str, level: float, tmp_path: Path) -> None:
    select, mix = held_by(follower, level, tmp_path, method_version=2)

    assert select <= 0.05
    assert mix <= 0.05 or follower.startswith("half")


def test_in_version_1_a_follower_holds_half_of_select(tmp_path: Path) -> None:
    select, _ = held_by("copy of `mix`, an hour later", 0.0, tmp_path, guard="on")

    assert select > 0.4
