"""What the members of another group were told when they were assigned, asked of the brokers: for who is not in it."""

import asyncio
import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from aiokafka import errors as kafka
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment

from stream_peer.kafka.worker.watchdog import now

_KEPT_SECONDS = 2.0
_PATIENCE_SECONDS = 5.0


class GroupMembers:
    """Owners of a topic's partitions in a group, asked for at most every two seconds.

    Parameters
    ----------
    options : mapping
        Of an aiokafka client.
    group, topic : str
    clock : callable
        Seconds.
    """

    def __init__(self, options: Mapping[str, Any], group: str, topic: str, clock: Callable[[], float] = now) -> None:
        self._options = options
        self._group, self._topic = group, topic
        self._clock = clock
        self._asking = asyncio.Lock()
        self._known: dict[int, str] = {}
        self._until = 0.0

    async def owners(self) -> Mapping[int, str]:
        """By partition, the address that its owner advertised; empty while it is not known."""
        async with self._asking:
            if self._clock() >= self._until:
                try:
                    async with asyncio.timeout(_PATIENCE_SECONDS):
                        self._known = dict(owners_of(await self._members(), self._topic))
                except (kafka.KafkaError, OSError):  # TimeoutError is one
                    self._known = {}
                self._until = self._clock() + _KEPT_SECONDS
            return self._known

    async def _members(self) -> list[bytes]:
        """What each member was assigned; none while that is being settled."""
        admin = AIOKafkaAdminClient(**self._options)
        try:
            await admin.start()
            (answer,) = await admin.describe_consumer_groups([self._group])
        finally:
            await admin.close()
        _, _, state, _, _, members, *_ = answer.groups[0]
        return [member[4] for member in members] if state == "Stable" else []


def owners_of(assignments: Iterable[bytes], topic: str) -> Iterable[tuple[int, str]]:
    """Partitions of a topic, each with the address that its owner advertised.

    Parameters
    ----------
    assignments : iterable of bytes
        Of each member, as the brokers keep them: with what Faust's assignor adds.
    topic : str
    """
    for encoded in assignments:
        assignment = ConsumerProtocolMemberAssignment.decode(encoded)
        url = json.loads(zlib.decompress(assignment.user_data))["url"]
        for name, partitions in assignment.assignment:
            if name == topic:
                yield from ((partition, url) for partition in partitions)
