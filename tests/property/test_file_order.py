"""What a replay of a file is scored on, whatever the order of its lines and whatever comes late."""

import random
from collections.abc import Mapping

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from stream_peer.events import topics
from stream_peer.events.outputs import MixedForecast, ScoredForecast
from stream_peer.log.stage import Output
from stream_peer.tools.replay.history import Scores
from stream_peer.tools.replay.replay import ReplayOptions, replay
from tests.unit.questions.question_log import HOUR, T0, forecast
from tests.unit.tools.replay.file_lines import lines, season

AT_THE_CLOSE = ReplayOptions({"defaults": {"round_every": None}})
QUESTIONS = 8
_decode = msgspec.json.Decoder(MixedForecast).decode


def scores(values: list[bytes]) -> Scores | None:
    return replay([lines(values)], AT_THE_CLOSE).history.feeds["econ"].scores()


def scored(values: list[bytes]) -> Mapping[str, ScoredForecast]:
    """What each question is scored on; it never changes once its outcome is known, whatever is published later."""
    resolved: dict[str, ScoredForecast | None] = {}

    def look(output: Output) -> None:
        if output.topic == topics.MIXED_FORECASTS and output.value:
            record = _decode(output.value)
            if record.state == "resolved":
                assert resolved.setdefault(record.question, record.scored) == record.scored

    replay([lines(values)], AT_THE_CLOSE, write=look)
    return {name: forecast for name, forecast in resolved.items() if forecast is not None}


@given(seed=st.integers(0, 1 << 30))
def test_a_shuffled_file_is_scored_like_one_in_order_of_time(seed: int) -> None:
    values = season(questions=QUESTIONS)
    shuffled = random.Random(seed).sample(values, len(values))

    assert scores(shuffled) == scores(values)


@given(
    late=st.lists(
        st.tuples(st.integers(0, QUESTIONS - 1), st.sampled_from(["e1", "late"]), *[st.floats(0.0, 1.0)] * 2),
        min_size=1,
        max_size=8,
    ),
    shuffled=st.booleans(),
)
def test_no_scored_forecast_changes_after_the_outcome_of_its_question(
    late: list[tuple[int, str, float, float]], shuffled: bool
) -> None:
    """Late lines state times before the close; in an ordered file they change nothing that was resolved before them."""
    values = season(questions=QUESTIONS)
    plain, outcomes = scored(values), {name: values.index(line) for name, line in _outcomes(values).items()}
    first = len(values)
    for number, expert, probability, place in late:
        name, at = f"q{number:03d}", T0 + number * 5 * HOUR + HOUR
        after = values.index(_outcomes(values)[name]) + 1
        where = after + int(place * (len(values) - after))
        first = min(first, where)
        values.insert(where, forecast(expert, probability, at, name))
    if shuffled:
        random.Random(len(values)).shuffle(values)

    found = scored(values)

    if not shuffled:
        before = [name for name, place in outcomes.items() if place < first]
        assert [found[name] for name in before] == [plain[name] for name in before]
        assert before
    assert set(found) == set(plain)


def _outcomes(values: list[bytes]) -> Mapping[str, bytes]:
    """The resolution of each question."""
    decoded = ((msgspec.json.decode(line), line) for line in values)
    return {event["question_id"]: line for event, line in decoded if event["type"] == "resolution"}
