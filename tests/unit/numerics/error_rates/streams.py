"""Many simulated questions at once: votes of experts, the others' majority, and the sums that estimators read."""

from itertools import combinations_with_replacement

import numpy as np
import numpy.typing as npt

from stream_peer.numerics.arguments import BoolArray, FloatArray
from stream_peer.numerics.error_rates import ClassMomentSums, MomentSums, TruthSums

Ints = npt.NDArray[np.int64]


def outcomes_of(rng: np.random.Generator, questions: int, share_of_zeros: float) -> BoolArray:
    drawn: BoolArray = rng.random(questions) >= share_of_zeros
    return drawn


def votes_of(rng: np.random.Generator, outcomes: BoolArray, errors: FloatArray) -> Ints:
    """±1 of experts who err independently; errors (n,), or (questions, n) if they change."""
    wrong = rng.random((outcomes.size, errors.shape[-1])) < errors
    return np.where(wrong ^ outcomes[:, None], 1, -1)


def others_majority(rng: np.random.Generator, votes: Ints) -> Ints:
    """Each expert's leave-one-out answer, 0 or 1; ties by a coin of the question."""
    lead = votes.sum(axis=1, keepdims=True) - votes
    coins = rng.integers(0, 2, (len(votes), 1))
    return np.where(lead == 0, coins, lead > 0).astype(np.int64)


def moment_rows(votes: Ints, answers: Ints) -> FloatArray:
    """``pair`` and ``rest`` of each question, (2, questions)."""
    n = votes.shape[1]
    total = votes.sum(axis=1)
    return np.stack([(total**2 - n) / (n * (n - 1)), (votes * (2 * answers - 1)).mean(axis=1)])


def class_rows(votes: Ints, answers: Ints) -> FloatArray:
    """The five class-dependent terms of each question, (5, questions)."""
    n = votes.shape[1]
    yes = (votes > 0).sum(axis=1)
    pairs, triples = yes * (yes - 1) / (n * (n - 1)), yes * (yes - 1) * (yes - 2) / (n * (n - 1) * (n - 2))
    return np.stack([yes / n, pairs, triples, answers.mean(axis=1), (answers * (votes > 0)).mean(axis=1)])


def moment_sums(rows: FloatArray) -> MomentSums:
    pair, rest = rows
    n = float(pair.size)
    products = (pair @ pair, rest @ rest, pair @ rest)
    return MomentSums(n, n, float(pair.sum()), float(rest.sum()), *(float(product) for product in products))


def class_sums(rows: FloatArray) -> ClassMomentSums:
    n = float(rows.shape[1])
    products = [float(one @ two) for one, two in combinations_with_replacement(rows, 2)]
    return ClassMomentSums(n, n, *rows.sum(axis=1).tolist(), *products)


def truth_sums(outcomes: BoolArray, wrong_shares: FloatArray) -> TruthSums:
    parts = [float(part.sum()) for part in (wrong_shares[~outcomes], wrong_shares[outcomes])]
    ones = float(outcomes.sum())
    zeros = outcomes.size - ones
    return TruthSums(zeros - parts[0], parts[0], ones - parts[1], parts[1])


def wrong_shares_of(outcomes: BoolArray, answers: Ints) -> FloatArray:
    shares: FloatArray = (answers != outcomes[:, None]).mean(axis=1)
    return shares


def majority_error(errors: FloatArray) -> float:
    """Exact share of wrong leave-one-out answers: the distribution of the others' wrong votes, expert by expert."""
    rates = []
    for left_out in range(errors.size):
        wrong_votes = np.array([1.0])
        for error in np.delete(errors, left_out):
            wrong_votes = np.convolve(wrong_votes, [1 - error, error])
        n_others = errors.size - 1
        more = float(wrong_votes[n_others // 2 + 1 :].sum())
        rates.append(more if n_others % 2 else more + 0.5 * float(wrong_votes[n_others // 2]))
    return float(np.mean(rates))
