"""Small files of events as a service gets them, in the order of their lines: what is scored, and what is learnt."""

from datetime import datetime
from pathlib import Path

import msgspec
import pytest

from stream_peer.events import topics
from stream_peer.events.times import to_milliseconds
from stream_peer.feeds.stage import FeedStage
from stream_peer.feeds.views import FeedView
from stream_peer.log.stage import Effects, LogRecord
from tests.feed_histories import newest
from tests.feed_histories import stage as feed_stage_with
from tests.unit.questions.question_log import DAY, Partition, tick

FILES = Path(__file__).parents[2] / "cases2"


def folded(lines: list[bytes]) -> tuple[FeedStage, Effects]:
    """Both stages, the feeds being historical; then time passes until all has closed."""
    partition, now = Partition(history=True), 0
    for line in lines:
        now = max(now, to_milliseconds(datetime.fromisoformat(msgspec.json.decode(line)["at"])))
        partition.send(line, now=now)
    partition.send(tick(now + DAY), now=now + DAY)
    stage, effects = feed_stage_with(), Effects()
    written = [output for output in partition.effects.outputs if output.topic == topics.FEED_LOG]
    for offset, output in enumerate(written):
        stage.step(LogRecord(offset, output.timestamp, output.key or b"", output.value or b""), effects)
    return stage, effects


def view_of(lines: list[bytes]) -> FeedView:
    return folded(lines)[0].views()["t"]


def test_a_late_line_after_outcomes_is_published_and_does_not_make_the_scored_forecast_better() -> None:
    lines = (FILES / "late-line-after-outcomes.jsonl").read_bytes().splitlines()

    stage, effects = folded(lines)

    corrected = newest(effects.outputs, topics.MIXED_FORECASTS)["q1"]
    assert corrected["revision"] > corrected["scored"]["revision"]
    assert (1 - corrected["mix"]) ** 2 < (1 - corrected["scored"]["mix"]) ** 2
    assert stage.views()["t"].brier["mix"] == pytest.approx(0.1495, abs=5e-5)
    assert view_of(lines[:-1]).brier == stage.views()["t"].brier


def test_questions_that_only_one_expert_answers_mend_neither_its_mix_nor_its_select() -> None:
    lines = (FILES / "solo-questions-mend-skill.jsonl").read_bytes().splitlines()
    shared = [line for line in lines if msgspec.json.decode(line)["question_id"] <= "q4"]

    before, after = view_of(shared).weights, view_of(lines).weights

    (cy_before,) = (expert for expert in before.experts if expert.id == "cy")
    (cy_after,) = (expert for expert in after.experts if expert.id == "cy")
    assert (before.resolved, after.resolved) == (5.0, 25.0)
    assert (cy_after.resolved, cy_after.coverage) == (25.0, 1.0)
    assert cy_after.outcome_loss == pytest.approx(0.8963, abs=5e-5)
    assert cy_before.mix == pytest.approx(0.004, abs=5e-4)
    assert cy_after.mix == pytest.approx(cy_before.mix, abs=1e-9)
    assert cy_after.select <= cy_before.select + 1e-9
    assert [expert.mix for expert in after.experts] == pytest.approx([expert.mix for expert in before.experts])
    assert after.stretch == pytest.approx(before.stretch)
    assert after.mixer == before.mixer
