"""The common job on Quix Streams: its State API with RocksDB and a changelog.

``python quix.py BOOTSTRAP GROUP INPUT OUTPUT DIRECTORY COMMIT_SECONDS``
"""

import sys
from typing import Any

from quixstreams import Application, State


def count(event: dict[str, Any], state: State) -> dict[str, Any]:
    """Count an event in the state of its question; return the output."""
    question = event.get("question_id", "tick")
    number, total = state.get("sums", (0, 0.0))
    number, total = number + 1, total + (event.get("probability") or 0.0)
    state.set("sums", (number, total))
    return {"question_id": question, "count": number, "mean": total / number}


def main(bootstrap: str, group: str, events: str, outputs: str, directory: str, seconds: str) -> None:
    """Read for ever."""
    application = Application(
        bootstrap,
        consumer_group=group,
        auto_offset_reset="earliest",
        commit_interval=float(seconds),
        state_dir=directory,
        loglevel="WARNING",
    )
    frame = application.dataframe(application.topic(events, value_deserializer="json"))
    frame = frame.apply(count, stateful=True)
    frame.to_topic(application.topic(outputs, value_serializer="json"))
    application.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
