from typing import Any

import msgspec
import pytest

from stream_peer.tools.demo.feed import MALFORMED, read_events
from stream_peer.tools.demo.make_data import MALFORMED as MALFORMED_PAYLOADS


@pytest.mark.slow
def test_the_script_makes_the_committed_data() -> None:
    """Probabilities may differ by a hundredth: linear algebra is not the same on every machine."""
    pytest.importorskip("sklearn")
    from stream_peer.tools.demo.make_data import make_events

    made, kept = make_events(), [event.value for event in read_events()]

    assert len(made) == len(kept)
    differing = [(a, b) for a, b in zip(made, kept, strict=True) if a != b]
    assert len(differing) <= len(kept) // 100
    for a, b in differing:
        assert _without_probabilities(a) == _without_probabilities(b)


def _without_probabilities(payload: bytes) -> dict[str, Any]:
    event: dict[str, Any] = msgspec.json.decode(payload)
    event.pop("probability", None)
    if "forecasts" in event:
        event["forecasts"] = sorted(event["forecasts"])
    return event


def test_three_payloads_are_malformed() -> None:
    assert len(MALFORMED_PAYLOADS) == MALFORMED
