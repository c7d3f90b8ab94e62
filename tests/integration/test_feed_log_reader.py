"""Everything published can be derived again from the feed-log, and what could not is found."""

from collections.abc import Iterator
from typing import Any

import pytest

from stream_peer.events import topics
from stream_peer.events.feed_log import ExpertChanged, OutcomeRevealed, Round, Source, encode_feed_log
from stream_peer.events.partitioning import partition_of
from stream_peer.feeds.stage import FeedStage
from stream_peer.kafka.client.admin import KafkaAdmin
from stream_peer.log.driver import fold_and_publish, pump
from stream_peer.log.stage import Effects, LogRecord, Output
from stream_peer.settings.process import Partitions, Settings
from stream_peer.tools.replay.feed_log_reader import replay_from_log
from stream_peer.tools.replay.shadows import books_of, read_shadows
from tests.integration.support.client import KafkaClient, Message

pytestmark = pytest.mark.real_kafka

START = 1_772_366_400_000
FEED = "econ"
PARTITION = partition_of(FEED, 2)


def log_of(questions: int, feed: str = FEED) -> Iterator[bytes]:
    """Rounds of five experts, every third question resolved."""
    for number in range(questions):
        source = Source(topics.FORECAST_EVENTS, 0, 0, number, 0)
        probabilities = [((7 * number + 13 * expert) % 97 + 1) / 100 for expert in range(5)]
        yield encode_feed_log(
            Round(
                src=source,
                feed=feed,
                question_id=f"q{number}",
                boundary=START + number,
                final=True,
                experts=[f"e{expert}" for expert in range(5)],
                probabilities=probabilities,
            )
        )
        if number % 3 == 0:
            revealed = Source(topics.FORECAST_EVENTS, 0, 0, number, 1)
            yield encode_feed_log(
                OutcomeRevealed(src=revealed, feed=feed, question_id=f"q{number}", outcome=1 if number % 2 else 0)
            )


@pytest.fixture
def settings(kafka_bootstrap: str, topic_prefix: str) -> Settings:
    counts = Partitions(forecast_events=2, control_events=2, feed_log=2, dead_letters=1)
    made = Settings(bootstrap=kafka_bootstrap, prefix=topic_prefix, partitions=counts)
    KafkaAdmin(made).apply()
    return made


def serve(kafka: KafkaClient, settings: Settings, values: list[bytes], every: int) -> list[Output]:
    """Write the log and what a worker publishes of it that publishes weights after every few records."""
    records = [Message(FEED.encode(), value, PARTITION, START + n) for n, value in enumerate(values)]
    kafka.produce(settings.topic(topics.FEED_LOG), records)
    stage, effects = FeedStage(topic=settings.topic(topics.FEED_LOG), partition=PARTITION, secret=b"seed"), Effects()
    log = [LogRecord(n, START + n, message.key, message.value) for n, message in enumerate(records)]
    for offset, record in enumerate(log):
        pump(fold_and_publish(stage, record, effects), lambda up_to: log[: up_to + 1])
        if offset % every == 0:
            stage.publish(effects)
    stage.publish(effects)
    published = [output for output in effects.outputs if output.topic != topics.DEAD_LETTERS]
    for logical in {output.topic for output in published}:
        of_topic = [Message(o.key, o.value, timestamp=o.timestamp) for o in published if o.topic == logical]
        kafka.produce(settings.topic(logical), of_topic)
    return published


def test_every_published_revision_follows_from_the_log(kafka: KafkaClient, settings: Settings) -> None:
    published = serve(kafka, settings, list(log_of(30)), every=7)
    written: list[Output] = []
    seen: list[tuple[int, int]] = []

    found = replay_from_log(
        settings, FEED, secret=b"seed", write=written.append, progress=lambda done, of: seen.append((done, of))
    )

    assert found.is_equal, found
    assert found.equal == len({(o.topic, o.key, o.value) for o in published})
    assert (found.records, seen[-1], found.log_start) == (40, (40, 40), 0)
    assert {(o.topic, o.key, o.value) for o in published} <= {(o.topic, o.key, o.value) for o in written}


def with_controls(values: list[bytes]) -> list[bytes]:
    """The log with a team and an exclusion after ten records, and an expert forgotten after another ten."""

    def control(number: int, **fields: Any) -> bytes:
        source = Source(topics.CONTROL_EVENTS, 0, 0, number, 0)
        return encode_feed_log(ExpertChanged(src=source, feed=FEED, **fields))

    early = [control(0, expert_id="e1", team="pair"), control(1, expert_id="e2", team="pair")]
    early.append(control(2, expert_id="e3", excluded=True))
    return [*values[:10], *early, *values[10:20], control(3, expert_id="e4", forget=True), *values[20:]]


def test_a_log_in_which_an_expert_is_forgotten_is_folded_again_as_the_service_did(
    kafka: KafkaClient, settings: Settings
) -> None:
    published = serve(kafka, settings, with_controls(list(log_of(24))), every=5)

    found = replay_from_log(settings, FEED, secret=b"seed")

    assert found.is_equal, found
    assert found.equal == len({(o.topic, o.key, o.value) for o in published if o.value is not None})
    assert b'"e4"' not in b"".join(o.value or b"" for o in published[-3:])


def test_shadows_are_folded_from_the_same_log_and_compared(kafka: KafkaClient, settings: Settings) -> None:
    serve(kafka, settings, with_controls(list(log_of(24))), every=5)
    shadows = books_of(read_shadows(["same:stretch=true", "paper:preset=paper,seed=other"]), FEED)

    found = replay_from_log(settings, FEED, secret=b"seed", shadows=shadows)

    assert found.is_equal, found
    same, paper = found.shadows[FEED]
    assert (same.name, same.questions, same.regret) == ("same", 8.0, 0.0)
    assert (paper.name, paper.questions, paper.live_brier) == ("paper", 8.0, same.live_brier)
    assert paper.brier != same.brier


def test_a_record_that_the_log_does_not_give_is_named(kafka: KafkaClient, settings: Settings) -> None:
    published = serve(kafka, settings, list(log_of(6)), every=2)
    forged = next(output for output in published if output.topic == topics.MIXED_FORECASTS)
    value = forged.value or b""
    kafka.produce(settings.topic(forged.topic), [(b"q99", value), (forged.key, value.replace(b'"mean":', b'"mean": '))])

    found = replay_from_log(settings, FEED, secret=b"seed")

    assert not found.is_equal
    assert [place[:2] for place in found.different] == [(topics.MIXED_FORECASTS, (forged.key or b"").decode())]
    assert [place[:2] for place in found.never] == [(topics.MIXED_FORECASTS, "q99")]


def test_other_feeds_are_left_out(kafka: KafkaClient, settings: Settings) -> None:
    serve(kafka, settings, list(log_of(3)), every=1)

    found = replay_from_log(settings, "sport", secret=b"seed")

    assert found.equal == 0
    assert found.is_equal
