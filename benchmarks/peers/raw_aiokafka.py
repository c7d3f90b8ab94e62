"""aiokafka's ``getmany`` and nothing else: the bound of every Python consumer that is built on it.

``python raw_aiokafka.py BOOTSTRAP TOPIC GROUP``: reads to the end, commits, and stays until it is told to stop.
"""

import asyncio
import sys

from aiokafka import AIOKafkaConsumer


async def main(bootstrap: str, topic: str, group: str) -> None:
    """Read and commit for ever."""
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        auto_commit_interval_ms=200,
        fetch_max_bytes=52_428_800,
    )
    async with consumer:
        while True:
            await consumer.getmany(timeout_ms=200)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
