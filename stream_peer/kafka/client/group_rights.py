"""What our user may do with consumer groups. Without the right to its group, a consumer waits for ever in silence."""

import asyncio
import time
from collections.abc import Iterable
from typing import Any

from aiokafka import errors as kafka
from aiokafka.client import AIOKafkaClient, ConnectionGroup, CoordinationType
from aiokafka.protocol.admin import DescribeGroupsRequest_v3, DescribeGroupsResponse_v3
from aiokafka.protocol.api import Request

from stream_peer.errors import BrokerUnavailableError
from stream_peer.kafka.client.security import aiokafka_options
from stream_peer.kafka.client.topic_plan import Granted
from stream_peer.settings.process import Settings

_PAUSE_SECONDS = 0.5
_BITS = {"Read": 3, "Describe": 8}
_UNKNOWN = -(2**31)  # no authorized operations were asked for, or can be told


class _Question(DescribeGroupsRequest_v3):
    RESPONSE_TYPE = DescribeGroupsResponse_v3  # aiokafka reads the answer as one of version 2, without the operations


class _DescribeGroup(Request[_Question]):
    API_KEY = _Question.API_KEY

    def __init__(self, group: str) -> None:
        self._group = group

    def build(self, request_struct_class: Any) -> Any:
        return request_struct_class([self._group], True)  # noqa: FBT003 - the order of the wire


def rights_on_groups(settings: Settings, groups: Iterable[str]) -> Granted:
    """The operations that are granted on each group; a group of which the brokers do not say it is left out.

    Parameters
    ----------
    settings : Settings
        Names the brokers, and how long a coordinator is waited for: a young cluster has none yet.
    groups : iterable of str
        They need not exist.

    Raises
    ------
    BrokerUnavailableError
        If no coordinator answers within ``broker_patience``.
    """
    return asyncio.run(_ask(settings, list(groups)))


async def _ask(settings: Settings, groups: list[str]) -> Granted:
    deadline = time.monotonic() + settings.broker_patience
    options = {"bootstrap_servers": settings.bootstrap, **aiokafka_options(settings.security)}
    while True:
        client = AIOKafkaClient(**options)
        try:
            await client.bootstrap()
            held = {group: await _held(client, group) for group in groups}
        except (kafka.KafkaError, OSError) as error:
            if time.monotonic() + _PAUSE_SECONDS >= deadline:
                msg = f"no coordinator of {', '.join(groups)} answered within {settings.broker_patience:g} s: {error}"
                raise BrokerUnavailableError(msg) from None
        else:
            return {("group", group): operations for group, operations in held.items() if operations is not None}
        finally:
            await client.close()
        await asyncio.sleep(_PAUSE_SECONDS)


async def _held(client: Any, group: str) -> set[str] | None:
    try:
        coordinator = await client.coordinator_lookup(CoordinationType.GROUP, group)
        if not await client.ready(coordinator, group=ConnectionGroup.COORDINATION):
            raise kafka.NodeNotReadyError(group)
        answer = await client.send(coordinator, _DescribeGroup(group), group=ConnectionGroup.COORDINATION)
    except kafka.GroupAuthorizationFailedError:
        return set()
    except (NotImplementedError, kafka.IncompatibleBrokerVersion):  # a broker before 2.3
        return None
    ((code, *_, bits),) = answer.groups
    if code == kafka.GroupAuthorizationFailedError.errno:
        return set()
    if code:
        raise kafka.for_code(code)(group)
    return None if bits == _UNKNOWN else {name for name, bit in _BITS.items() if bits >> bit & 1}
