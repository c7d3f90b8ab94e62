"""CloudEvents attributes of outputs as Kafka headers: the binary content mode of its Kafka protocol binding."""

import msgspec

from stream_peer.events.outputs import SCHEMA
from stream_peer.events.times import Milliseconds, to_iso


class _Revised(msgspec.Struct):
    revision: int


_decode = msgspec.json.Decoder(_Revised).decode


def cloudevent_headers(
    topic: str, message: str, key: bytes, value: bytes, at: Milliseconds
) -> tuple[tuple[str, bytes], ...]:
    """Headers that follow from the record, so that equal revisions have equal ones.

    Parameters
    ----------
    topic : str
        Physical name.
    message : str
        Logical name of the topic, which is that of the message's schema.

    Examples
    --------
    >>> found = cloudevent_headers("acme-weights", "weights", b"econ", b'{"revision":7}', 1_772_366_400_000)
    >>> for name, text in found:
    ...     print(name, text.decode())
    ce_specversion 1.0
    ce_id econ/7
    ce_source urn:stream-peer:topic:acme-weights
    ce_type stream-peer.weights.v1
    ce_time 2026-03-01T12:00:00Z
    ce_dataschema urn:stream-peer:weights:1
    content-type application/json
    """
    texts = {
        "ce_specversion": "1.0",
        "ce_id": f"{key.decode()}/{_decode(value).revision}",
        "ce_source": f"urn:stream-peer:topic:{topic}",
        "ce_type": f"stream-peer.{message}.v{SCHEMA}",
        "ce_time": to_iso(at),
        "ce_dataschema": f"urn:stream-peer:{message}:{SCHEMA}",
        "content-type": "application/json",  # the binding's name for datacontenttype
    }
    return tuple((name, text.encode()) for name, text in texts.items())
