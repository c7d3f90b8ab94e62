"""Votes of feeds in which something changes, and slow twins of the scans."""

import math

import numpy as np

from stream_peer.numerics.arguments import FloatArray, SmallIntArray


def votes_and_answers(
    generator: np.random.Generator, errors: FloatArray, presence: float = 1.0
) -> tuple[SmallIntArray, SmallIntArray]:
    """Votes of independent experts with these error rates, question by question, and their leave-one-out answers."""
    outcomes = generator.choice([-1, 1], size=(len(errors), 1))
    votes = np.where(generator.random(errors.shape) < errors, -outcomes, outcomes)
    votes = np.where(generator.random(errors.shape) < presence, votes, 0)
    others = votes.sum(axis=1, keepdims=True) - votes
    coins = generator.choice([-1, 1], size=(len(errors), 1))
    answers = np.where(votes == 0, 0, np.where(others == 0, coins, np.sign(others)))
    return votes.astype(np.int8), answers.astype(np.int8)


def steady(errors: list[float], n_questions: int) -> FloatArray:
    """The same error rates in so many questions."""
    return np.tile(np.array(errors), (n_questions, 1))


def moments(votes: SmallIntArray, answers: SmallIntArray) -> tuple[FloatArray, FloatArray]:
    """``pair`` and ``rest`` of each question."""
    voters = np.count_nonzero(votes, axis=1)
    total = votes.sum(axis=1, dtype=np.int64)
    pair = (total * total - voters) / (voters * (voters - 1))
    return pair, (votes * answers).sum(axis=1, dtype=np.int64) / voters


def slow_scan(
    values: list[float], weights: list[float], span: float, earlier: list[float] | None, step: int = 1
) -> tuple[float, int]:
    """`scan_for_changes` of one series, cut by cut; of earlier sums the weight, its squares, values and squares."""
    past = earlier or [0.0, 0.0, 0.0, 0.0]
    rows = list(zip(weights, values, strict=True))
    weight = past[0] + math.fsum(w for w, _ in rows)
    mean = (past[2] + math.fsum(w * x for w, x in rows)) / weight
    variance = (past[3] + math.fsum(w * x * x for w, x in rows)) / weight - mean * mean
    best, at = 0.0, 0
    for cut in range(len(rows) % step, len(rows), step):
        before, after = rows[:cut], rows[cut:]
        first = past[0] + math.fsum(w for w, _ in before)
        first2 = past[1] + math.fsum(w * w for w, _ in before)
        second, second2 = math.fsum(w for w, _ in after), math.fsum(w * w for w, _ in after)
        if first <= 0.0 or second <= 0.0 or min(first**2 / first2, second**2 / second2) < 25.0 - 1e-9:
            continue
        rise = math.fsum(w * x for w, x in after) / second
        rise -= (past[2] + math.fsum(w * x for w, x in before)) / first
        noise = variance * (first2 / first**2 + second2 / second**2) + span * abs(rise) / (3.0 * min(first, second))
        z = rise / math.sqrt(noise)
        if abs(z) > abs(best) + 1e-12:
            best, at = z, cut
    return best, at


def slow_residuals(votes: SmallIntArray, answers: SmallIntArray, expert: int) -> tuple[list[float], list[float]]:
    """Of one expert r of each question, and 1 where there is any; see `expert_changes`."""
    own, others, there = [], [], []
    for cast, asked in zip(votes.tolist(), answers.tolist(), strict=True):
        agreed = [vote * answer for vote, answer in zip(cast, asked, strict=True)]
        rest = [x for place, x in enumerate(agreed) if x and place != expert]
        counts = agreed[expert] != 0 and len(rest) >= 2
        there.append(float(counts))
        own.append(float(agreed[expert]) if counts else 0.0)
        others.append(round(math.fsum(rest) / len(rest) * 2**20) / 2**20 if counts else 0.0)
    ratio = (math.fsum(own) + 10.0) / max(math.fsum(others) + 10.0, 1.0)
    ratio = min(max(ratio, 0.0), 4.0)
    return [x - ratio * m for x, m in zip(own, others, strict=True)], there
