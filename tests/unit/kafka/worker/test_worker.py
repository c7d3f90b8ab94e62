"""Exit codes."""

import pytest
from aiokafka import errors as kafka

from stream_peer.errors import ForeignWriterError, TopicsError
from stream_peer.kafka.worker.faust_bridge import exit_code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (None, 0),
        (ForeignWriterError("a later fencing token"), 70),
        (TopicsError("missing"), 78),
        (kafka.TopicAuthorizationFailedError(), 77),
        (kafka.GroupAuthorizationFailedError(), 77),
        (kafka.SaslAuthenticationFailed(), 77),
        (kafka.KafkaConnectionError("refused"), 69),
        (OSError("network is down"), 69),
        (ZeroDivisionError(), 70),
    ],
)
def test_the_exit_code_says_what_an_operator_may_do(error: BaseException | None, code: int) -> None:
    assert exit_code(error) == code
