"""The common job on Bytewax, whose state is in memory and has no changelog.

``python bytewax_flow.py BOOTSTRAP INPUT OUTPUT``
"""

import sys
from typing import Any

import bytewax.operators as op
import orjson
from bytewax.connectors.kafka import KafkaSink, KafkaSinkMessage, KafkaSource, KafkaSourceMessage
from bytewax.dataflow import Dataflow
from bytewax.testing import run_main

Sums = tuple[int, float]


def keyed(message: KafkaSourceMessage[Any, Any]) -> tuple[str, dict[str, Any]]:
    """Decode an event; its question is its key."""
    event = orjson.loads(message.value)
    return event.get("question_id", "tick"), event


def count(sums: Sums | None, event: dict[str, Any]) -> tuple[Sums, Sums]:
    """Count an event in the state of its question."""
    number, total = sums or (0, 0.0)
    sums = number + 1, total + (event.get("probability") or 0.0)
    return sums, sums


def told(item: tuple[str, Sums]) -> KafkaSinkMessage[bytes, bytes]:
    """Encode an output."""
    question, (number, total) = item
    value = {"question_id": question, "count": number, "mean": total / number}
    return KafkaSinkMessage(question.encode(), orjson.dumps(value))


def main(bootstrap: str, events: str, outputs: str) -> None:
    """Read for ever."""
    flow = Dataflow("common_job")
    messages = op.input("events", flow, KafkaSource([bootstrap], [events]))
    counted = op.stateful_map("count", op.map("decode", messages, keyed), count)
    op.output("outputs", op.map("encode", counted, told), KafkaSink([bootstrap], outputs))
    run_main(flow)


if __name__ == "__main__":
    main(*sys.argv[1:])
