"""Two workers with one ``instance``: noticing that another process took the place of this one in its group."""

import contextlib
from collections.abc import Callable
from typing import Any

from aiokafka import errors as kafka
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Int16, Int32, Schema, String

from stream_peer.errors import SharedInstanceError

_HEARTBEAT = 12
_FENCED_INSTANCE_ID = 82


class _Pulse(Response):
    API_KEY = _HEARTBEAT
    API_VERSION = 3
    SCHEMA = Schema(("throttle_time_ms", Int32), ("error_code", Int16))


class _NamedHeartbeat(RequestStruct):
    """A heartbeat that names the instance. Those of aiokafka do not: a broker answers that it knows no such member."""

    API_KEY = _HEARTBEAT
    API_VERSION = 3
    RESPONSE_TYPE = _Pulse
    SCHEMA = Schema(
        ("group_id", String()), ("generation_id", Int32), ("member_id", String()), ("group_instance_id", String())
    )


class _SendNamedHeartbeat(Request[_NamedHeartbeat]):
    API_KEY = _HEARTBEAT

    def __init__(self, coordinator: Any) -> None:
        self._fields = coordinator.group_id, coordinator.generation, coordinator.member_id
        self._instance = coordinator._group_instance_id  # noqa: SLF001

    def build(self, request_struct_class: Any) -> Any:
        return request_struct_class(*self._fields, self._instance)


def notice_replacement(coordinator: Any, fail: Callable[[BaseException], None]) -> None:
    """Tell apart, where a broker does not know a member any more: its session is over, or another took its instance."""
    send = coordinator._send_req  # noqa: SLF001

    async def sent(request: Any) -> Any:
        answer = await send(request)
        code = getattr(answer, "error_code", 0)
        if code == kafka.UnknownMemberIdError.errno:
            with contextlib.suppress(kafka.KafkaError, NotImplementedError):
                code = (await send(_SendNamedHeartbeat(coordinator))).error_code
        if code == _FENCED_INSTANCE_ID:
            fail(_shared(coordinator))
        return answer

    coordinator._send_req = sent  # noqa: SLF001


def _shared(coordinator: Any) -> SharedInstanceError:
    group, member = coordinator.group_id, coordinator._group_instance_id  # noqa: SLF001
    instance = member.removesuffix(f"-{group}")
    return SharedInstanceError(
        f"another worker has joined the group {group} with the same instance, {instance!r}, and brokers keep the newer "
        "one; give each worker an `instance` of its own (--instance, STREAM_PEER_INSTANCE), or none"
    )
