"""Answers of groups that the experts are divided into, and what of them goes into the sums."""

import numpy as np

from stream_peer.feeds.methods.method import N_GROUPS, NO_ANSWERS, Chance, OwnAnswers
from stream_peer.numerics.arguments import unchecked
from stream_peer.numerics.reference_rules import Ballots, ReferenceAnswers, answers_of_groups

_NONE = 2


def asked_answers(cast: Ballots, chance: Chance, asked: int) -> tuple[list[ReferenceAnswers], int]:
    """The answer of each of the first groups, and all of them coded, see ``OwnAnswers``."""
    found = [
        unchecked(answers_of_groups)(cast, chance.groups == number, (coin, coin)).a
        for number, coin in enumerate(chance.coins[:asked])
    ]
    coded = sum(3**number * (int(a.answers) if a.given else _NONE) for number, a in enumerate(found))
    return found, coded + sum(_NONE * 3**number for number in range(len(found), N_GROUPS))


def answer_for_all(answer: ReferenceAnswers, n_experts: int, coded: int = NO_ANSWERS) -> OwnAnswers:
    """One answer, that all experts of a round are scored against."""
    answers = np.full(n_experts, int(answer.answers), dtype=np.int8)
    return OwnAnswers(answers, np.full(n_experts, bool(answer.ties)), bool(answer.given), coded)


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
