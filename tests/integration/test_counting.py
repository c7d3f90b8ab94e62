"""A worker with counting stages, undisturbed: on the broker of this run and on the embedded one."""

from pathlib import Path

import pytest

from stream_peer.tools.demo.brokers import EmbeddedBroker
from tests.integration.support.brokers import Rung, RunningBroker
from tests.integration.support.client import KafkaClient
from tests.integration.support.counting import counting
from tests.integration.support.waiting import wait_until

pytestmark = pytest.mark.slow


@pytest.mark.kafka
def test_both_stages_on_an_embedded_broker_fold_everything_once(tmp_path: Path) -> None:
    with EmbeddedBroker() as broker:
        client = KafkaClient(RunningBroker(broker.bootstrap, Rung.EMBEDDED))
        with counting(client, "embedded-", tmp_path, stage="all", broker="embedded") as run:
            run.start().wait_owned()
            run.feed(400, 1_000)
            wait_until(lambda: len(client.read_all("embedded-weights")) >= 1_000, 60, "outputs never came")
            run.drain()

            assert run.stop() == [0]
            assert all(verdict.exact for verdict in run.verdicts()), run.verdicts()


def test_a_worker_that_starts_at_the_end_skips_what_was_there(
    kafka: KafkaClient, topic_prefix: str, tmp_path: Path
) -> None:
    with counting(kafka, topic_prefix, tmp_path, start="latest", compression="zstd") as run:
        forecasts = run.settings.topic("forecast-events")
        kafka.produce(forecasts, [(b"old", b'{"x": 1}')] * 50)
        run.start().wait_owned()
        kafka.produce(forecasts, [(b"new", b'{"x": 2}')] * 50)

        feed_log = run.settings.topic("feed-log")
        wait_until(lambda: len(kafka.read_all(feed_log)) >= 50, 30, "outputs never came")

        assert run.stop() == [0]
        assert {message.key for message in kafka.read_all(feed_log)} == {b"new"}
