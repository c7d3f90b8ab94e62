"""Months of a deployment in a minute: what was opened and closed does not stay, also after a kill in the middle.

How much memory that takes depends on how busy the machine is: ``python -m benchmarks.soak --kafka`` looks at it.
"""

from pathlib import Path

import pytest

from benchmarks.deployment import Deployment
from benchmarks.lives import Lives
from benchmarks.soak_kafka import LIMIT_TIMES_OPEN, LiveSoak
from tests.integration.support.client import KafkaClient

pytestmark = pytest.mark.real_kafka

LIVES = Lives(most_open=40, longest=1_200)
QUESTIONS = 1_000


@pytest.mark.slow
@pytest.mark.case("C34")
def test_state_stays_within_what_the_settings_allow_whatever_was_opened_and_closed(
    kafka: KafkaClient, topic_prefix: str, tmp_path: Path
) -> None:
    soak = LiveSoak(Deployment(kafka.bootstrap, topic_prefix, tmp_path), LIVES, QUESTIONS, data=None)
    soak.prepare()

    result = soak.run()

    most = LIMIT_TIMES_OPEN * LIVES.most_open
    held = result.held
    assert 0 < held.names <= most
    assert 0 < held.entries <= most
    assert held.stubs > QUESTIONS / 4
    assert held.live + held.stubs <= QUESTIONS
    assert result.recovery_seconds > 0
