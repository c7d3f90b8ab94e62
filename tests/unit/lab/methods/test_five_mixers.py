from collections.abc import Sequence

import numpy as np
import pytest

from stream_peer.events.feed_log import Verdict
from stream_peer.feeds.facts import Facts
from stream_peer.feeds.ledger import Entry
from stream_peer.lab.formulas.five_mixers import FiveMixerSums
from stream_peer.lab.methods.five_mixers import MIXERS, FiveMixers
from stream_peer.numerics.arguments import FloatArray
from tests.unit.feeds.sample_facts import facts_of

RATES = 0.1, 0.2  # those of the sample facts
CHOICES = (*MIXERS, "five")


def answered(forecasts: Sequence[float], experts: Sequence[int], boundary: int = 1) -> Facts:
    return facts_of(forecasts, experts=experts, boundary=boundary)


def weights_of(mixers: FiveMixers, n_experts: int) -> FloatArray:
    present = np.arange(n_experts, dtype=np.int32)
    return np.array([mixers.weights(present, RATES, n_experts, choice) for choice in CHOICES])


def question(rounds: Sequence[Facts], evidence: Verdict = "open") -> Entry:
    entry = Entry(evidence=evidence)
    for facts in rounds:
        entry.put(facts)
    return entry


def questions(evidence: Sequence[Verdict]) -> list[Entry]:
    generator = np.random.default_rng(3)
    return [question([answered(generator.random(4).tolist(), range(4))], one) for one in evidence]


def test_each_mixer_has_the_weights_of_the_formulas() -> None:
    mixers, direct = FiveMixers(), FiveMixerSums.nothing(4)

    for entry in questions(("open", 1, 0, "open", 1)):
        facts = entry.facts()[0]
        outcome = None if entry.evidence == "open" else float(entry.evidence == 1)
        said = direct.weights(RATES, n_experts=4)
        answers = facts.answers.astype(np.float64)
        direct = direct.merge(FiveMixerSums.contribution(said, facts.forecasts, answers, RATES, outcome=outcome))
        mixers.put_in(entry, n_experts=4)

    expected = direct.weights(RATES, n_experts=4)
    np.testing.assert_allclose(weights_of(mixers, 4), [*expected.mixers, expected.mix], atol=1e-12)


@pytest.mark.parametrize("evidence", [0, 1, "annulled"])
def test_an_outcome_that_was_taken_back_leaves_next_to_nothing(evidence: Verdict) -> None:
    mixers, entries = FiveMixers(), questions(("open", 1, "open"))
    for entry in entries:
        mixers.put_in(entry, n_experts=4)
    before = weights_of(mixers, 4)

    for told in (evidence, "open"):
        mixers.take_out(entries[0])
        entries[0].evidence = told
        mixers.put_in(entries[0], n_experts=4)

    np.testing.assert_allclose(weights_of(mixers, 4), before, atol=1e-9)


def test_rounds_of_a_question_that_say_the_same_count_as_one() -> None:
    forecasts = [0.9, 0.6, 0.2]
    once, often = FiveMixers(), FiveMixers()

    once.put_in(question([answered(forecasts, range(3))], 1), n_experts=3)
    often.put_in(question([answered(forecasts, range(3), boundary) for boundary in (1, 2, 3)], 1), n_experts=3)

    np.testing.assert_allclose(weights_of(often, 3), weights_of(once, 3), atol=1e-12)


def test_experts_that_join_later_leave_the_others_what_they_learnt() -> None:
    mixers = FiveMixers()
    mixers.put_in(question([answered([0.9, 0.6, 0.2], [0, 1, 2])], 1), n_experts=3)
    before = mixers.weights(np.array([0, 1], dtype=np.int32), RATES, 3, "outcomes")

    mixers.put_in(question([answered([0.5, 0.5, 0.5], [0, 1, 40])], 1), n_experts=41)

    np.testing.assert_allclose(mixers.weights(np.array([0, 1], dtype=np.int32), RATES, 3, "outcomes"), before)


def test_rounds_with_too_few_voters_teach_nothing_before_the_outcome() -> None:
    mixers = FiveMixers()

    mixers.put_in(question([answered([0.9, 0.2], [0, 1])]), n_experts=2)

    np.testing.assert_allclose(weights_of(mixers, 2), np.full((6, 2), 0.5))


def test_what_is_taken_out_leaves_no_amounts_below_zero() -> None:
    entries = questions(("open", 1, 0, 1, "open", 0, 1))
    for order in range(7):
        mixers = FiveMixers()
        for entry in entries:
            mixers.put_in(entry, n_experts=4)
        for entry in (*entries[order:], *entries[:order]):
            mixers.take_out(entry)
            assert np.isfinite(weights_of(mixers, 4)).all()  # formulas refuse negative amounts
