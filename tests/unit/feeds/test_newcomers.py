"""Newcomers of a round: with the guard on they have one vote and one weight together, as long as others are no news."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from stream_peer.events import topics
from stream_peer.events.feed_log import Round
from stream_peer.feeds.vote_units import Groups, newcomers
from stream_peer.log.stage import Effects
from tests.feed_histories import log_of, newest, round_of, stage

REGULARS = [f"e{number}" for number in range(5)]


def rounds(questions: int, ids_a_question: int, *, told: int = 1) -> list[Round]:
    """Five regulars, of whom one errs now and then, and ids that are used ``told`` times and say the opposite."""
    random = np.random.default_rng(1)
    said = []
    for number in range(questions):
        side = 1 if random.random() < 0.5 else -1
        errs = random.random(5) < 0.03
        forecasts = {e: 0.5 + (-side if err else side) * 0.3 for e, err in zip(REGULARS, errs.tolist(), strict=True)}
        forecasts |= {f"new-{number // told}-{place}": 0.5 - side * 0.45 for place in range(ids_a_question)}
        said.append(round_of(f"q{number}", forecasts))
    return said


def lived(said: Sequence[Round], **defaults: object) -> list[dict[str, Any]]:
    """Reference answer and mix of each question, as it was published first."""
    feed_stage, found = stage(method_version=2, **defaults), []
    for record in log_of(said):
        effects = Effects()
        feed_stage.step(record, effects)
        (answer,) = newest(effects.outputs, topics.REFERENCE_ANSWERS).values()
        (mixed,) = newest(effects.outputs, topics.MIXED_FORECASTS).values()
        found.append({"votes": answer["votes"], "answer": answer["reference_answer"], "mix": mixed["mix"]})
    return found


@pytest.mark.parametrize(
    ("answered", "expected"),
    [
        ([0, 0, 0, 0, 0], []),  # the beginning
        ([3, 3, 3, 0, 3], [3]),
        ([90, 80, 70], []),  # who is not among four is not new
        ([90, 80, 70, 0], []),
        ([90, 80, 70, 30, 10, 9, 0], [5, 6]),
        ([900, 800, 700, 600, 50, 49], [5]),
    ],
)
def test_new_is_who_has_a_third_of_what_the_fourth_has_and_fewer_than_fifty(
    answered: Sequence[float], expected: Sequence[int]
) -> None:
    assert np.flatnonzero(newcomers(np.array(answered, dtype=np.float64))).tolist() == expected


def test_a_group_makes_nobody_new_who_would_not_be_new_beside_one_of_it() -> None:
    answered = np.array([60.0, 60.0, 60.0, 60.0, 9.0, 9.0, 9.0, 0.0])
    voices = Groups.of([[0, 1, 2, 3]], 8).voices

    assert np.flatnonzero(newcomers(answered)).tolist() == [4, 5, 6, 7]
    assert np.flatnonzero(newcomers(answered, voices)).tolist() == [7]


def test_ids_that_are_used_once_have_one_vote_together() -> None:
    alone, guarded = lived(rounds(60, 0)), lived(rounds(60, 6))
    off = lived(rounds(60, 6), guard="off")

    assert [one["votes"] for one in off] == [11] * 60
    assert [one["votes"] for one in guarded[3:]] == [6] * 57
    assert [one["answer"] for one in guarded[3:]] == [one["answer"] for one in alone[3:]]
    assert sum(one["answer"] != before["answer"] for one, before in zip(off, alone, strict=True)) > 50


def test_ids_that_are_used_once_move_the_mix_as_one_expert_does() -> None:
    alone, one, six = (np.array([found["mix"] for found in lived(rounds(80, ids))])[10:] for ids in (0, 1, 6))

    assert np.abs(six - alone).max() < 1.5 * np.abs(one - alone).max()


def test_who_stays_is_new_until_it_has_answered_a_third_as_often_as_the_regulars() -> None:
    random, said = np.random.default_rng(2), rounds(100, 0)
    for question in said[60:]:
        question.experts.extend(["new-a", "new-b"])
        question.probabilities.extend(random.random(2).tolist())

    votes = [one["votes"] for one in lived(said)]

    assert set(votes[60:90]) <= {5, 6}
    assert votes[90:] == [7] * 10
