"""A look at very many experts is done in pieces: none of them is long, and together they are the whole look."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pytest

from stream_peer.feeds.alarm_checks import AT_ONCE, CHECK_EVERY
from stream_peer.feeds.alarms.groups import Group, look_for_copies
from stream_peer.feeds.alarms.recent import WINDOW, Recent
from stream_peer.log.stage import Effects
from stream_peer.numerics.arguments import SmallIntArray
from stream_peer.numerics.dependence import blocks, copies, suspicion
from stream_peer.numerics.dependence.vote_bits import VoteBits
from tests.feed_histories import log_of, round_of, stage

MOST = 20_000_000
"""Steps of a piece: some milliseconds, since they are about the cheapest that a processor does in such tables."""

WORK: Mapping[tuple[Any, str], Callable[..., int]] = {
    (VoteBits, "__init__"): lambda _, votes: 2 * votes.size,
    (VoteBits, "disagreements"): lambda bits, some, others: 6 * len(bits._yes) * len(some) * len(others),
    (VoteBits, "of_pairs"): lambda bits, pairs: 16 * len(bits._yes) * len(pairs),
    (copies, "_likeliest"): lambda pairs, *_: 60 * len(pairs),
    (suspicion, "_product"): lambda one, two: one.size * two.shape[-1] // 32,
    (suspicion, "means"): lambda counted: 8 * counted.common.size,
    (suspicion, "_expected"): lambda counts, heard: 2 * counts.first.common.size * heard.shape[-1],
    (blocks, "_explained"): lambda counted, block, witnesses: (
        counted.products[..., 0, 0].size * len(block) * len(witnesses) * (len(block) + len(witnesses))
    ),
}
"""About how many steps that takes in which most of a look is spent."""


@contextmanager
def counted_work() -> Iterator[list[int]]:
    """What has been done so far, in its only element."""
    steps = [0]

    def counting(work: Callable[..., int], function: Callable[..., Any]) -> Callable[..., Any]:
        def count(*arguments: Any) -> Any:
            steps[0] += work(*arguments)
            return function(*arguments)

        return count

    with ExitStack() as stack:
        for (place, name), work in WORK.items():
            stack.enter_context(mock.patch.object(place, name, counting(work, getattr(place, name))))
        yield steps


def crowd(experts: int, yes: float) -> SmallIntArray:
    """Independent experts, beside 3,000 copies of one who errs, and thirty who often say what one of them says."""
    rng = np.random.default_rng(experts)
    truth = np.where(rng.random((WINDOW, 1)) < yes, 1, -1)
    votes = np.where(rng.random((WINDOW, experts)) < rng.uniform(0.1, 0.4, experts), -truth, truth).astype(np.int8)
    votes[:, :3000] = votes[:, :1]
    votes[:, 5000:5030] = np.where(rng.random((WINDOW, 30)) < 0.7, votes[:, 5000:5001], votes[:, 5000:5030])
    votes[rng.random(votes.shape) < 0.1] = 0
    return votes


@pytest.mark.parametrize(("yes", "are_known"), [(0.5, True), (0.05, False)])
def test_no_piece_of_a_look_at_ten_thousand_experts_is_long(yes: float, are_known: bool) -> None:
    votes = crowd(10_000, yes)
    window = Recent().read(votes.shape[1])._replace(votes=votes, tallies=None)
    named = [Group(list(range(3000)), "copies", 1.0, 0.1, 400), Group(list(range(5000, 5030)), "copies", 0.6, 0.2, 400)]
    longest = total = 0

    with counted_work() as steps:
        for _ in look_for_copies(window, named if are_known else [], None, 0, blocks=True):
            longest, total, steps[0] = max(longest, steps[0]), total + steps[0], 0

    assert total > 10 * MOST
    assert max(longest, steps[0]) <= MOST


def test_a_record_that_is_folded_in_pieces_gives_what_it_gives_at_once() -> None:
    rng = np.random.default_rng(1)
    said = rng.uniform(0.05, 0.95, (2 * CHECK_EVERY, AT_ONCE + 1)).round(2).tolist()
    said = [{f"expert-{number}": p for number, p in enumerate(row)} for row in said]
    log = log_of([round_of(f"q{number}", forecasts) for number, forecasts in enumerate(said)])
    at_once, in_pieces, pieces = stage(), stage(), list[int]()

    for record in log:
        expected, effects = Effects(), Effects()
        at_once.step(record, expected)
        in_pieces.begin(record, effects)
        pieces.append(0)
        while not in_pieces.may_step:
            assert effects.outputs == []
            pieces[-1] += in_pieces.go_on()
        assert effects.outputs == expected.outputs

    assert [number for number, count in enumerate(pieces, 1) if count] == [CHECK_EVERY, 2 * CHECK_EVERY]
    assert in_pieces.snapshot() == at_once.snapshot()


def test_who_asks_of_a_question_in_the_middle_is_told_what_holds_in_the_end() -> None:
    log = log_of(
        [round_of(f"q{n}", {f"e{k}": 0.5 + 0.001 * k for k in range(AT_ONCE + 1)}) for n in range(CHECK_EVERY)]
    )
    at_once, in_pieces = stage(), stage()
    effects = Effects()
    for record in log:
        at_once.step(record, Effects())
        in_pieces.begin(record, effects)
    is_begun = not in_pieces.may_step

    told = in_pieces.question_records("f", f"q{CHECK_EVERY - 1}")

    assert is_begun
    assert told == at_once.question_records("f", f"q{CHECK_EVERY - 1}")
    assert in_pieces.may_step
