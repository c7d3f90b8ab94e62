from typing import Any

import pytest

from stream_peer.events import topics
from tests.order_free import COMPARED, order_free

EXPERT = {"id": "ann", "mix": 0.5, "select": 0.9, "questions": 3.0, "coverage": 1.0, "peer_loss": 0.1}
WEIGHTS = {"feed": "econ", "revision": 9, "at": "x", "mixer": {}, "certificate": None, "resolved": 0.0}
SCORED = {"id": "ann", "probability": 0.7, "reference_answer": 1, "peer_loss": 0.2, "outcome_loss": None}


def test_every_output_topic_but_dead_letters_is_compared() -> None:
    assert set(COMPARED) == set(topics.OUTPUTS) - {topics.DEAD_LETTERS}


@pytest.mark.parametrize(
    ("topic", "record", "fields"),
    [
        (topics.REFERENCE_ANSWERS, {"question": "q", "revision": 1, "reference_answer": 1, "tie": False}, 3),
        (topics.MIXED_FORECASTS, {"question": "q", "mix": 0.1, "mean": 0.2, "logit_mean": 0.2, "selected": None}, 3),
        (topics.ERROR_RATES, {"feed": "econ", "revision": 1, "zero": 0.1, "effective_questions": 7.0}, 3),
    ],
)
def test_only_what_order_cannot_change_is_kept(topic: str, record: dict[str, Any], fields: int) -> None:
    kept = order_free(topic, record)

    assert len(kept) == fields
    assert not {"revision", "error_rate", "mix", "selected", "settings"} & set(kept)


def test_of_a_scored_expert_the_forecast_and_its_reference_answer_are_kept() -> None:
    kept = order_free(topics.PEER_LOSSES, {"question": "q", "revision": 1, "error_rate": {}, "experts": [SCORED]})

    assert kept == {"question": "q", "experts": [{"id": "ann", "probability": 0.7, "reference_answer": 1}]}


def test_mix_is_kept_while_nothing_is_resolved() -> None:
    unresolved = order_free(topics.WEIGHTS, {**WEIGHTS, "experts": [EXPERT]})
    resolved = order_free(topics.WEIGHTS, {**WEIGHTS, "resolved": 1.0, "experts": [EXPERT]})

    assert unresolved["experts"] == [
        {"id": "ann", "questions": 3.0, "coverage": 1.0, "peer_loss": 0.1, "mix": 0.5},
    ]
    assert "mix" not in resolved["experts"][0]
    trusted = order_free(topics.WEIGHTS, {**WEIGHTS, "experts": [EXPERT]}, mixes=False)
    assert trusted["experts"] == [{"id": "ann", "questions": 3.0, "coverage": 1.0, "peer_loss": 0.1}]
    assert "certificate" not in resolved
