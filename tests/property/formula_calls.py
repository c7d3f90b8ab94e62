"""Every public formula with arguments that are right, and what may come in their place that is not."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from stream_peer import numerics
from stream_peer.errors import FormulaInputError
from stream_peer.lab.formulas import (
    apriori,
    five_mixers,
    flips,
    forms,
    gaps,
    gradients,
    heterogeneous,
    horvitz_thompson,
    learners,
    online,
    reference_rules,
    regret_sums,
    three_references,
    two_groups,
)
from stream_peer.lab.formulas.five_mixers import FiveMixerSums
from stream_peer.lab.formulas.gradients import SlopeSums, peer_gradients
from stream_peer.lab.formulas.horvitz_thompson import HorvitzThompsonSums
from stream_peer.lab.formulas.reference_rules import answers_of_groups, ballots
from stream_peer.lab.formulas.regret_sums import LossParts, RegretSums
from stream_peer.lab.formulas.three_references import ThreeReferenceClassSums, ThreeReferenceSums
from stream_peer.lab.formulas.two_groups import EqualGroupSums
from stream_peer.numerics.dependence import DependenceSums, RankAgreement, VoteMoments
from stream_peer.numerics.dependence.followers import CrowdSums
from stream_peer.numerics.drift import Earlier
from stream_peer.numerics.error_rates import (
    ClassMomentSums,
    ClassMomentTerms,
    ErrorRate,
    MomentSums,
    MomentTerms,
    TruthSums,
    TwoGroupSums,
    team_votes,
)
from stream_peer.numerics.losses import LOG, SPHERICAL, SQUARED, LogLoss, SphericalLoss, SquaredLoss
from stream_peer.numerics.mixers import SideBySide
from stream_peer.tools.report import pairs, skill

NUMBERS = (np.nan, np.inf, -np.inf, -1, 2, 1e300, -1e300, 1e49)
NO_NUMBERS: tuple[Any, ...] = (None, "half", [[0.5], [0.5, 0.5]], {}, object())
ROOMS = [
    *(getattr(numerics, room) for room in numerics.__all__),
    *(five_mixers, gradients, learners, reference_rules, regret_sums, three_references, two_groups),
    *(apriori, flips, forms, gaps, heterogeneous, horvitz_thompson, online),
    *(pairs, skill),
]
"""Formulas of the service, of methods that only a replay computes, and of reports."""

UNCHECKED = {"sides", "scaled_sides"}
"""Of a loss: what its other methods check the arguments for."""

FORECASTS = np.array([0.9, 0.4, 0.7])
VOTES = np.array([1, -1, 1], np.int8)
BITS = np.array([1, 0, 1], np.int8)
TEAMS = np.array([0, 0, -1])
EVEN = np.full(3, 1.0 / 3.0)
SOME = np.array([0.3, -0.2, 0.1])
ABSOLUTE = np.array([0.5, 0.4, 0.3])
COUNTS = np.array([10.0, 20.0, 0.0])
PARTS = LossParts(np.array([0.01, 0.16, 0.09]), np.array([0.01, 0.36, 0.09]), np.array([0.81, 0.16, 0.49]))
ROWS = np.array([[1, -1, 1, 0], [1, 1, -1, 1]] * 60, np.int8)
REGRETS = peer_gradients(EVEN, FORECASTS, 1, (0.1, 0.2))
BALLOTS = ballots(FORECASTS, "mean")
GROUPS = answers_of_groups(BALLOTS, np.array([True, True, False]), (0, 1))
FREE = ErrorRate(0.1, 0.2, 0.1, 0.2, 900.0, "ok", 0.001)
MEASURED = TruthSums(70.0, 30.0, 80.0, 20.0)
MOMENTS = MomentSums(1000.0, 1000.0, 250.0, 400.0, 160.0, 300.0, 150.0)
FIVE = FiveMixerSums.nothing(3).weights((0.1, 0.2), 3)
DISTANCES = np.full((60, 5), 0.04)
CROWD = CrowdSums(*np.full((8, 5), 50.0))

BY_NAME: Mapping[str, Any] = {
    "absolute": ABSOLUTE,
    "alpha": 2.5,
    "answer_a": 1,
    "answer_b": 0,
    "answered": 20.0,
    "awake": np.array([True, True, False]),
    "ballots": BALLOTS,
    "believed": FORECASTS,
    "best_loss": 10.0,
    "subsample": 3,
    "buckets": np.array([0, 4, 8]),
    "coin": 1,
    "coins": (0, 1),
    "confidence": 0.9,
    "cross": np.array([0.1, 0.2, 0.3]),
    "delta": 0.05,
    "error_rate": 0.2,
    "estimation": 1.0,
    "factor": 0.5,
    "fewest": 10.0,
    "flip_probability": 0.25,
    "forecast": 0.7,
    "forecasts": FORECASTS,
    "free": FREE,
    "gaps": 2.0,
    "groups": GROUPS,
    "if_one": PARTS.if_one,
    "if_zero": PARTS.if_zero,
    "in_a": np.array([True, True, False]),
    "learning_rate": 0.5,
    "level": 0.9,
    "limit": 0.2,
    "logs": SOME,
    "loss_range": 1.5,
    "losses": ABSOLUTE,
    "measured": MEASURED,
    "memory": 100,
    "n_bins": 4,
    "n_experts": 5,
    "newest": 9,
    "one": 0.2,
    "online": 20.0,
    "other": SOME,
    "outcome": 1,
    "outcomes": BITS,
    "pair": SOME,
    "peer": REGRETS,
    "peer_regrets": SOME,
    "present": np.array([True, True, False]),
    "prior": np.array([0.2, 0.3, 0.5]),
    "questions": 400.0,
    "rate0": 0.1,
    "rate1": 0.2,
    "rates": (0.1, 0.2),
    "reference_answer": 1,
    "reference_answers": BITS,
    "reference_losses": np.array([0.2, 0.3, 0.4]),
    "regrets": SOME,
    "rest": SOME,
    "reveal_probability": 0.5,
    "revealed": 200.0,
    "rho": 25.0,
    "share": 0.5,
    "share_of_zeros": 0.4,
    "sigma": 1.0,
    "size": 2,
    "slope": 0.5,
    "spans": np.array([2.0, 2.0]),
    "sums": REGRETS,
    "teams": TEAMS,
    "thresholds": np.array([0.5, 0.3, 0.6]),
    "true_regrets": SOME,
    "truth": REGRETS,
    "uniform_share": 0.5,
    "votes": VOTES,
    "weight": 0.5,
    "weights": EVEN,
    "wrong": ABSOLUTE,
    "wrong_share": 0.5,
    "zero": 0.1,
}
"""Arguments by the name of the parameter, where it is the same of most formulas."""

_SHARES = {"c1": 0.62, "c2": 0.6, "c3": 0.435}
_GAP = {"loss_against_reference": PARTS.against, "loss_if_one": PARTS.if_one, "loss_if_zero": PARTS.if_zero}
_LIVE = {"regret_l": SOME, "regret_1": SOME, "regret_0": SOME, "variance": COUNTS}
_RATES = {"rates": ((0.1, 0.2), (0.2, 0.3))}
_OF_QUESTIONS = {"rates": np.array([0.1, 0.4])}
_SCAN = np.stack((np.linspace(-1.0, 1.0, 60), np.cos(np.arange(60.0))), axis=1)
_ONES = np.ones((60, 2))
_EARLIER = Earlier(*(np.array([10.0, 10.0]) for _ in range(4)))

BY_FORMULA: Mapping[str, Mapping[str, Any]] = {
    "agreement_change": {"earlier": MOMENTS, "weights": ABSOLUTE, "least": 2.0},
    "agreement_of_teams": {"found": team_votes(VOTES, BITS, TEAMS)},
    "class_terms_of_teams": {"found": team_votes(np.array([1, -1, 1, 1]), np.array([1, 0, 1, 1]), np.arange(4))},
    "ballots": {"rule": "product", "weights": np.array([1.0, 2.0, 3.0])},
    "live_bounds": _LIVE | _RATES,
    "regret_bounds": _LIVE | _RATES | {"spread": COUNTS},
    "answer_variance": _RATES,
    "one_sided_boundary": {"variance": COUNTS},
    "class_moment_terms": {},
    "class_errors": {"sums": DependenceSums(np.full((25, 6), 8.0)), "voters": 9.0},
    "agreement_evidence": {"pair": 4.0, "pair2": 4.0, "by_chance": 1.0},
    "combine_with_truth": {"wrong0": 10.0, "revealed0": 50.0, "wrong1": 5.0, "revealed1": 60.0},
    "crowd_distances": {
        "forecasts": np.array([0.9, 0.4, 0.7, 0.2, 0.5]),
        "sizes": np.array([4, 1]),
        "said_before": [np.array([0.5, 0.6]), np.array([0.4])],
    },
    "crowd_sums": {
        "near": DISTANCES,
        "apart": DISTANCES,
        "scatter": np.full(60, 0.01),
        "present": np.ones((60, 5), np.bool_),
        "repeated": DISTANCES,
    },
    "expert_changes": {"votes": ROWS, "answers": ROWS[::-1]},
    "find_blocks": {"votes": ROWS, "known": [[0, 1, 2]], "teams": np.array([0, 0, -1, -1]), "turn": 1},
    "find_copies": {"votes": ROWS, "known": [[0, 1]], "teams": np.array([0, 0, -1, -1]), "turn": 1},
    "find_repeaters": {"sums": CROWD, "usual": 0.2, "known": [0]},
    "find_followers": {
        "sums": CROWD,
        "scatter": np.full(60, 0.01),
        "present": np.ones((60, 5), np.bool_),
        "known": np.array([1]),
    },
    "heterogeneous_bound": _OF_QUESTIONS,
    "heterogeneous_bound_printed": _OF_QUESTIONS,
    "order_kept_beyond": _OF_QUESTIONS,
    "flipped_error_rate": {"error_rate": np.array([0.1, 0.4])},
    "interval_ends": {"rate": FREE},
    "isotonic_regression": {"values": FORECASTS, "weights": ABSOLUTE},
    "measured_change": {"earlier_wrong": 5.0, "earlier": 20.0, "weights": ABSOLUTE},
    "mixers_side_by_side": {
        "mixers": SideBySide.of([(0.35, 24.0)], [24.0]),
        "sums": np.stack((SOME, SOME, SOME, SOME)),
        "scored": COUNTS,
        "compared": COUNTS,
        "voices": ABSOLUTE,
        "own_counts": True,
    },
    "multi_category_brier": {"outcomes": np.array([0, 1, 0])},
    "neighbourly_order": {"similarity": np.array([[1.0, 0.2, 0.1], [0.2, 1.0, 0.4], [0.1, 0.4, 1.0]])},
    "noise_boundary": {"variance": COUNTS},
    "outer_weights": {"second_moments": np.eye(3), "prior": np.array([0.4, 0.3, 0.2, 0.1])},
    "pair_residuals": {"votes": ROWS},
    "peer_stretch": {"rounds": 100.0, "level": 4.0, "cross": 4.0, "square": 4.0, "centre": 1.0, "told": 2.0},
    "portable_log": {"values": ABSOLUTE},
    "portable_log_of": {"value": 0.5},
    "ranked_probability_score": {"outcomes": np.array([0, 1, 1])},
    "rank_agreement": {"one": np.array([0.1, 0.2, 0.3, 0.4]), "other": np.array([0.2, 0.1, 0.3, 0.4])},
    "reveal_shift": {"weight": 1000.0, "total": 300.0, "square": 200.0, "of_revealed": 70.0},
    "safety_net_step": {"net_difference": 0.3, "net_square": 0.01},
    "scan_for_changes": {"values": _SCAN, "weights": _ONES, "earlier": _EARLIER},
    "scan_of_sums": {"sums": np.stack((_ONES, _ONES, _SCAN, _SCAN * _SCAN)), "earlier": _EARLIER},
    "simplex_projection": {"values": FORECASTS, "rest": True},
    "stretch_factor": {"stretch_product": 0.3, "stretch_square": 1.0, "by_peers": 0.2, "shrinkage": 2.5},
    "two_group_deviations": _SHARES,
    "two_group_solution": _SHARES,
    "unbiased_peer_loss": _GAP,
    "unit_peer_loss": _GAP,
    "loss_parts": {"loss": SPHERICAL},
    "natarajan_peer_loss": {"loss": SPHERICAL},
    "ClassMomentSums.estimate": {"with_pseudo": True},
    "ClassMomentSums.contribution": {"terms": ClassMomentTerms(0.5, 0.3, 0.2, 0.4, 0.3)},
    "MomentSums.contribution": {"terms": MomentTerms(0.2, 0.3)},
    "DependenceSums.contribution": {"moments": VoteMoments(0.8, 0.6, 0.4, 0.2)},
    "FiveMixerSums.contribution": {"weights": FIVE},
    "RegretSums.contribution": {"losses": PARTS},
    "SideBySide.of": {"peers": [(0.35, 24.0)], "slow": [24.0]},
    "_AnswerTripleSums.contribution": {"first": 1, "second": 0, "third": 1},
}
"""And where it is not. Of a method of a base class under the name of that class."""

OBJECTS: Mapping[type, Any] = {
    ClassMomentSums: ClassMomentSums.contribution(ClassMomentTerms(0.5, 0.3, 0.2, 0.4, 0.3), 1.0),
    DependenceSums: DependenceSums(np.full((25, 6), 8.0)),
    EqualGroupSums: EqualGroupSums(1000.0, 1000.0, 620.0, 600.0, 435.0),
    FiveMixerSums: FiveMixerSums.contribution(FIVE, FORECASTS, BITS, (0.1, 0.2), outcome=1),
    HorvitzThompsonSums: HorvitzThompsonSums(1000.0, 1000.0, 300.0, 1500.0),
    MomentSums: MOMENTS,
    RankAgreement: RankAgreement(-0.2, 28),
    RegretSums: REGRETS,
    SlopeSums: SlopeSums.contribution(SOME, SOME),
    ThreeReferenceClassSums: ThreeReferenceClassSums(
        1e6, 1e6, 375e3, 387500.0, 462500.0, 217500.0, 258750.0, 246250.0, 182250.0
    ),
    ThreeReferenceSums: ThreeReferenceSums(1e6, 1e6, 5e5, 5e5, 5e5, 3.7e5, 3.3e5, 3.1e5, 2.57e5),
    TruthSums: MEASURED,
    TwoGroupSums: TwoGroupSums(1000.0, 1000.0, 620.0, 600.0, 435.0),
    LogLoss: LOG,
    SphericalLoss: SPHERICAL,
    SquaredLoss: SQUARED,
}
"""Whose methods are called. A class that is not here has none."""


class Call(NamedTuple):
    """A public formula, and arguments that are right."""

    name: str
    formula: Callable[..., Any]
    arguments: Mapping[str, Any]

    def result(self, name: str = "", other: Any = None) -> Any:
        """Of the formula, maybe with another argument."""
        return self.formula(**({**self.arguments, name: other} if name else self.arguments))


def calls() -> Iterator[Call]:
    """All that these modules export, and the methods of what they export."""
    for room in ROOMS:
        for name in _public(room):
            public = getattr(room, name)
            if inspect.isfunction(public):
                yield Call(name, public, _arguments(name, public))
            elif public in OBJECTS if inspect.isclass(public) else False:
                yield from _methods(public)


def _public(room: ModuleType) -> list[str]:
    """What a module exports; if it does not say so, the formulas that it defines and the classes that are called."""
    here = {name for name, value in vars(room).items() if getattr(value, "__module__", "") == room.__name__}
    checked = [name for name in here if hasattr(vars(room)[name], "__wrapped__") or vars(room)[name] in [*OBJECTS]]
    return getattr(room, "__all__", sorted(checked))


def _methods(kind: type) -> Iterator[Call]:
    for name, found in inspect.getmembers(kind, inspect.isroutine):
        formula = inspect.unwrap(getattr(found, "__func__", found))
        at_home = str(getattr(formula, "__module__", "")).startswith("stream_peer.")
        if not at_home or name in UNCHECKED or (name.startswith("_") and name != "__call__"):
            continue
        own = {"other": OBJECTS[kind]} if name == "merge" else _arguments(formula.__qualname__, formula)
        of_object = {} if inspect.ismethod(found) else {"self": OBJECTS[kind]}
        yield Call(f"{kind.__name__}.{name}", found, of_object | own)


def _arguments(name: str, formula: Callable[..., Any]) -> dict[str, Any]:
    """Those of the formula by its name, else by the names of its parameters; what may be left out is given, too."""
    own = BY_FORMULA.get(name, {})
    asked = [each for each in inspect.signature(formula).parameters if each not in ("self", "cls", "shape")]
    unknown = [each for each in asked if each not in own and each not in BY_NAME]
    assert not unknown, f"say in this file what {unknown} of {name} are"
    return {each: own.get(each, BY_NAME.get(each)) for each in asked}


def wrong(value: Any) -> Iterator[Any]:
    """What may come in the place of an argument: other numbers, one of them in an array, other shapes, no numbers."""
    yield from NUMBERS
    yield from NO_NUMBERS
    yield from ([], [0.5], [[0.5]], np.zeros((0, 3)), np.zeros((2, 2, 2)), True)
    if isinstance(value, np.ndarray):
        yield from _wrong_arrays(value)
    elif is_dataclass(value) or hasattr(value, "_replace"):
        yield from _wrong_records(value)
    elif isinstance(value, list | tuple):
        yield from (value[1:], (*value, *value))
        for place, element in enumerate(value):
            yield from ((*value[:place], other, *value[place + 1 :]) for other in wrong(element))


def _wrong_records(value: Any) -> Iterator[Any]:
    is_tuple = isinstance(value, tuple)
    for name in value._fields if is_tuple else [field.name for field in fields(value) if field.init]:
        for other in wrong(getattr(value, name)):
            with suppress(FormulaInputError):  # a loss refuses its settings when it is made
                yield value._replace(**{name: other}) if is_tuple else replace(value, **{name: other})


def _wrong_arrays(value: np.ndarray[Any, Any]) -> Iterator[Any]:
    for place in (0, value.size - 1):
        for number in NUMBERS:
            changed = value.astype(np.float64)
            changed.flat[place] = number
            yield changed
    if value.ndim:
        yield from (value[:-1], value[:0], value[..., :-1], np.concatenate((value, value)), value.T)
    yield from (value[np.newaxis], value.astype(object), value.astype(str), value.astype(complex))


def numbers_of(result: Any) -> Iterator[float]:
    """All numbers of a result."""
    if isinstance(result, np.ndarray | np.generic | bool | int | float):
        yield from np.ravel(np.asarray(result, dtype=np.float64)).tolist()
    elif is_dataclass(result):
        for field in fields(result):
            yield from numbers_of(getattr(result, field.name))
    elif isinstance(result, list | tuple):
        for element in result:
            yield from numbers_of(element)
