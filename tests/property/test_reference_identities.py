import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_peer.lab.formulas.reference_rules import (
    Ballots,
    ReferenceAnswers,
    ReferenceRule,
    answers_of_all,
    answers_of_groups,
    answers_of_other_group,
    answers_of_others,
    ballots,
)
from stream_peer.numerics.answers import leave_one_out, majority, majority_of, votes
from stream_peer.numerics.arguments import FloatArray

UNIT = 2**40

coarse = st.sampled_from([k / 16 for k in range(17)])
extreme = st.sampled_from([0.0, 1e-300, math.nextafter(0.5, 0), 0.5, math.nextafter(0.5, 1), 1.0])
fine = st.floats(0.0, 1.0)
anything = st.one_of(coarse, fine, extreme)
coins = st.integers(0, 1)
rules = st.sampled_from(ReferenceRule)
unhurried = settings(deadline=None)


class Expert(NamedTuple):
    """What one expert brings into a room: binary fractions as weights, so that a slow twin can multiply exactly."""

    forecast: float
    threshold: float
    weight: float
    team: int
    in_a: bool


def experts(probability: st.SearchStrategy[float]) -> st.SearchStrategy[Expert]:
    weights = st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1.0, 2.0, 16.0])
    return st.builds(Expert, probability, probability, weights, st.integers(-1, 2), st.booleans())


rooms = st.lists(experts(anything), max_size=10)
coarse_rooms = st.lists(experts(coarse), max_size=10)


def column(room: list[Expert], name: str) -> FloatArray:
    return np.array([getattr(expert, name) for expert in room], dtype=np.float64)


def ballots_of(room: list[Expert], rule: ReferenceRule, *, own: bool) -> Ballots:
    return ballots(
        column(room, "forecast"),
        rule,
        thresholds=column(room, "threshold") if own else None,
        weights=None if rule == "majority" else column(room, "weight"),
    )


def teams_of(room: list[Expert]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([expert.team for expert in room], dtype=np.int64)


def members_of_a(room: list[Expert]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.array([expert.in_a for expert in room], dtype=np.bool_)


def exact_log_odds(forecast: float) -> Decimal:
    clipped = min(max(Decimal(forecast), Decimal("0.02")), Decimal("0.98"))
    return (clipped / (1 - clipped)).ln()


def slow_ballot(expert: Expert, rule: ReferenceRule, line: float) -> tuple[Fraction, Fraction]:
    """Ballot and lean of one expert in units, as the rule is written down."""
    side = (expert.forecast > line) - (expert.forecast < line)
    lean = Fraction(round(Fraction(expert.forecast) * UNIT) - round(Fraction(line) * UNIT) or side)
    weight = Fraction(1 if rule == "majority" else max(expert.weight, 0.0))
    if rule == "product":
        with localcontext(prec=50):
            score = Fraction(exact_log_odds(expert.forecast) - exact_log_odds(line)) * UNIT
    else:
        score = lean if rule == "mean" else Fraction(side * UNIT)
    return Fraction(round(weight * score) or side * (weight > 0)), lean


def slow_answer(asked: list[Expert], rule: ReferenceRule, coin: int, *, own: bool) -> tuple[int, bool] | None:
    """Answer of these experts and whether they are tied; None if two ways of rounding logarithms may differ."""
    pairs = [slow_ballot(expert, rule, expert.threshold if own else 0.5) for expert in asked]
    lead = sum((value for value, _ in pairs), start=Fraction(0))
    if rule == "product" and abs(lead) <= 2 * len(asked) and any(value for value, _ in pairs):
        return None
    side = lead or sum((lean for _, lean in pairs), start=Fraction(0))
    return (int(side > 0) if side else coin), lead == 0


def assert_said(
    found: ReferenceAnswers, rooms_asked: list[list[Expert]], rule: ReferenceRule, coin: int, own: bool
) -> None:
    for i, asked in enumerate(rooms_asked):
        expected = slow_answer(asked, rule, coin, own=own)
        assert bool(found.given.flat[i]) == bool(asked)
        if expected is not None:
            assert (int(found.answers.flat[i]), bool(found.ties.flat[i])) == expected


@unhurried
@given(room=rooms, rule=rules, coin=coins, own=st.booleans())
def test_asking_all_others_at_once_equals_asking_without_each_expert(
    room: list[Expert], rule: ReferenceRule, coin: int, own: bool
) -> None:
    found = answers_of_others(ballots_of(room, rule, own=own), coin)

    assert_said(found, [room[:i] + room[i + 1 :] for i in range(len(room))], rule, coin, own)


@unhurried
@given(room=rooms, rule=rules, coin=coins, own=st.booleans())
def test_leaving_teams_out_at_once_equals_asking_without_each_team(
    room: list[Expert], rule: ReferenceRule, coin: int, own: bool
) -> None:
    found = answers_of_others(ballots_of(room, rule, own=own), coin, teams_of(room))

    without = [
        [other for j, other in enumerate(room) if j != i and (expert.team < 0 or other.team != expert.team)]
        for i, expert in enumerate(room)
    ]
    assert_said(found, without, rule, coin, own)


@unhurried
@given(room=rooms, rule=rules, coin_a=coins, coin_b=coins, own=st.booleans())
def test_everybody_and_each_group_say_what_their_members_say(
    room: list[Expert], rule: ReferenceRule, coin_a: int, coin_b: int, own: bool
) -> None:
    given_in = ballots_of(room, rule, own=own)
    in_a = members_of_a(room)
    of_a, of_b = [e for e in room if e.in_a], [e for e in room if not e.in_a]

    groups = answers_of_groups(given_in, in_a, (coin_a, coin_b))
    crossed = answers_of_other_group(groups, in_a)

    assert_said(answers_of_all(given_in, coin_a), [room], rule, coin_a, own)
    assert_said(groups.a, [of_a], rule, coin_a, own)
    assert_said(groups.b, [of_b], rule, coin_b, own)
    for i, expert in enumerate(room):
        other = groups.b if expert.in_a else groups.a
        assert tuple(part[i] for part in crossed) == tuple(part[()] for part in other)


@unhurried
@given(room=rooms, coin=coins, own=st.booleans(), in_teams=st.booleans())
def test_the_live_functions_are_the_majority_rule(room: list[Expert], coin: int, own: bool, in_teams: bool) -> None:
    forecasts = column(room, "forecast")
    teams = teams_of(room) if in_teams else None
    general = answers_of_others(ballots_of(room, ReferenceRule.MAJORITY, own=own), coin, teams)

    thresholds = column(room, "threshold") if own else None
    found = leave_one_out(forecasts, coin, teams, thresholds)
    published = majority(forecasts, coin)
    of_all = majority_of(votes(forecasts, thresholds), forecasts, coin, thresholds)

    assert found.answers.tolist() == general.answers.tolist()
    assert found.ties.tolist() == general.ties.tolist()
    assert (published.answer, published.tie) == tuple(x.item() for x in answers_of_all(ballots(forecasts), coin)[:2])
    everybody = answers_of_all(ballots_of(room, ReferenceRule.MAJORITY, own=own), coin)
    assert (of_all.answer, of_all.tie) == (int(everybody.answers), bool(everybody.ties))
    assert published.yes == sum(expert.forecast > 0.5 for expert in room)
    assert published.voters == sum(expert.forecast != 0.5 for expert in room)


@unhurried
@given(room=rooms, rule=rules, coin=coins, own=st.booleans(), data=st.data())
def test_the_order_of_experts_does_not_matter(
    room: list[Expert], rule: ReferenceRule, coin: int, own: bool, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(room))))
    shuffled = [room[i] for i in order]
    before, after = ballots_of(room, rule, own=own), ballots_of(shuffled, rule, own=own)

    for teams in (False, True):
        was = answers_of_others(before, coin, teams_of(room) if teams else None)
        now = answers_of_others(after, coin, teams_of(shuffled) if teams else None)
        assert [now.answers.tolist(), now.ties.tolist()] == [[part[i] for i in order] for part in was[:2]]
    assert answers_of_all(after, coin) == answers_of_all(before, coin)
    groups_now = answers_of_groups(after, members_of_a(shuffled), (coin, coin))
    assert groups_now == answers_of_groups(before, members_of_a(room), (coin, coin))


@unhurried
@given(room=coarse_rooms, rule=rules, coin=coins, own=st.booleans())
def test_the_opposite_forecasts_get_the_opposite_answers(
    room: list[Expert], rule: ReferenceRule, coin: int, own: bool
) -> None:
    mirrored = [e._replace(forecast=1.0 - e.forecast, threshold=1.0 - e.threshold) for e in room]
    plain, opposite = ballots_of(room, rule, own=own), ballots_of(mirrored, rule, own=own)

    others = answers_of_others(plain, coin, teams_of(room))
    turned = answers_of_others(opposite, 1 - coin, teams_of(room))

    assert turned.answers.tolist() == (1 - others.answers).tolist()
    assert turned.ties.tolist() == others.ties.tolist()
    assert int(answers_of_all(opposite, 1 - coin).answers) == 1 - int(answers_of_all(plain, coin).answers)


@pytest.mark.case("C17")
@unhurried
@given(
    forecasts=st.lists(st.floats(0.5, 1.0, exclude_min=True), min_size=2, max_size=8),
    weights=st.lists(st.floats(-1.0, 16.0), min_size=8, max_size=8),
    in_a=st.lists(st.booleans(), min_size=8, max_size=8),
    rule=rules,
    coin=coins,
    yes=st.booleans(),
)
def test_unanimous_experts_get_their_answer_under_every_rule_and_from_everybody_asked(
    forecasts: list[float], weights: list[float], in_a: list[bool], rule: ReferenceRule, coin: int, yes: bool
) -> None:
    size = len(forecasts)
    agreed = np.array(forecasts) if yes else 1.0 - np.array(forecasts)
    agreed = np.where(agreed == 0.5, np.nextafter(0.5, 0), agreed)
    given_in = ballots(agreed, rule, weights=None if rule == "majority" else np.array(weights[:size]))
    members = np.array(in_a[:size])

    asked = [
        answers_of_all(given_in, coin),
        answers_of_others(given_in, coin),
        *answers_of_groups(given_in, members, (coin, coin)),
    ]

    for found in asked:
        assert np.all((found.answers == yes) | ~found.given)
    assert np.all(asked[1].given)
    assert majority(agreed, coin).answer == yes
    assert np.all(leave_one_out(agreed, coin).answers == yes)


@unhurried
@given(room=st.lists(experts(anything), min_size=2, max_size=8), rule=rules, coin=coins, own=st.booleans())
def test_leaving_a_team_out_equals_a_room_without_it(
    room: list[Expert], rule: ReferenceRule, coin: int, own: bool
) -> None:
    found = answers_of_others(ballots_of(room, rule, own=own), coin, teams_of(room))

    for team in {expert.team for expert in room if expert.team >= 0}:
        rest = [expert for expert in room if expert.team != team]
        alone = answers_of_all(ballots_of(rest, rule, own=own), coin)
        for place in np.flatnonzero(teams_of(room) == team):
            assert tuple(part[place] for part in found) == tuple(part[()] for part in alone)


@unhurried
@given(rooms_at_once=st.lists(st.lists(experts(anything), min_size=4, max_size=4), min_size=1, max_size=4), rule=rules)
def test_many_rounds_at_once_are_each_round_alone(rooms_at_once: list[list[Expert]], rule: ReferenceRule) -> None:
    tosses = np.arange(len(rooms_at_once)) % 2
    teams, in_a = teams_of(rooms_at_once[0]), np.array([members_of_a(room) for room in rooms_at_once])
    stacked = [np.stack([column(room, name) for room in rooms_at_once]) for name in ("forecast", "threshold", "weight")]
    forecasts, thresholds, weights = stacked
    together = ballots(forecasts, rule, thresholds=thresholds, weights=None if rule == "majority" else weights)

    batch: tuple[tuple[np.ndarray[Any, Any], ...], ...] = (
        answers_of_all(together, tosses),
        answers_of_others(together, tosses, teams),
        answers_of_other_group(answers_of_groups(together, in_a, (tosses, 1 - tosses)), in_a),
        leave_one_out(forecasts, tosses, teams, thresholds),
    )

    for k, room in enumerate(rooms_at_once):
        alone, coin = ballots_of(room, rule, own=True), int(tosses[k])
        expected: tuple[tuple[np.ndarray[Any, Any], ...], ...] = (
            answers_of_all(alone, coin),
            answers_of_others(alone, coin, teams),
            answers_of_other_group(answers_of_groups(alone, in_a[k], (coin, 1 - coin)), in_a[k]),
            leave_one_out(forecasts[k], coin, teams, thresholds[k]),
        )
        for at_once, once in zip(batch, expected, strict=True):
            assert [part[k].tolist() for part in at_once] == [part.tolist() for part in once]


@unhurried
@given(room=rooms, rule=rules, coin=coins, absent=st.lists(st.booleans(), min_size=10, max_size=10))
def test_absent_experts_are_as_if_they_did_not_exist(
    room: list[Expert], rule: ReferenceRule, coin: int, absent: list[bool]
) -> None:
    away = np.array(absent[: len(room)], dtype=np.bool_)
    forecasts, weights = np.where(away, np.nan, column(room, "forecast")), column(room, "weight")
    with_gaps = ballots(forecasts, rule, weights=None if rule == "majority" else weights, present=~away)
    without = ballots_of([e for e, gone in zip(room, away, strict=True) if not gone], rule, own=False)
    in_a = members_of_a(room)

    assert answers_of_all(with_gaps, coin) == answers_of_all(without, coin)
    assert answers_of_groups(with_gaps, in_a, (coin, coin)) == answers_of_groups(without, in_a[~away], (coin, coin))
    found, expected = answers_of_others(with_gaps, coin), answers_of_others(without, coin)
    assert [part[~away].tolist() for part in found] == [part.tolist() for part in expected]
