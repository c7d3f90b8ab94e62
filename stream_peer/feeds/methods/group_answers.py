"""Answers of groups that the experts are divided into, and what of them goes into the sums."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stream_peer.feeds.methods.method import N_GROUPS, NO_ANSWERS, OwnAnswers

_NONE = 2


class GroupAnswer(NamedTuple):
    """The answer of one group; ``given``: whether one of its members is present."""

    answer: int
    tie: bool
    given: bool = True


def coded_answers(found: Sequence[GroupAnswer]) -> int:
    """The answers of the first groups as one number, see ``OwnAnswers``."""
    digits = [group.answer if group.given else _NONE for group in found]
    digits += [_NONE] * (N_GROUPS - len(found))
    return sum(3**number * digit for number, digit in enumerate(digits))


def answer_for_all(found: GroupAnswer, n_experts: int, coded: int = NO_ANSWERS) -> OwnAnswers:
    """One answer, that all experts of a round are scored against."""
    return OwnAnswers(np.full(n_experts, found.answer, np.int8), np.full(n_experts, found.tie), found.given, coded)


def group_moments(coded: int, asked: int) -> tuple[float, ...] | None:
    """Whether the first, second and third group answered 1, and pairs of them, and all three.

    None if one of those asked had no answer; of two, the third counts as 0.
    """
    digits = coded % 3, coded // 3 % 3, coded // 9
    if not asked or _NONE in digits[:asked]:
        return None
    first, second = float(digits[0]), float(digits[1])
    third = float(digits[2]) if asked == N_GROUPS else 0.0
    return first, second, third, first * second, first * third, second * third, first * second * third
