"""Months of a deployment in a minute: what was opened and closed does not stay, also after a kill in the middle."""

from pathlib import Path

import pytest

from benchmarks.deployment import Deployment
from benchmarks.lives import Lives
from benchmarks.soak_kafka import LiveSoak, live_faults
from tests.integration.support.client import KafkaClient

pytestmark = pytest.mark.real_kafka

LIVES = Lives(most_open=40, longest=1_200)
QUESTIONS = 1_000


@pytest.mark.slow
@pytest.mark.case("C34")
def test_state_and_memory_stay_within_what_the_settings_allow_whatever_was_opened_and_closed(
    kafka: KafkaClient, topic_prefix: str, tmp_path: Path
) -> None:
    soak = LiveSoak(Deployment(kafka.bootstrap, topic_prefix, tmp_path), LIVES, QUESTIONS, data=None)
    soak.prepare()

    result = soak.run()

    assert live_faults(result, LIVES) == []
    assert 0 < result.held.names < QUESTIONS
    assert result.held.live + result.held.entries < QUESTIONS / 2
    assert result.recovery_seconds > 0
