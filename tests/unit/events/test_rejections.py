"""Reason codes are a closed set that may stand in headers and labels."""

import re

from stream_peer.errors import RejectedEvent
from stream_peer.events.rejections import Reason


def test_reasons_are_short_hyphenated_words() -> None:
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", reason) for reason in Reason)


def test_a_rejection_tells_reason_field_and_message() -> None:
    error = RejectedEvent(Reason.WEIGHT_RANGE, field="weight", message="weight is 2")

    assert (error.reason, error.field, error.message) == ("weight-range", "weight", "weight is 2")
    assert str(error) == "weight-range: weight is 2"
