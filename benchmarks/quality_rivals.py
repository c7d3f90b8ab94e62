"""What the mix is compared with: the best expert in hindsight, Dawid and Skene's model, and a learner of combinations.

None of it is the product's. Each says a forecast for every question of a data set.
"""

from collections.abc import Sequence

import numpy as np

from benchmarks.quality_sets import Floats, Question, is_revealed

_ROUNDS_OF_EM = 100
_SMOOTHING = 0.01


def squared_losses(forecasts: Floats, questions: Sequence[Question]) -> float:
    """Summed over the questions."""
    outcomes = np.array([question.outcome for question in questions])
    return float(np.sum(np.square(forecasts - outcomes)))


def best_expert(questions: Sequence[Question]) -> Floats:
    """The expert who did best, chosen when all outcomes are known; the plain mean where it is absent."""
    means = np.array([question.forecasts.mean() for question in questions])
    gains: dict[str, float] = {}
    for question, mean in zip(questions, means.tolist(), strict=True):
        losses = np.square(question.forecasts - question.outcome) - (mean - question.outcome) ** 2
        for expert, loss in zip(question.experts, losses.tolist(), strict=True):
            gains[expert] = gains.get(expert, 0.0) - loss
    best = max(gains, key=lambda expert: gains[expert])
    return np.array([_said_by(best, question, mean) for question, mean in zip(questions, means.tolist(), strict=True)])


def _said_by(expert: str, question: Question, otherwise: float) -> float:
    return float(question.forecasts[question.experts.index(expert)]) if expert in question.experts else otherwise


def dawid_skene(questions: Sequence[Question]) -> tuple[Floats, str]:
    """The probability of yes by Dawid and Skene's model of votes at ½, and whose implementation it is.

    It is shown the votes of all questions at once, those of later ones too, and no outcome. crowd-kit's where that is
    installed (``make quality``), else `expectation_maximization`.
    """
    try:
        from crowdkit.aggregation import DawidSkene
        from pandas import DataFrame
    except ImportError:
        return expectation_maximization(questions), "own"
    rows = [
        (number, expert, int(p > 0.5))
        for number, question in enumerate(questions)
        for expert, p in zip(question.experts, question.forecasts.tolist(), strict=True)
    ]
    found = DawidSkene(n_iter=_ROUNDS_OF_EM).fit_predict_proba(DataFrame(rows, columns=["task", "worker", "label"]))
    yes = found[1] if 1 in found.columns else 0.0 * found[0]
    return np.array([float(yes[number]) for number in range(len(questions))]), "crowd-kit"


def expectation_maximization(questions: Sequence[Question]) -> Floats:
    """Dawid and Skene's model, beginning with the share of votes; an own small form, for want of crowd-kit."""
    experts = {expert: place for place, expert in enumerate(sorted({e for q in questions for e in q.experts}))}
    task = np.repeat(np.arange(len(questions)), [len(question.experts) for question in questions])
    worker = np.array([experts[expert] for question in questions for expert in question.experts])
    vote = np.concatenate([question.forecasts > 0.5 for question in questions]).astype(np.int64)
    yes: Floats = np.bincount(task, vote) / np.bincount(task)
    for _ in range(_ROUNDS_OF_EM):
        logs = np.zeros((len(questions), 2))
        for truth, belief in enumerate((1.0 - yes, yes)):
            counts = np.zeros((len(experts), 2)) + _SMOOTHING
            np.add.at(counts, (worker, vote), belief[task])
            chances = np.log(counts / counts.sum(axis=1, keepdims=True))
            logs[:, truth] = np.bincount(task, chances[worker, vote]) + np.log(max(belief.mean(), 1e-9))
        before, yes = yes, 1.0 / (1.0 + np.exp(np.clip(logs[:, 0] - logs[:, 1], -700.0, 700.0)))
        if np.abs(yes - before).max() < 1e-6:
            break
    return yes


def gradient_boa(questions: Sequence[Question], share: float, seed: int) -> Floats:
    """Bernstein online aggregation with the gradient trick, of experts that may sleep, on revealed outcomes.

    After the R package opera: a second-order learner whose rates are each expert's own. It competes with the best
    combination at its own forecast, as the product's quick truth mixer does.
    """
    places = {expert: place for place, expert in enumerate(sorted({e for q in questions for e in q.experts}))}
    size = len(places)
    regrets, squares, largest = np.zeros(size), np.zeros(size), np.full(size, 2.0**-20)
    rates, said = np.zeros(size), np.empty(len(questions))
    for number, question in enumerate(questions):
        here = np.array([places[expert] for expert in question.experts])
        raw = _weights(rates[here], regrets[here])
        said[number] = forecast = min(max(float(raw @ question.forecasts), 0.0), 1.0)
        if is_revealed(question.id, share, seed):
            regret = 2.0 * (forecast - question.outcome) * (forecast - question.forecasts)
            largest[here] = np.maximum(largest[here], np.abs(regret))
            squares[here] += np.square(regret)
            rate = np.minimum(0.5 / largest[here], np.sqrt(np.log(size + 1.0) / np.maximum(squares[here], 1e-12)))
            surprise = largest[here] * (rates[here] * regret > 0.5)
            regrets[here] += 0.5 * (regret - rates[here] * np.square(regret) + surprise)
            rates[here] = rate
    return said


def _weights(rates: Floats, regrets: Floats) -> Floats:
    """∝ η·exp(η·R); of those of whom nothing is known as if η were the mean of the others'."""
    known = rates > 0.0
    if not known.any():
        return np.full(len(rates), 1.0 / len(rates))
    rates = np.where(known, rates, rates[known].mean())
    logs = np.log(rates) + rates * regrets
    raw: Floats = np.exp(logs - logs.max())
    return raw / raw.sum()
