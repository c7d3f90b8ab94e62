"""The explanation of a weight: sentences, causes and questions, each of which adds up."""

import math
import re
from functools import cache

import msgspec
import numpy as np
import pytest

from stream_peer.feeds.columns import EXPERT
from stream_peer.feeds.feed_reading import read
from stream_peer.serve.explanation import (
    Bound,
    ExplainFault,
    ExplainRequest,
    WeightExplanation,
    WeightKind,
    bound_of,
    encode_explanation,
)
from stream_peer.tools.explain.weight import answer_request, explanation_of, probe_for, run_explanations
from stream_peer.tools.explain.weight_timeline import WeightProbe, WeightTimeline
from stream_peer.tools.explain.words import goes_beyond, sentences
from stream_peer.tools.replay.files import read_lines
from stream_peer.tools.replay.replay import ReplayOptions, replay
from stream_peer.tools.replay.run import Run
from tests.golden.lives import STORY
from tests.unit.tools.replay.file_lines import lines, season

EXPERTS = [f"e{number}" for number in range(5)]
CONTROL = b'{"type":"expert","feed":"econ","expert_id":"e2","forget":true}'


def kept(probe: WeightProbe, *, controls: bool = False) -> WeightProbe:
    """A probe that a replay of the season was shown to."""
    replay([lines([*season(), *([CONTROL] if controls else [])])], ReplayOptions(), probes=[probe])
    probe.finish()
    return probe


@cache
def whole_lives() -> dict[str, WeightTimeline]:
    timelines = {name: WeightTimeline(name) for name in EXPERTS}
    kept(WeightProbe("econ", [*timelines.values()]))
    return timelines


def explained(name: str = "e1", weight: WeightKind = "mix", questions: int = 10, **ends: Bound) -> WeightExplanation:
    timeline = WeightTimeline(name, **ends) if ends else whole_lives()[name]
    if ends:
        kept(WeightProbe("econ", [timeline]))
    explanation = explanation_of(timeline, "econ", weight, questions)
    assert explanation is not None
    return explanation


@pytest.mark.parametrize("name", EXPERTS)
@pytest.mark.parametrize("weight", ["mix", "select"])
@pytest.mark.parametrize("questions", [0, 3, 1000])
def test_causes_and_questions_add_up_to_the_difference(name: str, weight: WeightKind, questions: int) -> None:
    explanation = explained(name, weight, questions)

    assert explanation.difference == explanation.until.weight - explanation.since.weight
    assert math.fsum(one.change for one in explanation.causes) == pytest.approx(explanation.difference, abs=1e-9)
    of_questions = math.fsum(one.change for one in explanation.questions)
    assert of_questions + explanation.rest.change == pytest.approx(explanation.difference, abs=1e-9)
    assert len(explanation.questions) <= min(questions, 40)
    for terms, change in [
        *((one.terms, one.change) for one in explanation.questions),
        (explanation.rest.terms, explanation.rest.change),
    ]:
        assert math.fsum(term.change for term in terms) == pytest.approx(change, abs=1e-12)
    own = math.fsum([*(one.own for one in explanation.questions), explanation.rest.own])
    assert own == pytest.approx(explanation.own.change, abs=1e-12)


def test_a_forecaster_reads_how_far_it_moved_and_mostly_why() -> None:
    explanation = explained("e4", questions=2)

    first, own, equal = explanation.sentences
    assert first.startswith("Between 2 Mar 2026 and 11 Mar 2026 e4's share of the mixed forecast fell from ")
    assert re.search(r"because its own forecasts did worse than the average on \d+ of 40 questions \(-[\d.]+\)", first)
    assert own.startswith("Its own forecasts of 40 questions moved it by -")
    assert "Most of all q" in own
    assert "most others said " in own
    said = r"The weights of all experts add up to 100%. If all were equal, each would be 20.0+% among the 5 experts .*"
    assert re.fullmatch(said, equal)


def test_the_questions_told_are_those_that_moved_it_most() -> None:
    few, all_of_them = explained("e2", questions=3), explained("e2", questions=100)

    own = [abs(one.own) for one in all_of_them.questions]
    assert own == sorted(own, reverse=True)
    assert few.questions == all_of_them.questions[:3]
    assert few.rest.questions == 37


def test_causes_that_went_beyond_all_of_a_weight_are_told_as_parts_and_the_example_went_the_same_way() -> None:
    plain = explained("e1", questions=100)
    causes = [msgspec.structs.replace(one, change=one.change * 50) for one in plain.causes]
    wild = msgspec.structs.replace(
        plain, causes=causes, own=msgspec.structs.replace(plain.own, change=50 * plain.own.change)
    )

    first, own, _ = sentences(wild)

    assert goes_beyond(wild)
    assert not goes_beyond(plain)
    assert re.search(
        r"mostly because [^(]*\(\d+% of what lowered it\); against that, [^(]*\(\d+% of what raised it\)", first
    )
    assert re.match(r"Its own forecasts of 40 questions moved it, \d+ up and \d+ down\.", own)
    for name in EXPERTS:
        explanation = explained(name, questions=100)
        example = re.search(r"Most of all \S+ \(([+-])", explanation.sentences[1])
        assert example is None or example.group(1) == ("+" if explanation.own.change > 0 else "-")


def test_where_nothing_moved_the_sentence_says_so() -> None:
    explanation = explained(since=bound_of("5"), until=bound_of("5"))

    assert explanation.difference == 0.0
    assert explanation.sentences[0].endswith("before and after: nothing moved it.")
    assert explanation.sentences[1] == "None of its own forecasts counted in between."


def test_the_moments_that_were_asked_for_are_told() -> None:
    explanation = explained(since=bound_of("2026-03-02"), until=bound_of("2026-03-06T12:00"))

    assert explanation.sentences[0].startswith("Between 2 Mar 2026 and 6 Mar 2026 e1's")
    assert (explanation.since.asked, explanation.until.asked) == ("2026-03-02T00:00:00Z", "2026-03-06T12:00:00Z")


def test_before_it_was_listed_it_had_no_weight() -> None:
    explanation = explained(since=bound_of("2020-01-01"))

    assert re.search(r"rose from 0.0+% \(not listed yet\) to", explanation.sentences[0])
    assert re.search(r"because it was listed \(\+20.0+\)", explanation.sentences[0])
    assert any(one.cause == "listing" for one in explanation.causes)


def test_an_explanation_is_json() -> None:
    explanation = explained(weight="select", questions=1)

    assert msgspec.json.decode(encode_explanation(explanation), type=WeightExplanation) == explanation


@pytest.mark.parametrize("controls", [False, True])
def test_the_log_of_a_replay_gives_the_same_explanations_as_the_replay_itself(controls: bool) -> None:
    timelines = [WeightTimeline(name) for name in EXPERTS]
    kept(WeightProbe("econ", timelines), controls=controls)
    expected = [explanation for timeline in timelines if (explanation := explanation_of(timeline, "econ", questions=3))]

    found: list[WeightExplanation] = []
    values = [*season(), *([CONTROL] if controls else [])]
    told: list[tuple[int, int]] = []

    def explain(run: Run) -> None:
        found.extend(run_explanations(run, "econ", [*EXPERTS, "nobody"], progress=lambda *done: told.append(done)))

    replay([lines(values)], finished=[explain])

    assert found == expected
    assert len(found) == 5
    assert told == [(number, len(told)) for number in range(1, len(told) + 1)] != []


def test_who_or_what_is_not_there_is_named_with_what_may_have_been_meant() -> None:
    requests = [ExplainRequest("econ", "E1"), ExplainRequest("eco", "e1"), ExplainRequest("econ", "e1", until=Bound(0))]
    answers = [answer_request(request, kept(probe_for(request))) for request in requests]

    assert answers == [
        ExplainFault("expert", "there is no expert 'E1' in feed econ; did you mean e1?"),
        ExplainFault("feed", "there is no feed 'eco'; did you mean econ?"),
        ExplainFault(
            "expert", "e1 had no weight in feed econ by then: none of its questions counted, or it is excluded"
        ),
    ]


def test_inputs_are_the_sums_and_shares_that_the_weight_is_read_from_if_they_are_asked_for() -> None:
    request = ExplainRequest("econ", "e1", inputs=True)
    probe = kept(probe_for(request))
    (timeline,) = probe.timelines

    plain, found = (answer_request(asked, probe) for asked in (request._replace(inputs=False), request))

    assert isinstance(plain, WeightExplanation)
    assert isinstance(found, WeightExplanation)
    assert timeline.reading is not None
    assert b"inputs" not in encode_explanation(plain)
    inputs = {one.name: one.value for one in found.inputs or []}
    feed = timeline.reading.feed
    sums = read(feed).sums.read(np.array([feed.roster.place("e1")]), slice(0, EXPERT.size))
    assert {column.name for column in EXPERT.columns} < {*inputs}
    assert [inputs[name] for name in ("scored", "mix_level", "outcome_regret")] == [
        sums[EXPERT.at(name), 0] for name in ("scored", "mix_level", "outcome_regret")
    ]
    assert inputs["scored"] + inputs["resolved"] > 0.0
    assert sum(value for name, value in inputs.items() if name.startswith("share_")) == pytest.approx(1.0)


def test_the_published_mix_is_recomputed_from_the_inputs_of_the_life_of_a_question() -> None:
    probes = [probe_for(ExplainRequest("macro", name, inputs=True)) for name in ("amara", "dora")]
    replay([read_lines(STORY)], ReplayOptions(), probes=probes)
    found = []
    for name, probe in zip(("amara", "dora"), probes, strict=True):
        probe.finish()
        explanation = answer_request(ExplainRequest("macro", name, inputs=True), probe)
        assert isinstance(explanation, WeightExplanation)
        found.append((explanation.until.weight, [*(explanation.inputs or [])]))

    (published, listed), (_, of_other) = found
    x, other = ({one.name: one.value for one in some} for some in (listed, of_other))

    assert [one.name for one in listed[:8]] == [
        *("mix_level", "mix_slope", "mix_answer", "scored", "compared", "mix_regret", "fast_regret", "fast_absolute")
    ]
    mix = x["share_mean"] / x["n_experts"] + sum(
        x[f"share_{mixer}"] * x[f"weight_{mixer}"] for mixer in ("peer", "truth_slow", "truth_fast")
    )
    mix = (1 - x["net_share"]) * mix + x["net_share"] / x["n_experts"]
    assert mix == pytest.approx(published, abs=1e-6)
    regrets = [0.3 * one["mix_level"] + 0.35 * one["mix_slope"] - one["mix_answer"] for one in (x, other)]
    ratio_peer = math.exp(24 * (regrets[0] - regrets[1]) / (x["mean_questions"] + 40))
    ratio_slow = math.exp(24 * (x["mix_regret"] - other["mix_regret"]) / (x["mean_resolved"] + 10))
    assert x["weight_peer"] / other["weight_peer"] == pytest.approx(ratio_peer, rel=1e-6)
    assert x["weight_truth_slow"] / other["weight_truth_slow"] == pytest.approx(ratio_slow, rel=1e-6)


def test_an_explanation_says_that_the_log_has_lost_its_beginning() -> None:
    request = ExplainRequest("econ", "e1")
    probe = kept(probe_for(request))

    whole, part = (answer_request(request, probe, start) for start in (0, 7))

    assert isinstance(whole, WeightExplanation)
    assert isinstance(part, WeightExplanation)
    assert part.sentences[:-1] == whole.sentences
    assert part.sentences[-1].startswith("The feed's log begins at offset 7: ")


@pytest.mark.parametrize(
    ("since", "until", "backwards"),
    [("5", "4", True), ("5", "5", False), ("2026-03-02", "2026-03-01", True), ("2026-03-02", "5", False)],
)
def test_a_request_may_not_end_before_it_begins(since: str, until: str, backwards: bool) -> None:
    assert ExplainRequest("f", "e", bound_of(since), bound_of(until)).is_backwards is backwards


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "-5", "4711.5"])
def test_what_is_no_moment_is_refused_in_words(text: str) -> None:
    with pytest.raises(ValueError, match="neither a moment"):
        bound_of(text)
