"""The ids that brokers give to clusters and topics: a topic that was deleted and made anew has another one.

aiokafka stops at version 5 of Kafka's request for metadata; ids come with version 10 (Kafka 2.8).
"""

import uuid
from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import Any, NamedTuple

from aiokafka import errors as kafka
from aiokafka.protocol.abstract import AbstractType
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Boolean, CompactArray, CompactString, Int16, Int32, Schema, TaggedFields

_METADATA = 3
_VERSION = 10
_RETRIES = 2
_UUID_BYTES = 16
_NO_ID = uuid.UUID(int=0)


class _Uuid(AbstractType):
    @classmethod
    def encode(cls, value: uuid.UUID) -> bytes:
        return value.bytes

    @classmethod
    def decode(cls, data: BytesIO) -> uuid.UUID:
        return uuid.UUID(bytes=data.read(_UUID_BYTES))


_TAGS = ("tags", TaggedFields)


class _Answer(Response):
    API_KEY = _METADATA
    API_VERSION = _VERSION
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "brokers",
            CompactArray(
                ("node_id", Int32), ("host", CompactString()), ("port", Int32), ("rack", CompactString()), _TAGS
            ),
        ),
        ("cluster_id", CompactString()),
        ("controller_id", Int32),
        (
            "topics",
            CompactArray(
                ("error_code", Int16),
                ("topic", CompactString()),
                ("topic_id", _Uuid),
                ("is_internal", Boolean),
                (
                    "partitions",
                    CompactArray(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", CompactArray(Int32)),
                        ("isr", CompactArray(Int32)),
                        ("offline_replicas", CompactArray(Int32)),
                        _TAGS,
                    ),
                ),
                ("authorized_operations", Int32),
                _TAGS,
            ),
        ),
        ("cluster_authorized_operations", Int32),
        _TAGS,
    )


class _Question(RequestStruct):
    FLEXIBLE_VERSION = True
    API_KEY = _METADATA
    API_VERSION = _VERSION
    RESPONSE_TYPE = _Answer
    SCHEMA = Schema(
        ("topics", CompactArray(("topic_id", _Uuid), ("topic", CompactString()), _TAGS)),
        ("allow_auto_topic_creation", Boolean),
        ("include_cluster_authorized_operations", Boolean),
        ("include_topic_authorized_operations", Boolean),
        _TAGS,
    )


class _AskForTopics(Request[_Question]):
    API_KEY = _METADATA

    def __init__(self, names: Iterable[str]) -> None:
        self._names = list(names)

    def build(self, request_struct_class: Any) -> Any:
        topics: list[Any] = [(_NO_ID, name, {}) for name in self._names]
        return request_struct_class(topics, False, False, False, {})  # noqa: FBT003 - the order of the wire


class Ids(NamedTuple):
    """The id of the cluster, and those of topics by name; empty, and without topics that are not there."""

    cluster: str
    topics: Mapping[str, str]


async def topic_ids(client: Any, names: Iterable[str]) -> Mapping[str, str]:
    """The ids of topics by name; topics that are not there and brokers that know no ids are left out.

    Raises
    ------
    KafkaError
        If no broker answers.
    """
    return (await cluster_ids(client, names)).topics


async def cluster_ids(client: Any, names: Iterable[str]) -> Ids:
    """The ids of the cluster and of topics; empty from a broker that knows no ids of topics.

    Parameters
    ----------
    client : AIOKafkaClient
        Connected.

    Raises
    ------
    KafkaError
        If no broker answers.
    """
    for _ in range(_RETRIES):
        try:
            return await _ask(client, names)
        except kafka.KafkaError:
            await client.force_metadata_update()
    return await _ask(client, names)


async def _ask(client: Any, names: Iterable[str]) -> Ids:
    try:
        answer = await client.send(client.get_random_node(), _AskForTopics(names))
    except (NotImplementedError, kafka.IncompatibleBrokerVersion):  # a broker before 2.8
        return Ids("", {})
    found = ((topic[1], topic[2], topic[0]) for topic in answer.topics)
    topics = {name: str(topic_id) for name, topic_id, fault in found if not fault and topic_id != _NO_ID}
    return Ids(answer.cluster_id or "", topics)
