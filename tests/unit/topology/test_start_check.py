"""What is asked before a worker starts, and what it is told of who does not answer or refuses."""

import socket
from typing import Any

import pytest
from aiokafka import errors as kafka

from stream_peer.errors import BrokerUnavailableError, NotAuthorisedError, TopicsError
from stream_peer.settings import Settings
from stream_peer.topology import start_check
from stream_peer.topology.start_check import check


class Admin:
    """A client of a broker that makes no topic, and refuses a group."""

    def __init__(self, **_: Any) -> None:
        return

    async def start(self) -> None:
        return

    async def close(self) -> None:
        return

    async def describe_topics(self, names: list[str]) -> list[dict[str, Any]]:
        return [{"topic": name, "error_code": 3 if name.endswith("weights") else 0} for name in names]

    async def find_coordinator(self, group: str) -> int:
        if group.endswith("-feed"):
            raise kafka.GroupAuthorizationFailedError(group)
        return 1


def test_a_topic_that_an_embedded_broker_does_not_make_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_check, "AIOKafkaAdminClient", Admin)

    with pytest.raises(TopicsError, match=r"does not make acme-weights$"):
        check(Settings(broker="embedded", prefix="acme-"))


def test_a_group_that_is_refused_is_named_and_one_that_is_not_ours_is_not_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(start_check, "AIOKafkaAdminClient", Admin)

    check(Settings(stage="question"))
    with pytest.raises(NotAuthorisedError, match="may not read with the group acme-stream-peer-feed"):
        check(Settings(prefix="acme-"))


def test_a_broker_that_does_not_answer_is_waited_for_and_then_named() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        with pytest.raises(BrokerUnavailableError, match=f"{address} within 1 s"):
            check(Settings(bootstrap=address, broker_patience=1.0))
