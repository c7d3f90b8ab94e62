"""The benchmark's events are what its page says they are."""

import re
from collections import Counter

import pytest

from benchmarks.lives import Lives
from benchmarks.soak_bounds import Bounds, Sample, bounds_of, faults
from benchmarks.soak_log import Held
from benchmarks.workload import EXPERTS_PER_QUESTION, OPEN_FOR, Workload
from stream_peer.errors import RejectedEvent
from stream_peer.events.incoming import Forecast, Forecasts, Question, Resolution, Tick, decode
from stream_peer.events.partitioning import partition_of
from stream_peer.events.times import to_milliseconds
from stream_peer.settings.feed.model import FeedSettings

PARTITIONS = 4


@pytest.mark.parametrize("as_messages", [False, True])
def test_every_message_is_valid_in_order_and_on_its_partition(*, as_messages: bool) -> None:
    for partition in range(PARTITIONS):
        *messages, tick = Workload(40, as_messages=as_messages).partition(partition, PARTITIONS)

        assert [message.at for message in messages] == sorted(message.at for message in messages)
        assert {partition_of(message.key, PARTITIONS) for message in messages} == {partition}
        assert all(
            isinstance(decode(message.value), Question | Forecast | Forecasts | Resolution) for message in messages
        )
        assert isinstance(decode(tick.value), Tick)


@pytest.mark.parametrize("as_messages", [False, True])
def test_fifty_experts_forecast_each_question_3_2_times_while_it_is_open(*, as_messages: bool) -> None:
    workload = Workload(40, as_messages=as_messages)
    told, experts, opens = Counter[str](), dict[str, set[str]](), dict[str, int]()
    for event in (decode(m.value) for p in range(PARTITIONS) for m in workload.partition(p, PARTITIONS)):
        if isinstance(event, Question):
            assert event.opens_at is not None
            opens[event.question_id] = to_milliseconds(event.opens_at)
        elif isinstance(event, Forecast | Forecasts):
            assert 0 < to_milliseconds(event.at) - opens[event.question_id] < OPEN_FOR
            names = [event.expert_id] if isinstance(event, Forecast) else list(event.forecasts)
            told[event.question_id] += len(names)
            experts.setdefault(event.question_id, set()).update(names)

    assert sum(told.values()) == workload.forecasts == 40 * 160
    assert {len(names) for names in experts.values()} == {EXPERTS_PER_QUESTION}


def test_two_runs_send_the_same_bytes() -> None:
    assert Workload(20).partition(1, PARTITIONS) == Workload(20).partition(1, PARTITIONS)


def test_the_readme_names_every_figure() -> None:
    from benchmarks.runs import RUNS
    from tests.infra.support.tools import ROOT

    page = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")

    assert set(RUNS) <= set(re.findall(r"^\| `(\w+)` \|", page, flags=re.MULTILINE))


def test_no_more_questions_of_the_soak_are_open_at_once_than_said() -> None:
    lives = Lives(20)
    changes = []
    for number in range(300):
        event = decode(lives.messages(number)[0].value)
        assert isinstance(event, Question)
        assert event.opens_at is not None
        assert event.closes_at is not None
        changes += [(to_milliseconds(event.opens_at), 1), (to_milliseconds(event.closes_at), -1)]
    open_now = most = 0
    for _, change in sorted(changes):
        open_now += change
        most = max(most, open_now)

    assert 10 < most <= 20


def test_the_soak_goes_on_from_any_question_as_if_it_had_begun_with_the_first() -> None:
    lives = Lives(5)
    steps = list(lives.steps(0, 1_500))

    assert list(lives.steps(1_300, 1_500)) == steps[1_300:]
    moments = [message.at for _, messages in steps for message in messages]
    assert moments == sorted(moments)


def test_at_most_a_tenth_of_the_questions_of_the_soak_hear_an_outcome_and_some_lines_are_broken() -> None:
    told, resolved = Counter[str](), set()
    for number in range(2_000):
        for message in Lives(20).messages(number):
            try:
                event = decode(message.value)
            except RejectedEvent:
                told["broken"] += 1
                continue
            told[type(event).__name__] += 1
            if isinstance(event, Forecast) and event.probability is None:
                told["withdrawn"] += 1
            if isinstance(event, Resolution):
                told[str(event.verdict)] += 1
                resolved.add(event.question_id)

    assert 150 < len(resolved) <= 230
    assert min(told[kind] for kind in ("broken", "withdrawn", "annulled", "open")) > 5
    assert told["Question"] == 2_000


def samples(**last: int) -> list[Sample]:
    """A run that is level, but for its last third."""
    level = {"rss": 60_000_000, "state": 900_000, "stubs": 900, "blocks": 90_000}
    found = []
    for number in range(1_000, 4_001, 100):
        now = {**level, **(last if number > 3_000 else {})}
        found.append(Sample(number, 1.0, now["rss"], now["state"], Held(10, now["stubs"], 500, 900), 1, now["blocks"]))
    return found


BOUNDS = Bounds(Held(20, 1_000, 1_000, 1_000), memory=50_000_000, state=2_000_000, warm_up=999)


@pytest.mark.parametrize(
    ("last", "said"),
    [
        ({}, []),
        ({"stubs": 1_001}, ["1,001 stubs, 1,000 allowed"]),
        ({"rss": 101_000_000}, ["memory 61.0 MB above the start", "rss grew"]),
        ({"rss": 75_000_000}, ["rss grew from 20,000,000 to 35,000,000"]),
        ({"blocks": 120_000}, ["blocks grew from 90,000 to 120,000"]),
        ({"state": 2_100_000}, ["state 2.10 MB, 2.00 allowed", "state grew"]),
    ],
)
def test_the_soak_fails_for_what_is_more_than_allowed_and_for_what_still_grows(
    last: dict[str, int], said: list[str]
) -> None:
    found = faults(samples(**last), BOUNDS, base=40_000_000)

    assert len(found) >= len(said)
    assert all(any(text.startswith(words) for text in found) for words in said)
    assert bool(found) == bool(said)


def test_a_soak_that_ends_before_it_is_level_is_no_proof() -> None:
    found = faults(samples(), BOUNDS._replace(warm_up=3_990), base=40_000_000)

    assert found == ["too few questions to see whether anything grows"]


def test_twice_the_questions_open_may_take_twice_the_memory_beyond_the_fixed_part() -> None:
    one, two = (bounds_of(Lives(most_open), FeedSettings(ledger_max=most_open), 4) for most_open in (80, 160))
    fixed = 2 * one.memory - two.memory

    assert two.memory - fixed == 2 * (one.memory - fixed)
    assert two.held == Held(*(2 * count for count in one.held))
