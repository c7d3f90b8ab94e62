"""Faust's assignor, and members that come back under their name at another address."""

import json
import zlib
from typing import Any

from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from faust.assignor.partition_assignor import PartitionAssignor

_BY_ADDRESS = ("changelog_distribution", "external_topic_distribution")


class Assignor(PartitionAssignor):
    """Takes up what was assigned to a former life of this member.

    A member with an ``instance`` that restarts within its session is given what it had before, without a rebalance,
    and with the address that it advertised then. Faust asserts that this is today's, and leaves a client that does
    nothing any more.
    """

    def on_assignment(self, assignment: ConsumerProtocolMemberAssignment) -> None:
        """Take it up under the address of this life."""
        told = readdressed(assignment.user_data, str(self._url))
        super().on_assignment(ConsumerProtocolMemberAssignment(assignment.version, assignment.assignment, told))


def readdressed(user_data: bytes, url: str) -> bytes:
    """What the group's leader told a member, with the member at ``url``.

    Parameters
    ----------
    user_data : bytes
        Compressed JSON, as Faust writes it.
    url : str
    """
    told: dict[str, Any] = json.loads(zlib.decompress(user_data))
    if told["url"] == url:
        return user_data
    for name in _BY_ADDRESS:
        told[name] = {url if address == told["url"] else address: owned for address, owned in told[name].items()}
    return zlib.compress(json.dumps({**told, "url": url}).encode())
