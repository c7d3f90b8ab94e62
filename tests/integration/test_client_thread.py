"""What the client of an app's consumer asks a real broker, whose answers come in order on each connection."""

import asyncio

from aiokafka import AIOKafkaConsumer, TopicPartition

from stream_peer.kafka.worker.faust_bridge import cluster_ids, fetch_apart
from tests.integration.support.client import KafkaClient

FETCH_WAITS = 20_000  # milliseconds, if no record comes


async def test_a_client_is_told_where_a_log_ends_and_which_it_is_while_its_fetch_still_waits_for_records(
    kafka: KafkaClient, topic_prefix: str
) -> None:
    topic = f"{topic_prefix}quiet"
    kafka.create_topics({topic: 1})
    place = TopicPartition(topic, 0)
    async with AIOKafkaConsumer(bootstrap_servers=kafka.bootstrap, fetch_max_wait_ms=FETCH_WAITS) as client:
        fetch_apart(client._client)
        client.assign([place])
        client.seek(place, 0)
        while not client._fetcher._pending_tasks:  # noqa: ASYNC110 - aiokafka has no event for it
            await asyncio.sleep(0)
        (fetch,) = client._fetcher._pending_tasks

        assert await client.end_offsets([place]) == {place: 0}
        assert (await cluster_ids(client._client, [topic])).topics[topic]

        assert not fetch.done()
