"""What each column of the sums gets of a question: without an outcome, with either, and annulled. Row by row."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, product
from typing import Final

import numpy as np
import pytest
from msgspec.structs import replace

from stream_peer.events import topics
from stream_peer.events.feed_log import FeedLogRecord, Verdict
from stream_peer.feeds.columns import EXPERT, FEED, UNIT, VOTES, evaluated_span
from stream_peer.feeds.contributions import contribution
from stream_peer.feeds.ledger import Entry
from stream_peer.feeds.methods.method import Method
from stream_peer.feeds.stage import FeedStage
from stream_peer.feeds.sums import BINS
from stream_peer.log.stage import Effects
from stream_peer.numerics.arguments import FloatArray
from tests.feed_histories import (
    Changelog,
    folded,
    log_of,
    newest,
    outcome,
    round_of,
    stage,
    withdrawn,
    without_evaluations,
)
from tests.unit.feeds.sample_facts import facts_of, scoring_inputs

P = np.array([0.9, 0.6, 0.2, 0.35])
W = np.array([0.4, 0.3, 0.2, 0.1])
ANSWERS = np.array([0.0, 0.0, 1.0, 1.0])  # of the three others; the first two hear two times no
RATES = (0.1, 0.2)
MEAN = 0.5125
WEIGHT = 0.5

OPEN: Final = "open"
ZERO: Final = 0
ONE: Final = 1
ANNULLED: Final = "annulled"
EVIDENCE: tuple[Verdict, ...] = (OPEN, ZERO, ONE, ANNULLED)
KNOWN: tuple[Verdict, ...] = (ZERO, ONE)
VOTED: tuple[Verdict, ...] = (OPEN, ZERO, ONE)
Row = Mapping[Verdict, Sequence[float]]
NOTHING = [0.0] * 4


def part_of(evidence: Verdict) -> tuple[Callable[[str], list[float]], Callable[[str], float]]:
    """What a question of weight 1/2 with one round adds to a column of each expert, and to one of the feed."""
    facts = replace(facts_of(P.tolist(), under=scoring_inputs(4, select=W.tolist())), final=True)
    assert facts.answers.tolist() == ANSWERS.tolist()
    entry = Entry(weight=WEIGHT, evidence=evidence)
    entry.put(facts)
    entry.first_final = facts.pack()
    part = contribution(entry, Method(vote_rule="half", bounds_all=True))
    columns = np.zeros((EXPERT.size, 4))
    columns[np.ix_(part.rows, part.experts)] = part.columns * UNIT
    if part.evaluated:
        columns[evaluated_span(), part.evaluated.experts] = part.evaluated.columns * UNIT
    return (
        lambda name: columns[EXPERT.at(name)].tolist(),
        lambda name: dict(part.feed).get(FEED.at(name), 0) * UNIT,
    )


def loss(answers: float | FloatArray) -> FloatArray:
    squared: FloatArray = np.square(P - answers)
    return squared


def regret(answers: float | FloatArray) -> FloatArray:
    difference: FloatArray = np.sum(W * loss(answers)) - loss(answers)
    return difference


def slope() -> FloatArray:
    found: FloatArray = 2.0 * (MEAN - P)
    return found


def mixed(y: int) -> FloatArray:
    found: FloatArray = slope() * MEAN - y * slope() - np.square(MEAN - P) / 2.0
    return found


def at_the_fast_mixer(y: int) -> FloatArray:
    """Its forecast is the mean in these facts."""
    found: FloatArray = 2.0 * (MEAN - y) * (MEAN - P)
    return found


PRICED = np.abs(regret(ANSWERS) - RATES[0] * regret(1.0) - RATES[1] * regret(0.0))
REACH = np.abs(loss(1.0) - loss(0.0))
SPREAD = np.sum(W * REACH) + (1.0 - 2.0 * W) * REACH


def only_open(values: object) -> Row:
    return {OPEN: np.asarray(values).tolist()}


def with_outcome(of: Callable[[int], object]) -> Row:
    return {ZERO: np.asarray(of(0)).tolist(), ONE: np.asarray(of(1)).tolist()}


def always(values: object) -> Row:
    """Whether an outcome is known or not."""
    return {evidence: np.asarray(values).tolist() for evidence in VOTED}


EXPERT_ROWS: dict[str, tuple[str, Row]] = {
    "losses, L": ("loss", only_open(loss(ANSWERS))),
    "losses, C1": ("loss_if_one", only_open(loss(1.0))),
    "losses, C0": ("loss_if_zero", only_open(loss(0.0))),
    "losses, n": ("scored", only_open(np.ones(4))),
    "losses, H": ("outcome_loss", with_outcome(lambda y: loss(float(y)))),
    "losses, m": ("resolved", with_outcome(lambda _: np.ones(4))),
    "selection regret, rL": ("regret", only_open(regret(ANSWERS))),
    "selection regret, r1": ("regret_if_one", only_open(regret(1.0))),
    "selection regret, r0": ("regret_if_zero", only_open(regret(0.0))),
    "selection regret, rH": ("outcome_regret", with_outcome(lambda y: regret(float(y)))),
    "selection A": ("absolute_regret", only_open(PRICED)),
    "selection A, by the outcome": ("outcome_absolute", with_outcome(lambda y: np.abs(regret(float(y))))),
    "mixers, SU": ("mix_level", always(slope() * MEAN)),
    "mixers, SV": ("mix_slope", always(slope())),
    "mixers, SVY": ("mix_answer", always(slope() * ANSWERS)),
    "mixers, RH": ("mix_regret", with_outcome(mixed)),
    "mixers, RF": ("fast_regret", with_outcome(at_the_fast_mixer)),
    "mixers, AF": ("fast_absolute", with_outcome(lambda y: np.abs(at_the_fast_mixer(y)))),
    "certificate, D": ("published_regret", only_open(regret(ANSWERS))),
    "certificate, D1": ("published_regret_if_one", only_open(regret(1.0))),
    "certificate, D0": ("published_regret_if_zero", only_open(regret(0.0))),
    "certificate, V": ("variance", only_open(WEIGHT * np.square(SPREAD) / 4.0)),
    "certificate of version 2, C": ("closed_reach", always(WEIGHT * np.square(SPREAD))),
    "certificate of version 2, D": ("closed_regret", always(regret(ANSWERS))),
    "certificate of version 2, D1": ("closed_regret_if_one", always(regret(1.0))),
    "certificate of version 2, D0": ("closed_regret_if_zero", always(regret(0.0))),
    "certificate of version 2, most": ("most_regret", only_open(np.maximum(regret(0.0), regret(1.0)))),
    "learners, m": ("compared", with_outcome(lambda _: np.ones(4))),
    "scored forecasts": ("evaluated", with_outcome(lambda _: np.ones(4))),
    "scored forecasts, loss": ("evaluated_squared", with_outcome(lambda y: np.square(P - y))),
    "certificate, T": ("true_regret", with_outcome(lambda y: regret(float(y)))),
}


@pytest.mark.parametrize("evidence", EVIDENCE)
@pytest.mark.parametrize(("column", "row"), EXPERT_ROWS.values(), ids=EXPERT_ROWS)
def test_a_column_of_the_experts_holds_what_the_evidence_says(column: str, row: Row, evidence: Verdict) -> None:
    of_expert, _ = part_of(evidence)

    expected = [WEIGHT * value for value in row.get(evidence, NOTHING)]
    assert of_expert(column) == pytest.approx(expected, abs=1e-11)


STRETCHED = 0.5 + 1.5 * (MEAN - 0.5)
MEDIAN = (0.35 + 0.6) / 2
F = MEAN  # all mixers weigh alike in these facts, and so say the same
FEED_ROWS: dict[str, tuple[str, Mapping[Verdict, float]]] = {
    "questions": ("questions", dict.fromkeys(VOTED, 1.0)),
    "resolved": ("resolved", dict.fromkeys(KNOWN, 1.0)),
    "yes-share, yes": ("yes", dict.fromkeys(VOTED, 2.0 / VOTES)),
    "yes-share, votes": ("votes", dict.fromkeys(VOTED, 4.0 / VOTES)),
    "moments, weight": ("moment_weight", dict.fromkeys(VOTED, 1.0)),
    "moments, pair": ("pair", dict.fromkeys(VOTED, -1.0 / 3.0)),
    "moments, rest": ("rest", dict.fromkeys(VOTED, -1.0)),
    "answers": ("answer", dict.fromkeys(VOTED, 0.5)),
    "truth table, right of 0": ("right_zero", {ZERO: 0.5}),
    "truth table, wrong of 0": ("wrong_zero", {ZERO: 0.5}),
    "truth table, right of 1": ("right_one", {ONE: 0.5}),
    "truth table, wrong of 1": ("wrong_one", {ONE: 0.5}),
    "agreement of resolved questions": ("revealed_pair", dict.fromkeys(KNOWN, -1.0 / 3.0)),
    "stretch, product": ("stretch_product", {ZERO: (0 - F) * (F - 0.5), ONE: (1 - F) * (F - 0.5)}),
    "ties": ("tied", dict.fromkeys(VOTED, 1.0)),
    "scored forecasts": ("evaluated", dict.fromkeys(KNOWN, 1.0)),
    "score of the mix": ("mix_squared", {ZERO: F**2, ONE: (1 - F) ** 2}),
    "score of the stretched": ("stretched_squared", {ZERO: STRETCHED**2, ONE: (1 - STRETCHED) ** 2}),
    "score of the mean": ("mean_squared", {ZERO: F**2, ONE: (1 - F) ** 2}),
    "score of the median": ("median_squared", {ZERO: MEDIAN**2, ONE: (1 - MEDIAN) ** 2}),
    "stretch, square": ("stretch_square", dict.fromkeys(KNOWN, (F - 0.5) ** 2)),
}


@pytest.mark.parametrize("evidence", EVIDENCE)
@pytest.mark.parametrize(("column", "row"), FEED_ROWS.values(), ids=FEED_ROWS)
def test_a_column_of_the_feed_holds_what_the_evidence_says(
    column: str, row: Mapping[Verdict, float], evidence: Verdict
) -> None:
    _, of_feed = part_of(evidence)

    assert of_feed(column) == pytest.approx(WEIGHT * row.get(evidence, 0.0), abs=1e-11)


LAYER = ("peer_peer", "peer_slow", "peer_fast", "slow_slow", "slow_fast", "fast_fast")
CROSSED = ("peer_error", "slow_error", "fast_error")


@pytest.mark.parametrize("evidence", EVIDENCE)
def test_outer_layer_and_safety_net_learn_from_outcomes_alone(evidence: Verdict) -> None:
    facts = facts_of(P.tolist(), under=scoring_inputs(4, select=W.tolist()))
    said = replace(facts.mix, mean=0.5, peer=0.6, truth_slow=0.7, truth_fast=0.4, before_net=0.8, mix=0.65)
    entry = Entry(evidence=evidence)
    entry.put(replace(facts, mix=said))
    part = contribution(entry, Method())
    found = {name: dict(part.feed).get(FEED.at(name), 0) * UNIT for name in (*LAYER, *CROSSED, "net_difference")}

    if evidence not in (ZERO, ONE):
        assert not any(found.values())
        return
    y, q = int(evidence), [0.1, 0.2, -0.1]
    expected = [q[a] * q[b] for a, b in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))]
    expected += [distance * (y - 0.5) for distance in q]
    assert list(found.values()) == pytest.approx([*expected, (0.8 - y) ** 2 - 0.25], abs=1e-11)


@pytest.mark.parametrize("evidence", EVIDENCE)
def test_histograms_hold_forecasts_whether_an_outcome_is_known_or_not(evidence: Verdict) -> None:
    entry = Entry(weight=WEIGHT, evidence=evidence)
    entry.put(facts_of(P.tolist()))
    binned = contribution(entry, Method(vote_rule="auto")).binned

    if evidence == ANNULLED:
        assert binned is None
        return
    assert binned is not None
    assert binned.cells.tolist() == [expert * BINS + int(p * 64) + 15 for expert, p in enumerate(P.tolist())]
    assert binned.amount * UNIT == WEIGHT


# --- how a question got there does not matter ---

OTHERS = [
    round_of("a", {"ann": 0.8, "bob": 0.7, "cyd": 0.1, "dan": 0.6}),
    round_of("b", {"ann": 0.2, "bob": 0.4, "cyd": 0.9}, weight=0.5),
    outcome("a", 1),
    outcome("b", 0),
]
SCORED = [
    round_of("q", {"ann": 0.9, "bob": 0.7, "cyd": 0.2, "dan": 0.8}, boundary=1),
    round_of("q", {"ann": 0.8, "bob": 0.6, "cyd": 0.3, "eve": 0.4}, boundary=2),
]
PATHS = [
    path
    for length in (1, 2, 3)
    for path in product(EVIDENCE, repeat=length)
    if all(one != other for one, other in pairwise(path))
]
BY_SETTING = [{"vote_rule": "auto"}, {"vote_rule": "own-median", "loss": "log"}, {"preset": "paper"}]


def state_after(events: Sequence[FeedLogRecord], settings: Mapping[str, str], restart: int | None = None) -> FeedStage:
    log = log_of(events)
    feed_stage, effects = stage(**settings), Effects()
    for place, record in enumerate(log):
        feed_stage.step(record, effects)
        if place == restart:
            changelog = Changelog()
            changelog.take(feed_stage)
            feed_stage = changelog.restored(**settings)
    return feed_stage


@pytest.mark.case("C02")
@pytest.mark.case("C03")
@pytest.mark.parametrize("settings", BY_SETTING, ids=str)
@pytest.mark.parametrize("before", [True, False], ids=["outcomes first", "rounds first"])
def test_whatever_was_said_of_an_outcome_the_sums_are_those_of_the_last_word(
    settings: Mapping[str, str], *, before: bool
) -> None:
    """Resolved, flipped, annulled, taken back, in any order, before the rounds and after; bit for bit.

    But a round that comes after an outcome is no forecast that could be evaluated.
    """
    ends = {end: state_after([*OTHERS, *SCORED, outcome("q", end)], settings) for end in EVIDENCE}
    for path in PATHS:
        told = [outcome("q", word) for word in path]
        events = [*OTHERS, *told, *SCORED] if before else [*OTHERS, *SCORED, *told]
        found = state_after(events, settings, restart=len(events) // 2 + 1)

        sums, wanted = (made.feeds.feed("f").buckets.sums for made in (found, ends[path[-1]]))
        if before and {ZERO, ONE}.intersection(path):
            assert sums.evaluations().feed == ends[OPEN].feeds.feed("f").buckets.sums.evaluations().feed
            sums, wanted = without_evaluations(sums), without_evaluations(wanted)
        assert sums.equals(wanted), path


@pytest.mark.case("C02")
@pytest.mark.case("C03")
def test_a_question_that_is_annulled_adds_what_one_adds_that_never_was() -> None:
    never = state_after(OTHERS, {})
    for path in PATHS:
        told = [outcome("q", word) for word in path]
        annulled = state_after([*OTHERS, *SCORED, *told, outcome("q", ANNULLED)], {})
        gone = state_after([*OTHERS, *SCORED, *told, *(withdrawn("q", boundary=b) for b in (1, 2))], {})

        assert annulled.feeds.feed("f").buckets.sums.equals(never.feeds.feed("f").buckets.sums)
        assert gone.feeds.feed("f").buckets.sums.equals(never.feeds.feed("f").buckets.sums)


FEW = {"ann": 0.9, "bob": 0.5}
STATES = {
    "a round": (SCORED, "scored", None),
    "a round of few": ([round_of("q", FEW)], "low-evidence", None),
    "a latest round of few": ([*SCORED, round_of("q", FEW, boundary=3)], "low-evidence", None),
    "an outcome after its rounds": ([*SCORED, outcome("q", 1)], "resolved", 1),
    "an outcome before its rounds": ([outcome("q", 0), *SCORED], "resolved", 0),
    "an outcome of few": ([round_of("q", FEW), outcome("q", 1)], "resolved", 1),
    "an outcome that was turned round": ([*SCORED, outcome("q", 1), outcome("q", 0)], "resolved", 0),
    "an outcome that was taken back": ([*SCORED, outcome("q", 1), outcome("q", "open")], "scored", None),
    "one of few that was taken back": (
        [round_of("q", FEW), outcome("q", 1), outcome("q", "open")],
        "low-evidence",
        None,
    ),
    "annulled": ([*SCORED, outcome("q", "annulled")], "annulled", "annulled"),
    "annulled before its rounds": ([outcome("q", "annulled"), *SCORED], "annulled", "annulled"),
    "annulled, then resolved": ([*SCORED, outcome("q", "annulled"), outcome("q", 1)], "resolved", 1),
    "resolved, then annulled": ([*SCORED, outcome("q", 1), outcome("q", "annulled")], "annulled", "annulled"),
    "annulled, then taken back": ([*SCORED, outcome("q", "annulled"), outcome("q", "open")], "scored", None),
    "all rounds withdrawn": ([*SCORED, withdrawn("q", boundary=1), withdrawn("q", boundary=2)], "withdrawn", None),
    "resolved, all rounds withdrawn": (
        [SCORED[0], outcome("q", 1), withdrawn("q", boundary=1)],
        "withdrawn",
        1,
    ),
    "withdrawn, then scored again": ([SCORED[0], withdrawn("q", boundary=1), SCORED[1]], "scored", None),
    "the latest round withdrawn": ([*SCORED, withdrawn("q", boundary=2)], "scored", None),
}


@pytest.mark.case("C03")
@pytest.mark.parametrize("restart", [False, True], ids=["in one go", "restarted"])
@pytest.mark.parametrize(("events", "state", "said"), STATES.values(), ids=STATES)
def test_all_outputs_of_a_question_say_its_state(
    events: Sequence[FeedLogRecord], state: str, said: object, *, restart: bool
) -> None:
    log = log_of(events)
    feed_stage, changelog, effects = stage(), Changelog(), Effects()
    for record in log:
        feed_stage.step(record, effects)
        if restart:
            changelog.take(feed_stage)
            feed_stage = changelog.restored()

    answers, losses, mixed_ones = (
        newest(effects.outputs, topic)["q"]
        for topic in (topics.REFERENCE_ANSWERS, topics.PEER_LOSSES, topics.MIXED_FORECASTS)
    )
    assert {answers["state"], losses["state"], mixed_ones["state"]} == {state}
    assert (answers["outcome"], mixed_ones["outcome"]) == (said, said)
    assert {row["outcome_loss"] is not None for row in losses["experts"]} <= {state == "resolved"}
    assert bool(losses["experts"]) == (state != "withdrawn") == (answers["reference_answer"] is not None)


def test_an_outcome_without_a_round_is_kept_and_says_nothing() -> None:
    feed_stage, effects = folded(log_of([outcome("q", 1), outcome("q", 0)]))

    assert newest(effects.outputs, topics.REFERENCE_ANSWERS) == {}
    assert feed_stage.feeds.feed("f").buckets.sums.is_zero()
    assert feed_stage.views()["f"].weights.resolved == 0.0
