"""The benchmark's events are what its page says they are."""

import re
from collections import Counter

import pytest

from benchmarks.workload import EXPERTS_PER_QUESTION, OPEN_FOR, Workload
from stream_peer.events.incoming import Forecast, Forecasts, Question, Resolution, Tick, decode
from stream_peer.events.partitioning import partition_of
from stream_peer.events.times import to_milliseconds

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
    from benchmarks.pipeline import MEASURED
    from tests.infra.support.tools import ROOT

    page = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")

    assert set(MEASURED) <= set(re.findall(r"^\| `(\w+)` \|", page, flags=re.MULTILINE))
