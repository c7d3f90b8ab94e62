"""Settings count from when they were applied, wherever in the log a partition meets them."""

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.hypothesis_profiles import examples
from tests.property.test_question_stage import (
    Events,
    experts,
    feeds,
    hours,
    names,
    panels,
    probabilities,
    resolutions,
    ticks,
)
from tests.unit.questions.question_log import (
    DAY,
    HOUR,
    T0,
    Partition,
    broadcast,
    forecast,
    question,
    resolution,
    settings_event,
    stage,
    tick,
)

KEPT: dict[str, Any] = {"history_for": "9000d"}
DOCUMENTS: list[dict[str, Any]] = [
    {"defaults": {**KEPT, "round_every": "7h", "quorum": 2, "backdate_limit": "5h"}},
    {"defaults": {**KEPT, "round_every": "5h", "history": True}},
    {"defaults": {**KEPT, "backdate_limit": "1h"}, "feeds": {"econ": {"history": True, "round_every": "3h"}}},
    {"defaults": {**KEPT, "grace": "4h", "max_open": "20h"}, "feeds": {"sport": {"quorum": 3, "forecast_for": "9h"}}},
]
END = T0 + 3 * DAY

forecasts = st.builds(
    lambda name, expert, p, at, feed: forecast(expert, p, at, name, feed=feed),
    names, experts, probabilities, hours, feeds,
)  # fmt: skip
questions = st.builds(
    lambda name, at, opens, closes, feed: question(name, at=at, opens_at=opens, closes_at=closes, feed=feed),
    names, hours, hours | st.just(...), hours | st.just(...), feeds,
)  # fmt: skip
payloads = st.one_of(forecasts, forecasts, forecasts, panels, questions, resolutions, ticks)


@st.composite
def logs(draw: st.DrawFn) -> Events:
    values = draw(st.lists(payloads, max_size=25))
    times = sorted(draw(st.lists(hours, min_size=len(values), max_size=len(values))))
    return list(zip(times, values, strict=True))


def rounds_of(log: Events, documents: list[tuple[int, int, dict[str, Any]]]) -> dict[Any, Any]:
    """The rounds that stand in the end, if documents reach the partition before the records of these places."""
    partition = Partition(stage())
    for place, (time, value) in enumerate([*log, (END, tick(END))]):
        for since, met_at, document in documents:
            if met_at == place:
                partition.send(settings_event(document, since=since), now=time, source=broadcast(partition.offset))
        partition.send(value, now=time)
    return partition.told.rounds


@settings(max_examples=examples(300), deadline=None)
@given(log=logs(), before=st.sampled_from([None, *DOCUMENTS]), document=st.sampled_from(DOCUMENTS), data=st.data())
def test_however_late_a_partition_meets_settings_the_rounds_in_the_end_are_the_same(
    log: Events, before: dict[str, Any] | None, document: dict[str, Any], data: st.DataObject
) -> None:
    since = data.draw(hours)
    first = [] if before is None else [(T0, 0, before)]
    in_time = 0 if before is None else sum(time < since for time, _ in log)
    late = data.draw(st.integers(in_time, len(log)))

    told = rounds_of(log, [*first, (since, late, document)])

    assert told == rounds_of(log, [*first, (since, in_time, document)])


@settings(max_examples=examples(100), deadline=None)
@given(log=logs(), document=st.sampled_from(DOCUMENTS), place=st.integers(0, 25))
@example(
    log=[
        (T0 + 30 * DAY, question(at=T0, opens_at=T0, closes_at=T0 + DAY, feed="econ")),
        (T0 + 30 * DAY, forecast("ann", 0.7, T0 + HOUR)),
        (T0 + 30 * DAY, resolution(1, T0 + 2 * DAY)),
        (T0 + 30 * DAY, forecast("bob", 0.2, T0 + 2 * HOUR)),
    ],
    document={"feeds": {"econ": {"history": True}}},
    place=4,
)
def test_the_first_settings_count_for_everything_before_them(log: Events, document: dict[str, Any], place: int) -> None:
    place = min(place, len(log))

    assert rounds_of(log, [(END, place, document)]) == rounds_of(log, [(END, 0, document)])


def test_a_back_fill_from_before_the_first_settings_is_used_whole() -> None:
    log = [
        (T0 + 30 * DAY, question(at=T0, opens_at=T0, closes_at=T0 + DAY, feed="econ")),
        (T0 + 30 * DAY, forecast("ann", 0.7, T0 + HOUR)),
        (T0 + 30 * DAY, resolution(1, T0 + 2 * DAY)),
        (T0 + 30 * DAY, forecast("bob", 0.2, T0 + 2 * HOUR)),
    ]

    assert rounds_of(log, []) == {}
    (content,) = rounds_of(log, [(END, 4, {"feeds": {"econ": {"history": True}}})]).values()
    assert content == (True, 1.0, {"ann": 0.7, "bob": 0.2})
