"""The promises of the feed stage, for arbitrary histories."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_peer.events import topics
from stream_peer.events.feed_log import FeedLogRecord, OutcomeRevealed, Round, RoundWithdrawn
from stream_peer.feeds.facts import unpack
from stream_peer.log.stage import Effects, LogRecord, Output
from stream_peer.settings.feed.model import METHOD_VERSIONS, NEWEST_METHOD
from tests.feed_histories import Changelog, folded, log_of, newest, outcome, round_of, stage, withdrawn

QUESTIONS = [f"q{number}" for number in range(6)]
EXPERTS = [f"e{number}" for number in range(7)]

probabilities = st.sampled_from([0.0, 0.1, 0.25, 1 / 3, 0.4, 0.5, 0.6, 2 / 3, 0.75, 0.9, 1.0])
forecasts = st.dictionaries(st.sampled_from(EXPERTS), probabilities, min_size=1)
questions = st.sampled_from(QUESTIONS)
boundaries = st.integers(1, 3)
rounds = st.builds(
    lambda question, by_expert, boundary, weight: round_of(question, by_expert, boundary=boundary, weight=weight),
    questions,
    forecasts,
    boundaries,
    st.sampled_from([1.0, 0.5]),
)
withdrawals = st.builds(lambda question, boundary: withdrawn(question, boundary=boundary), questions, boundaries)
outcomes = st.builds(outcome, questions, st.sampled_from([0, 1, "annulled", "open"]))
histories: st.SearchStrategy[list[FeedLogRecord]] = st.lists(
    st.one_of(rounds, rounds, rounds, withdrawals, outcomes), min_size=1, max_size=40
)
Question = Round | RoundWithdrawn | OutcomeRevealed
methods = st.fixed_dictionaries(
    {
        "vote_rule": st.sampled_from(["auto", "own-median"]),
        "loss": st.sampled_from(["squared", "log"]),
        "method_version": st.sampled_from(METHOD_VERSIONS),
    }
)


def order_free(outputs: Sequence[Output], *, mixes: bool = True) -> dict[str, Any]:
    """What another order of the same evidence may not change: of the last record of each key."""
    answers = newest(outputs, topics.REFERENCE_ANSWERS)
    losses = newest(outputs, topics.PEER_LOSSES)
    weights = newest(outputs, topics.WEIGHTS).get("f", {"experts": [], "resolved": 0.0})
    rates = newest(outputs, topics.ERROR_RATES).get("f", {})
    names = ["id", "questions", "coverage", "peer_loss", "outcome_loss", "resolved"]
    if mixes and not weights["resolved"]:
        names.append("mix")
    moving = ("revision", "at", "error_rate", "settings", "trust")
    return {
        "answers": {key: {n: v for n, v in answer.items() if n not in moving} for key, answer in answers.items()},
        "experts": {
            key: [(e["id"], e["probability"], e["reference_answer"]) for e in record["experts"]]
            for key, record in losses.items()
        },
        "weights": [{name: expert[name] for name in names} for expert in weights["experts"]],
        "rates": {name: value for name, value in rates.items() if name not in ("revision", "at", "trust")},
    }


def by_revision(outputs: Sequence[Output]) -> dict[tuple[str, bytes | None, int], bytes | None]:
    """Bytes of each (topic, key, revision); fails if one has two."""
    found: dict[tuple[str, bytes | None, int], bytes | None] = {}
    for output in outputs:
        revision = newest([output], output.topic)[(output.key or b"").decode()]["revision"]
        place = output.topic, output.key, revision
        assert found.setdefault(place, output.value) == output.value
    return found


@given(histories, methods)
def test_sums_are_those_of_the_ledger_after_any_history(history: list[FeedLogRecord], method: dict[str, Any]) -> None:
    feed_stage, _ = folded(log_of(history), stage(**method))

    assert feed_stage.agrees()


@pytest.mark.parametrize(
    ("method", "mixes"),
    [
        ({}, True),
        ({"method_version": NEWEST_METHOD, "guard": "off"}, False),
        ({"method_version": NEWEST_METHOD, "mixer": {"trust_prior": "off"}, "guard": "off"}, True),
    ],
    ids=["version-1", "trusted", "untrusted"],
)
@given(history=histories, random=st.randoms(use_true_random=False))
def test_another_interleaving_leaves_order_free_outputs_as_they_are(
    history: list[Question], random: Any, method: dict[str, Any], mixes: bool
) -> None:
    waiting: dict[str, list[Question]] = {}
    for event in history:
        waiting.setdefault(event.question_id, []).append(event)
    order = [event.question_id for event in history]
    random.shuffle(order)
    interleaved = [waiting[question].pop(0) for question in order]

    _, one = folded(log_of(history), stage(vote_rule="half", **method))
    _, other = folded(log_of(interleaved), stage(vote_rule="half", **method))

    assert order_free(one.outputs, mixes=mixes) == order_free(other.outputs, mixes=mixes)


@given(histories)
def test_only_the_evidence_that_remains_counts(history: list[Question]) -> None:
    """Corrections that end in some evidence leave what that evidence alone would have left."""
    standing: dict[str, dict[int, Round]] = {}
    known: dict[str, OutcomeRevealed] = {}
    for event in history:
        if isinstance(event, Round):
            standing.setdefault(event.question_id, {})[event.boundary] = event
        elif isinstance(event, RoundWithdrawn):
            standing.get(event.question_id, {}).pop(event.boundary, None)
        else:
            known[event.question_id] = event
    # the last round says the question's weight: bring it to the end
    last = {event.question_id: event for event in history if isinstance(event, Round)}
    for question, event in last.items():
        for boundary, kept in standing[question].items():
            standing[question][boundary] = _weighing(kept, event.weight)
    remaining: list[FeedLogRecord] = [event for kept in standing.values() for event in kept.values()]

    _, long = folded(log_of(history), stage(vote_rule="half"))
    _, short = folded(log_of([*remaining, *known.values()]), stage(vote_rule="half"))

    one, other = order_free(long.outputs), order_free(short.outputs)
    assert one["weights"] == other["weights"]
    assert {n: v for n, v in one["rates"].items() if other["rates"]} == other["rates"]


def _weighing(event: Round, weight: float) -> Round:
    by_expert = dict(zip(event.experts, event.probabilities, strict=True))
    again = round_of(event.question_id, by_expert, weight=weight)
    return Round(**{name: getattr(again, name) for name in again.__struct_fields__} | {"boundary": event.boundary})


@given(histories, st.data())
def test_repeated_records_do_nothing(history: list[FeedLogRecord], data: st.DataObject) -> None:
    log = log_of(history)
    upto = data.draw(st.integers(1, len(log)))
    start = data.draw(st.integers(0, upto - 1))
    repeated = [*log[:upto], *log[start:]]
    moved = [record._replace(offset=place, timestamp=0) for place, record in enumerate(repeated)]
    plain = [record._replace(timestamp=0) for record in log]

    one, _ = folded(plain)
    other, effects = folded(moved)

    assert effects.counts["duplicate", ""] == upto - start
    assert {name: view.weights.experts for name, view in one.views().items()} == {
        name: view.weights.experts for name, view in other.views().items()
    }


@given(histories, st.sets(st.integers(0, 39)), st.sets(st.integers(0, 39)), methods)
def test_restarts_and_moments_of_publishing_change_no_bytes(
    history: list[FeedLogRecord], restarts: set[int], publications: set[int], method: dict[str, str]
) -> None:
    log = log_of(history)
    _, plain = folded(log, stage(**method))
    every_revision = Effects()
    attentive = stage(**method)
    for record in log:
        attentive.step(record, every_revision)
        attentive.publish(every_revision)
    known = by_revision(every_revision.outputs)

    feed_stage, effects, changelog = stage(**method), Effects(), Changelog()
    for number, record in enumerate(log):
        feed_stage.step(record, effects)
        if number in publications:
            feed_stage.publish(effects, ["f"])
        if number in restarts:
            feed_stage.publish(effects)
            changelog.take(feed_stage)
            feed_stage = changelog.restored(**method)
            assert feed_stage.agrees()
    feed_stage.publish(effects)

    seen = by_revision(effects.outputs)
    assert seen.items() <= known.items()
    assert by_revision(plain.outputs).items() <= seen.items()
    changelog.take(feed_stage)
    whole, all_at_once = Changelog(), folded(log, stage(**method))[0]
    whole.take(all_at_once)
    assert (changelog.head, changelog.entries) == (whole.head, whole.entries)


@given(histories, methods)
def test_a_crash_is_repaired_by_folding_again_from_the_head(
    history: list[FeedLogRecord], method: dict[str, str]
) -> None:
    log = log_of(history)
    half = len(log) // 2
    first, changelog = stage(**method), Changelog()
    before = Effects()
    for record in log[:half]:
        first.step(record, before)
    first.publish(before)
    changelog.take(first)
    for record in log[half:]:
        first.step(record, before)
    first.publish(before)

    _, after = folded(log[half:], changelog.restored(**method))

    by_revision([*before.outputs, *after.outputs])
    assert by_revision(after.outputs).items() <= by_revision(before.outputs).items()


@given(histories, methods)
def test_a_question_that_was_withdrawn_leaves_the_sums_of_a_feed_that_never_had_it(
    history: list[Question], method: dict[str, str]
) -> None:
    """Facts of other questions were made when it was known: so the same facts are put into new sums."""
    feed_stage, effects = folded(log_of(history), stage(**method))
    first = history[0].question_id
    gone: list[FeedLogRecord] = [withdrawn(first, boundary=boundary) for boundary in (1, 2, 3)]
    for record in log_of(gone, len(history)):
        feed_stage.step(record, effects)
    feed = feed_stage.feeds.feed("f")
    feed.ledger.entries.pop(first, None)

    assert feed.buckets.equals(feed.recomputed())


def simulated(generator: np.random.Generator, n_questions: int, n_rounds: int) -> tuple[list[LogRecord], list[int]]:
    """Independent signals about each outcome, revised a little from round to round."""
    skill = generator.uniform(0.6, 1.4, 8)
    events: list[FeedLogRecord] = []
    truth: list[int] = []
    for number in range(n_questions):
        y = int(generator.integers(2))
        signal = (2 * y - 1) * skill + generator.normal(size=8)
        truth.append(y)
        for boundary in range(n_rounds):
            odds = 2 * skill * (signal + generator.normal(scale=0.05, size=8))
            by_expert = dict(zip([f"e{k}" for k in range(8)], (1 / (1 + np.exp(-odds))).tolist(), strict=True))
            events.append(round_of(f"q{number}", by_expert, boundary=boundary))
    return log_of(events), truth


def true_regret(packed: Sequence[bytes], y: int) -> npt.NDArray[np.float64]:

    rows = []
    for facts in map(unpack, packed):
        losses = np.square(y - facts.forecasts)
        rows.append(np.add.reduce(facts.select * losses) - losses)
    mean: npt.NDArray[np.float64] = np.mean(rows, axis=0)
    return mean


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_the_certificate_holds_with_forty_rounds_a_question(seed: int) -> None:
    log, truth = simulated(np.random.default_rng(seed), n_questions=60, n_rounds=40)

    feed_stage, _ = folded(log)
    once, _ = folded(log[::40])

    certificate = feed_stage.views()["f"].weights.certificate
    of_one_round = once.views()["f"].weights.certificate
    assert certificate is not None
    assert of_one_round is not None
    ledger = feed_stage.feeds.by_name["f"].ledger.entries
    regret = sum(true_regret(ledger[f"q{number}"].rounds, y) for number, y in enumerate(truth))
    assert np.max(regret) <= certificate.regret_at_most
    assert certificate.regret_at_most == pytest.approx(of_one_round.regret_at_most, rel=0.1)
