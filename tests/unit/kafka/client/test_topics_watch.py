"""Topics that change while a worker runs are noticed, said once, and forgotten when they are as planned again."""

from collections.abc import Mapping

import pytest
from structlog.testing import capture_logs

from stream_peer.errors import BrokerUnavailableError, NotAuthorisedError, StreamPeerError, TopicsError
from stream_peer.kafka.client.topics_watch import TopicsWatch

FAULT = "The topics are not as needed:\n  weights is missing"
FIRST = {"forecast-events": "1", "weights": "2"}
SAID = "The topics are not as needed: weights is missing"


class Topics:
    """What a check finds."""

    def __init__(self) -> None:
        self.error: StreamPeerError | None = None
        self.ids = dict(FIRST)
        self.former: list[dict[str, str]] = []

    def __call__(self, former: Mapping[str, str]) -> Mapping[str, str]:
        self.former.append(dict(former))
        if self.error is not None:
            raise self.error
        return dict(self.ids)


@pytest.mark.parametrize("kind", [TopicsError, NotAuthorisedError])
def test_a_change_is_said_once_in_one_sentence_until_it_is_mended(kind: type[StreamPeerError]) -> None:
    topics = Topics()
    watch = TopicsWatch(topics, FIRST)

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
    watch = TopicsWatch(topics, FIRST)
    topics.error = TopicsError(FAULT)
    watch.look()

    topics.error = BrokerUnavailableError("away")
    watch.look()

    assert watch.fault == SAID


def test_topics_are_compared_with_those_of_the_start_however_long_a_fault_lasts() -> None:
    topics = Topics()
    watch = TopicsWatch(topics, FIRST)
    topics.error = TopicsError(FAULT)

    for _ in range(3):
        watch.look()

    assert topics.former == [FIRST] * 3


def test_an_output_that_was_recreated_is_said_once_and_is_no_fault() -> None:
    topics = Topics()
    watch = TopicsWatch(topics, FIRST)

    with capture_logs() as lines:
        watch.look()
        topics.ids["weights"] = "3"
        watch.look()
        watch.look()

    assert [(line["event"], line["topic"]) for line in lines] == [("topic_recreated", "weights")]
    assert watch.fault == ""


def test_a_thread_looks_again_and_again() -> None:
    looked: list[int] = []

    def look(former: Mapping[str, str]) -> Mapping[str, str]:
        looked.append(1)
        return former

    watch = TopicsWatch(look, FIRST, every=0.001)

    with watch:
        while len(looked) < 3:
            pass
    watch._thread.join(10)

    assert not watch._thread.is_alive()
