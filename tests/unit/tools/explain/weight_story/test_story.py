"""The story of a weight: sentences, causes and questions, each of which adds up."""

import math
import re
from functools import cache

import msgspec
import pytest

from stream_peer.serve.explanation import (
    Bound,
    ExplainFault,
    ExplainRequest,
    WeightExplanation,
    WeightKind,
    bound_of,
    encode_explanation,
)
from stream_peer.tools.explain.weight_account import Account
from stream_peer.tools.explain.weight_story.fold import StoryLog
from stream_peer.tools.explain.weight_story.request import LogRead, account_of, answer
from stream_peer.tools.explain.weight_story.sentences import goes_beyond, sentences
from stream_peer.tools.explain.weight_story.story import story_of
from stream_peer.tools.explain.weight_story.witness import WeightWitness
from stream_peer.tools.replay.replay import ReplayOptions, replay
from tests.unit.tools.replay.file_lines import lines, season

EXPERTS = [f"e{number}" for number in range(5)]
CONTROL = b'{"type":"expert","feed":"econ","expert_id":"e2","forget":true}'


def accounts_of(*accounts: Account, controls: bool = False) -> WeightWitness:
    witness = WeightWitness("econ", accounts)
    replay([lines([*season(), *([CONTROL] if controls else [])])], ReplayOptions(), witness=witness)
    witness.finish()
    return witness


@cache
def whole_lives() -> dict[str, Account]:
    accounts = {name: Account(name) for name in EXPERTS}
    accounts_of(*accounts.values())
    return accounts


def told(name: str = "e1", weight: WeightKind = "mix", questions: int = 10, **ends: Bound) -> WeightExplanation:
    account = Account(name, **ends) if ends else whole_lives()[name]
    if ends:
        accounts_of(account)
    story = story_of(account, "econ", weight, questions)
    assert story is not None
    return story


@pytest.mark.parametrize("name", EXPERTS)
@pytest.mark.parametrize("weight", ["mix", "select"])
@pytest.mark.parametrize("questions", [0, 3, 1000])
def test_causes_and_questions_add_up_to_the_difference(name: str, weight: WeightKind, questions: int) -> None:
    story = told(name, weight, questions)

    assert story.difference == story.until.weight - story.since.weight
    assert math.fsum(one.change for one in story.causes) == pytest.approx(story.difference, abs=1e-9)
    of_questions = math.fsum(one.change for one in story.questions)
    assert of_questions + story.rest.change == pytest.approx(story.difference, abs=1e-9)
    assert len(story.questions) <= min(questions, 40)
    for terms, change in [*((one.terms, one.change) for one in story.questions), (story.rest.terms, story.rest.change)]:
        assert math.fsum(term.change for term in terms) == pytest.approx(change, abs=1e-12)
    own = math.fsum([*(one.own for one in story.questions), story.rest.own])
    assert own == pytest.approx(story.own.change, abs=1e-12)


def test_a_forecaster_reads_how_far_it_moved_and_mostly_why() -> None:
    story = told("e4", questions=2)

    first, own, equal = story.sentences
    assert first.startswith("Between 2 Mar 2026 and 11 Mar 2026 e4's share of the mixed forecast fell from ")
    assert re.search(r"because its own forecasts did worse than the average on \d+ of 40 questions \(-[\d.]+\)", first)
    assert own.startswith("Its own forecasts of 40 questions moved it by -")
    assert "Most of all q" in own
    assert "most others said " in own
    said = r"The weights of all experts add up to 100%. If all were equal, each would be 20.0+% among the 5 experts .*"
    assert re.fullmatch(said, equal)


def test_the_questions_told_are_those_that_moved_it_most() -> None:
    few, all_of_them = told("e2", questions=3), told("e2", questions=100)

    own = [abs(one.own) for one in all_of_them.questions]
    assert own == sorted(own, reverse=True)
    assert few.questions == all_of_them.questions[:3]
    assert few.rest.questions == 37


def test_causes_that_went_beyond_all_of_a_weight_are_told_as_parts_and_the_example_went_the_same_way() -> None:
    plain = told("e1", questions=100)
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
        story = told(name, questions=100)
        example = re.search(r"Most of all \S+ \(([+-])", story.sentences[1])
        assert example is None or example.group(1) == ("+" if story.own.change > 0 else "-")


def test_where_nothing_moved_the_sentence_says_so() -> None:
    story = told(since=bound_of("5"), until=bound_of("5"))

    assert story.difference == 0.0
    assert story.sentences[0].endswith("before and after: nothing moved it.")
    assert story.sentences[1] == "None of its own forecasts counted in between."


def test_the_moments_that_were_asked_for_are_told() -> None:
    story = told(since=bound_of("2026-03-02"), until=bound_of("2026-03-06T12:00"))

    assert story.sentences[0].startswith("Between 2 Mar 2026 and 6 Mar 2026 e1's")
    assert (story.since.asked, story.until.asked) == ("2026-03-02T00:00:00Z", "2026-03-06T12:00:00Z")


def test_before_it_was_listed_it_had_no_weight() -> None:
    story = told(since=bound_of("2020-01-01"))

    assert re.search(r"rose from 0.0+% \(not listed yet\) to", story.sentences[0])
    assert re.search(r"because it was listed \(\+20.0+\)", story.sentences[0])
    assert any(one.cause == "listing" for one in story.causes)


def test_the_story_is_json() -> None:
    story = told(weight="select", questions=1)

    assert msgspec.json.decode(encode_explanation(story), type=WeightExplanation) == story


@pytest.mark.parametrize("controls", [False, True])
def test_the_log_of_a_replay_tells_the_same_stories_as_the_replay_itself(controls: bool) -> None:
    accounts = [Account(name) for name in EXPERTS]
    accounts_of(*accounts, controls=controls)
    expected = [story for account in accounts if (story := story_of(account, "econ", questions=3))]

    with StoryLog() as log:
        values = [*season(), *([CONTROL] if controls else [])]
        result = replay([lines(values)], ReplayOptions(), write=log.write)
        found = log.stories("econ", [*EXPERTS, "nobody"], result.settings)

    assert found == expected
    assert len(found) == 5


def test_who_or_what_is_not_there_is_named_with_what_may_have_been_meant() -> None:
    requests = [ExplainRequest("econ", "E1"), ExplainRequest("eco", "e1"), ExplainRequest("econ", "e1", until=Bound(0))]
    answers = []
    for request in requests:
        account = account_of(request)
        witness = accounts_of(account)
        log = LogRead(request.feed in witness.feeds, witness.follower.experts, witness.feeds)
        answers.append(answer(request, account, log))

    assert answers == [
        ExplainFault("expert", "there is no expert 'E1' in feed econ; did you mean e1?"),
        ExplainFault("feed", "there is no feed 'eco'; did you mean econ?"),
        ExplainFault(
            "expert", "e1 had no weight in feed econ by then: none of its questions counted, or it is excluded"
        ),
    ]


def test_a_log_that_has_lost_its_beginning_is_told() -> None:
    request = ExplainRequest("econ", "e1")
    account = account_of(request)
    witness = accounts_of(account)

    whole, part = (answer(request, account, LogRead(True, witness.follower.experts, (), start)) for start in (0, 7))

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
