"""The last questions of a feed, vote by vote: always what the ledger holds."""

import numpy as np
import pytest

from stream_peer.events.feed_log import FeedLogRecord
from stream_peer.feeds.alarms.recent import WINDOW, Recent, Window
from stream_peer.feeds.columns import RULE_PART, rule_span
from stream_peer.feeds.contributions import contribution
from stream_peer.feeds.facts import unpack
from stream_peer.feeds.ledger import Entry
from stream_peer.feeds.stage import FeedStage
from stream_peer.numerics.arguments import BoolArray, FloatArray
from stream_peer.numerics.dependence.followers import CrowdSums
from stream_peer.numerics.dependence.suspicion import Float32Array, tallies
from tests.feed_histories import Changelog, changed, expert, folded, log_of, outcome, round_of, settings, stage
from tests.unit.feeds.sample_facts import METHOD, facts_of, scoring_inputs

FORECASTS = {"ann": 0.9, "bob": 0.5, "cyd": 0.2, "dan": 0.8}


def entry(ordinal: int, forecasts: list[float], experts: list[int] | None = None) -> Entry:
    made = Entry(ordinal=ordinal)
    made.put(facts_of(forecasts, experts=experts))
    return made


def note(recent: Recent, of_question: Entry) -> None:
    recent.note(of_question, contribution(of_question, METHOD))


def window_of(feed_stage: FeedStage, feed: str = "f") -> Window:
    found = feed_stage.feeds.by_name[feed]
    return found.recent.read(len(found.roster))


def from_ledger(feed_stage: FeedStage, feed: str = "f") -> Window:
    """A slow twin: straight from the ledger."""
    found = feed_stage.feeds.by_name[feed]
    entries = found.ledger.entries.values()
    first = found.ledger.ordinals - WINDOW
    rows = [(e.ordinal, e.latest()) for e in entries if e.ordinal >= first and e.evidence != "annulled"]
    known = sorted((ordinal, facts) for ordinal, facts in rows if facts is not None)
    votes, answers = np.zeros((2, len(known), len(found.roster)), np.int8)
    for row, (_, facts) in enumerate(known):
        for place, vote, answer in zip(facts.experts, facts.cast, facts.answers, strict=True):
            votes[row, place], answers[row, place] = vote, 1 if answer else -1
    votes_of = [facts.votes for _, facts in known]
    by_ordinal = {e.ordinal: e for e in entries}
    squares = [crowd_of(by_ordinal[ordinal]) for ordinal, _ in known]
    wholes = [dict(contribution(by_ordinal[ordinal], found.method).feed) for ordinal, _ in known]
    columns = [rule_span(of_round.rule) for of_round in votes_of]
    parts = [
        [whole.get(at, 0) for at in range(of_rule.start, of_rule.stop)]
        for whole, of_rule in zip(wholes, columns, strict=True)
    ]
    distances = distances_of([square for _, square in squares], len(found.roster))
    scatter = np.array([scatter for scatter, _ in squares])
    repeats = repeats_of([by_ordinal[ordinal] for ordinal, _ in known], len(found.roster))
    cast = votes.astype(np.float32)
    return Window(
        np.array([ordinal for ordinal, _ in known], np.int64),
        np.array([of_round.counts for of_round in votes_of], np.bool_),
        votes,
        answers,
        np.array([of_round.rule for of_round in votes_of], np.int64),
        np.array(parts, np.int64).reshape(-1, len(RULE_PART)),
        np.count_nonzero(votes, axis=1),
        (votes * answers).sum(axis=1, dtype=np.int64),
        scatter,
        crowd_of_all(distances, scatter, answers != 0, repeats),
        tallies(cast, cast),
    )


def crowd_of_all(distances: Float32Array, scatter: FloatArray, present: BoolArray, repeats: Float32Array) -> CrowdSums:
    apart, near = distances.astype(np.float64)
    return CrowdSums(
        present.sum(axis=0),
        (present & (scatter > 0.0)[:, None]).sum(axis=0),
        apart.sum(axis=0),
        np.square(apart).sum(axis=0),
        near.sum(axis=0),
        (present * scatter[:, None]).sum(axis=0),
        (repeats >= 0.0).sum(axis=0),
        np.maximum(repeats, 0.0).sum(axis=0, dtype=np.float64),
    )


def crowd_of(of_question: Entry) -> tuple[float, dict[int, tuple[float, float]]]:
    """By its latest round: scatter, distances from the others, and squares of those, or of what was said before."""
    *before, latest = of_question.facts()
    said = [x for former in before[-1:] for x in (former.mix.mix, former.mix.stretched)]
    ours = dict(zip(latest.experts.tolist(), latest.forecasts.tolist(), strict=True))
    if len(ours) < 4:
        return 0.0, dict.fromkeys(ours, (0.0, 0.0))
    found = {}
    for place, p in ours.items():
        others = float(np.mean([q for other, q in ours.items() if other != place]))
        found[place] = p - others, min((p - x) ** 2 for x in (others, *said))
    return float(np.var(latest.forecasts, ddof=1)) / (len(ours) - 1), found


def distances_of(squares: list[dict[int, tuple[float, float]]], n_experts: int) -> Float32Array:
    table = np.zeros((2, len(squares), n_experts), np.float32)
    for row, of_question in enumerate(squares):
        for place, both in of_question.items():
            table[:, row, place] = both
    return table


def repeats_of(entries: list[Entry], n_experts: int) -> Float32Array:
    """How far each expert's first forecast was from the nearest figure that had been published, squared."""
    table = np.full((len(entries), n_experts), -1.0, np.float32)
    for row, of_question in enumerate(entries):
        rounds = of_question.facts()
        firsts: dict[int, tuple[int, float]] = {}
        for number, facts in enumerate(rounds):
            for place, p in zip(facts.experts.tolist(), facts.forecasts.tolist(), strict=True):
                firsts.setdefault(place, (number, p))
        for place, (number, p) in firsts.items():
            said = [x for facts in rounds[:number] for x in (facts.mix.mean, facts.mix.mix, facts.mix.stretched)]
            if said:
                table[row, place] = min((p - x) ** 2 for x in said)
    return table


def same(one: Window, two: Window) -> bool:
    """To the last bit, but for distances: the twin computes them in another order, and does not round them."""
    exact = all(
        np.array_equal(x, y) and x.dtype == y.dtype
        for x, y in zip((*one[:8], *(one.tallies or ())), (*two[:8], *(two.tallies or ())), strict=True)
    )
    near = zip((one.scatter, *one.crowd), (two.scatter, *two.crowd), strict=True)
    return exact and all(np.allclose(x, y, rtol=1e-5, atol=1e-4) for x, y in near)


def test_votes_are_stored_with_facts_whatever_the_rule() -> None:
    for thresholds in (None, [0.95, 0.1, 0.2, 0.1]):
        facts = facts_of([0.9, 0.5, 0.2, 0.8], under=scoring_inputs(4, thresholds=thresholds))
        again = unpack(facts.pack())

        expected = [1, 0, -1, 1] if thresholds is None else [-1, 1, 0, 1]
        assert facts.cast.tolist() == again.cast.tolist() == expected
        assert again.answers.tolist() == facts.answers.tolist()
        assert again.ties.tolist() == facts.ties.tolist()


def test_questions_stand_in_the_order_of_their_ordinals_with_their_votes() -> None:
    recent = Recent()
    note(recent, entry(1, [0.9, 0.2, 0.5], experts=[0, 2, 3]))
    note(recent, entry(0, [0.9, 0.8, 0.1]))

    window = recent.read(5)

    assert window.ordinals.tolist() == [0, 1]
    assert window.counts.tolist() == [True, False]
    assert window.votes.tolist() == [[1, 1, -1, 0, 0], [1, 0, -1, 0, 0]]
    assert np.abs(window.answers).tolist() == [[1, 1, 1, 0, 0], [1, 0, 1, 1, 0]]


def test_a_question_is_in_it_until_so_many_others_have_come() -> None:
    recent = Recent()
    first = entry(0, [0.9, 0.2, 0.3])
    note(recent, first)
    for ordinal in range(1, WINDOW):
        note(recent, entry(ordinal, [0.1, 0.2, 0.3]))
    assert recent.read(3).votes[0].tolist() == [1, -1, -1]

    note(recent, Entry(ordinal=WINDOW))  # it has no round yet
    note(recent, first)  # a late correction

    window = recent.read(3)
    assert window.ordinals.tolist() == list(range(1, WINDOW))
    recent.leave(first)
    assert same(window, recent.read(3))


def test_who_stood_only_in_an_earlier_round_has_a_column_of_its_own() -> None:
    recent, question = Recent(), entry(0, [0.9, 0.2, 0.3])
    question.put(facts_of([0.9, 0.2, 0.3, 0.4], boundary=2, experts=[0, 1, 2, 20]))
    question.put(facts_of([0.9, 0.2, 0.3], boundary=3))
    note(recent, question)
    note(recent, entry(1, [0.9, 0.2, 0.3]))

    assert np.flatnonzero(recent.read(21).crowd.late).tolist() == [20]
    recent.leave(question)
    assert not recent.read(21).crowd.late.any()


def test_a_question_that_left_the_ledger_or_was_annulled_is_out() -> None:
    recent, entries = Recent(), [entry(ordinal, [0.9, 0.2, 0.3]) for ordinal in range(4)]
    for of_question in entries[:3]:
        note(recent, of_question)
    recent.read(3)
    entries[1].evidence = "annulled"
    note(recent, entries[1])
    note(recent, entries[3])
    recent.leave(entries[0])
    recent.leave(entries[3])

    assert recent.read(3).ordinals.tolist() == [2]


LIFE: list[FeedLogRecord] = [
    *(round_of(f"q{k}", {**FORECASTS, "ann": 0.1 + 0.01 * k}) for k in range(60)),
    outcome("early", 1),
    outcome("q3", "annulled"),
    outcome("q4", 1),
    round_of("q5", {"eve": 0.9, "bob": 0.4, "ann": 0.2}, boundary=2000),
    expert("dan", excluded=True),
    *(round_of(f"r{k}", FORECASTS) for k in range(30)),
]


@pytest.mark.parametrize("cut", [7, 61, 64, 80])
def test_it_is_a_function_of_the_ledger(cut: int) -> None:
    log = log_of(LIFE)
    straight, _ = folded(log)
    changelog, first = Changelog(), stage()
    folded(log[:cut], first)
    changelog.take(first)
    restarted = changelog.restored()
    folded(log[cut:], restarted)

    assert same(window_of(straight), from_ledger(straight))
    assert same(window_of(straight), window_of(restarted))
    assert straight.snapshot().head == restarted.snapshot().head
    assert straight.feeds.by_name["f"].path_state.checked == 75


def test_expiry_reset_and_rebuild_keep_it_in_step() -> None:
    limited = settings({"defaults": {"ledger_max": 40}})
    expired, _ = folded(log_of([limited, *LIFE]))
    assert len(window_of(expired).ordinals) == 41  # room is made before a question is taken in
    assert same(window_of(expired), from_ledger(expired))

    reset, _ = folded(log_of([*LIFE, changed(reset=True), round_of("z", FORECASTS)]))
    assert window_of(reset).ordinals.tolist() == [0]

    log = log_of([*LIFE, expert("ann", forget=True)])
    without, _ = folded(log)
    assert same(window_of(without), from_ledger(without))
    assert "ann" not in without.feeds.by_name["f"].roster.experts
