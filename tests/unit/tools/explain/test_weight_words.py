from stream_peer.tools.explain.causes import CAUSES
from stream_peer.tools.explain.weight_words import OWN, WORDS, meaning_of, points


def test_every_cause_has_words_and_they_are_no_jargon() -> None:
    assert set(WORDS) == set(CAUSES)
    assert set(CAUSES) > OWN
    for cause in CAUSES:
        text = " ".join((*WORDS[cause], meaning_of(cause, "mix"), meaning_of(cause, "select"))).lower()
        for jargon in ("regret", "loss", "prior", "prequential", "leave-one-out", "η", "reference answer", "mixer"):
            assert jargon not in text


def test_what_the_truth_does_depends_on_the_weight() -> None:
    assert meaning_of("truth", "mix") != meaning_of("truth", "select")
    assert meaning_of("others", "mix") == meaning_of("others", "select")


def test_a_trace_is_no_zero() -> None:
    assert points(-1e-9, 2) == "~0"
    assert points(0.0, 2) == "0"
