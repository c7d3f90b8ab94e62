"""Topics that change while a worker runs are noticed, said once, and forgotten when they are as planned again."""

import pytest
from structlog.testing import capture_logs

from stream_peer.errors import BrokerUnavailableError, NotAuthorisedError, StreamPeerError, TopicsError
from stream_peer.kafka.client.topics_watch import TopicsWatch

FAULT = "The topics are not as needed:\n  weights is missing"
SAID = "The topics are not as needed: weights is missing"


class Topics:
    """What a check finds."""

    def __init__(self) -> None:
        self.error: StreamPeerError | None = None

    def __call__(self) -> None:
        if self.error is not None:
            raise self.error


@pytest.mark.parametrize("kind", [TopicsError, NotAuthorisedError])
def test_a_change_is_said_once_in_one_sentence_until_it_is_mended(kind: type[StreamPeerError]) -> None:
    topics = Topics()
    watch = TopicsWatch(topics)

    with capture_logs() as lines:
        watch.look()
        topics.error = kind(FAULT)
        for _ in range(3):
            watch.look()
        during = watch.fault
        topics.error = None
        watch.look()

    assert (during, watch.fault) == (SAID, "")
    assert [line["event"] for line in lines] == ["topics_changed", "topics_as_planned"]
    assert lines[0]["reason"] == SAID


def test_where_no_broker_answers_nothing_new_is_known() -> None:
    topics = Topics()
    watch = TopicsWatch(topics)
    topics.error = TopicsError(FAULT)
    watch.look()

    topics.error = BrokerUnavailableError("away")
    watch.look()

    assert watch.fault == SAID


def test_a_thread_looks_again_and_again() -> None:
    looked: list[int] = []
    watch = TopicsWatch(lambda: looked.append(1), every=0.001)

    with watch:
        while len(looked) < 3:
            pass
    watch._thread.join(10)

    assert not watch._thread.is_alive()
