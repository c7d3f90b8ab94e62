"""The client for consumers on a real Kafka: it follows what is published, through outages, and says what is wrong."""

import re
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trustme

from stream_peer.events import topics
from stream_peer.events.outputs import Weights, encode_output
from stream_peer.tools.demo.brokers import free_ports
from stream_peer_client import (
    BrokersUnavailableError,
    Change,
    NotAuthorisedError,
    NotReadError,
    Security,
    StreamPeerClientError,
    TopicMissingError,
    UnknownFeedError,
    UnknownSchemaError,
    WeightsReader,
)
from tests.feed_outputs import part, weights
from tests.integration.support.brokers import Rung, RunningBroker, running
from tests.integration.support.client import KafkaClient, Message
from tests.integration.support.kafka_broker import KafkaBroker
from tests.integration.support.secured_kafka import PASSWORD, USER, secured_kafka
from tests.integration.support.waiting import wait_until

pytestmark = pytest.mark.real_kafka

PARTITIONS = 2
ENDED = "it ends the connection: a wrong user or password"


@pytest.fixture
def topic(kafka: KafkaClient, topic_prefix: str) -> str:
    kafka.create_topics({topic_prefix + topics.WEIGHTS: PARTITIONS}, {"cleanup.policy": "compact"})
    return topic_prefix + topics.WEIGHTS


def write(kafka: KafkaClient, topic: str, *newest: Weights) -> None:
    kafka.produce(topic, [Message(each.feed.encode(), encode_output(each)) for each in newest])


def follow(changes: list[Change], feed: str, revision: int | None) -> None:
    """Wait until the last change is this."""

    def came() -> bool:
        last = changes[-1] if changes else None
        return last is not None and last.feed == feed and (last.weights.revision if last.weights else None) == revision

    wait_until(came, 30.0, f"{revision} of {feed} was never told")


def test_the_newest_weights_are_there_at_once_and_changes_are_told(
    kafka: KafkaClient, topic: str, topic_prefix: str
) -> None:
    write(kafka, topic, weights(3, "a"), weights(5, "a", "b"), weights(4, "z", feed="news"))
    kafka.produce(topic, [Message(b"junk", b"{")])
    kafka.abort(topic, [Message(b"econ", encode_output(weights(99, "never")), place) for place in range(PARTITIONS)])
    changes: list[Change] = []
    reader = WeightsReader(kafka.bootstrap, prefix=topic_prefix)
    with pytest.raises(NotReadError):
        reader.weights("econ")
    reader.on_change(lambda change: [][change.feed])  # type: ignore[call-overload] # fails, and stops nobody
    stop = reader.on_change(changes.append)

    with reader:
        assert sorted(change.feed for change in changes) == reader.feeds() == ["econ", "news"]
        first = reader.weights("econ")
        assert (first.revision, list(first.experts), first.stale, reader.problem) == (5, ["a", "b"], False, None)
        with pytest.raises(UnknownFeedError, match="no weights of sport"):
            reader.weights("sport")

        for number, place in enumerate((1, 0)):
            kafka.produce(topic, [Message(f"econ/{number}".encode(), part(weights(7), number, 2, f"p{number}"), place)])
        follow(changes, "econ", 7)
        assert list(reader.weights("econ").experts) == ["p0", "p1"]
        assert first.revision == 5

        kafka.produce(topic, [Message(b"news", None)])
        follow(changes, "news", None)
        assert reader.feeds() == ["econ"]
        stop()
        known = len(changes)
        write(kafka, topic, weights(8, feed="other"))
        wait_until(lambda: "other" in reader.feeds(), 30.0, "the weights never came")
        assert len(changes) == known
    assert reader.weights("econ").revision == 7


async def test_an_event_loop_is_told_of_the_newest_and_its_end(
    kafka: KafkaClient, topic: str, topic_prefix: str
) -> None:
    write(kafka, topic, weights(3, "a"), weights(4, "z", feed="news"))
    told = []
    async with WeightsReader(kafka.bootstrap, prefix=topic_prefix, feeds=["econ"]) as reader:
        async for feed, found in reader.changes():
            assert found is not None
            told.append((feed, found.revision))
            if found.revision == 3:
                write(kafka, topic, weights(6, "a"), weights(7, "z", feed="news"))
            else:
                break
        ended = reader.changes()
        assert (await anext(ended)).feed == "econ"
    assert [change async for change in ended] == []
    assert told == [("econ", 3), ("econ", 6)]


def test_through_an_outage_it_keeps_what_it_has_says_so_and_goes_on(
    own_kafka: Callable[[Mapping[str, str]], KafkaBroker],
) -> None:
    broker, topic = own_kafka({}), topics.WEIGHTS
    kafka = KafkaClient(RunningBroker(broker.bootstrap, Rung.JARS))
    kafka.create_topics({topic: PARTITIONS})
    write(kafka, topic, weights(3, "a"))
    with WeightsReader(kafka.bootstrap, stale_after=2.0) as reader:
        before = reader.weights("econ")
        broker.kill()
        wait_until(lambda: reader.weights("econ").stale, 60.0, "the weights never became stale")
        wait_until(lambda: reader.problem, 60.0, "the outage was never told")
        assert reader.weights("econ").mix({"a": 0.25}).mix == 0.25
        assert not before.stale

        broker.start()
        write(kafka, topic, weights(5, "a", "b"))
        wait_until(lambda: reader.weights("econ").revision == 5, 60.0, "newer weights were never read")
        wait_until(lambda: not reader.weights("econ").stale, 60.0, "the weights stayed stale")
        assert reader.problem is None


def test_a_topic_that_is_recreated_is_read_from_its_start(kafka: KafkaClient, topic: str, topic_prefix: str) -> None:
    write(kafka, topic, *(weights(revision, "a") for revision in range(6)), weights(9, feed="gone"))
    with WeightsReader(kafka.bootstrap, prefix=topic_prefix, stale_after=1.0) as reader:
        kafka.delete(topic)
        kafka.create_topics({topic: PARTITIONS})
        write(kafka, topic, weights(1, "b"))
        wait_until(lambda: list(reader.weights("econ").experts) == ["b"], 60.0, "the new topic was never read")
        assert reader.feeds() == ["econ"]


def test_a_later_schema_is_told_and_what_was_known_becomes_stale(
    kafka: KafkaClient, topic: str, topic_prefix: str
) -> None:
    write(kafka, topic, weights(3, "a"))
    with WeightsReader(kafka.bootstrap, prefix=topic_prefix, stale_after=1.0) as reader:
        write(kafka, topic, msgspec.structs.replace(weights(4, "a"), schema=2))
        wait_until(lambda: reader.weights("econ").stale, 60.0, "the weights never became stale")
        assert isinstance(reader.problem, UnknownSchemaError)


def refusal(bootstrap: str, **options: Any) -> StreamPeerClientError:
    """What a reader says that cannot read; it leaves no thread behind."""
    before = set(threading.enumerate())  # of other clients that this process has
    reader = WeightsReader(bootstrap, **options)
    reader.start()
    problem = wait_until(lambda: reader.problem, 60.0, "nothing was told")
    with pytest.raises(type(problem), match=re.escape(str(problem))):
        reader.wait(0.0)
    reader.close()
    ours = ("stream-peer", "kafka-io")
    wait_until(
        lambda: not [thread for thread in set(threading.enumerate()) - before if thread.name.startswith(ours)],
        30.0,
        "a thread was left",
    )
    return problem


def test_what_cannot_be_read_is_told_in_a_sentence(kafka: KafkaClient, topic_prefix: str) -> None:
    (port,) = free_ports(1)

    missing = refusal(kafka.bootstrap, prefix=topic_prefix)
    silent = refusal(f"127.0.0.1:{port}")

    assert isinstance(missing, TopicMissingError)
    assert f"no topic {topic_prefix}weights" in str(missing)
    assert isinstance(silent, BrokersUnavailableError)
    assert str(silent) == f"No broker answers. 127.0.0.1:{port}: connection refused."


def test_the_broker_of_the_demo_is_read_as_well(tmp_path: Path) -> None:
    with running(Rung.EMBEDDED, tmp_path / "broker") as broker:
        kafka = KafkaClient(broker)
        kafka.create_topics({topics.WEIGHTS: PARTITIONS})
        write(kafka, topics.WEIGHTS, weights(3, "a"))
        with WeightsReader(broker.bootstrap, broker="embedded") as reader:
            assert reader.weights("econ").revision == 3
            write(kafka, topics.WEIGHTS, weights(5, "a"))
            wait_until(lambda: reader.weights("econ").revision == 5, 30.0, "newer weights were never read")


def test_it_logs_in_over_tls_with_a_certificate_and_says_what_is_refused(tmp_path: Path, topic_prefix: str) -> None:
    with secured_kafka(tmp_path / "broker") as broker:
        kafka, topic = KafkaClient(RunningBroker(broker.plain, Rung.JARS)), topic_prefix + topics.WEIGHTS
        kafka.create_topics({topic: PARTITIONS})
        write(kafka, topic, weights(3, "a"))
        for name, content in broker.files.items():
            (tmp_path / Path(name).name).write_bytes(content)
        (tmp_path / "other.crt").write_bytes(trustme.CA().cert_pem.bytes())
        given: dict[str, Any] = {
            "protocol": "sasl_ssl",
            "username": USER,
            "password": PASSWORD,
            "ca_file": tmp_path / "ca.crt",
            "cert_file": tmp_path / "tls.crt",
            "key_file": tmp_path / "tls.key",
        }

        def refused(**changes: Any) -> StreamPeerClientError:
            security = Security(**{**given, **changes})
            return refusal(broker.bootstrap, prefix=topic_prefix, security=security)

        with WeightsReader(broker.bootstrap, prefix=topic_prefix, security=Security(**given)) as reader:
            assert reader.weights("econ").revision == 3
        stranger = refused(password="wrong")
        distrusted = refused(ca_file=tmp_path / "other.crt")
        uncertified = refused(cert_file=None, key_file=None)
        plain = refused(protocol="plaintext")

    assert isinstance(distrusted, BrokersUnavailableError)
    assert f"{broker.bootstrap}: its certificate is not trusted" in str(distrusted)
    for unanswered in (uncertified, plain):
        assert isinstance(unanswered, BrokersUnavailableError)
        assert ENDED in str(unanswered)
    # kafka-python drops the broker's answer where the end of the connection arrives in the same read.
    assert isinstance(stranger, NotAuthorisedError | BrokersUnavailableError)
    assert f"{broker.bootstrap} refuses the login" in str(stranger) or ENDED in str(stranger)
