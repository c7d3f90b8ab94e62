"""The common job on stock Faust, as its manual shows it.

Run with STOCK_FAUST_{ID,BOOTSTRAP,IN,OUT,DATA,PARTITIONS} in the environment.
"""

import os
from typing import Any

import faust


def build() -> faust.App:
    """The app; its topics are made by the benchmark."""
    environment = os.environ
    app = faust.App(
        environment["STOCK_FAUST_ID"],
        broker=f"kafka://{environment['STOCK_FAUST_BOOTSTRAP']}",
        datadir=environment["STOCK_FAUST_DATA"],
        topic_partitions=int(environment["STOCK_FAUST_PARTITIONS"]),
        value_serializer="json",
        web_enabled=False,
    )
    events = app.topic(environment["STOCK_FAUST_IN"])
    outputs = app.topic(environment["STOCK_FAUST_OUT"])
    counts = app.Table("counts", default=lambda: [0, 0.0])

    @app.agent(events)  # type: ignore[untyped-decorator]  # Faust has no types
    async def count(stream: faust.Stream[dict[str, Any]]) -> None:
        async for event in stream:
            question = event.get("question_id", "tick")
            number, total = counts[question]
            number, total = number + 1, total + (event.get("probability") or 0.0)
            counts[question] = [number, total]
            told = {"question_id": question, "count": number, "mean": total / number}
            await outputs.send(key=question, value=told)

    return app


if __name__ == "__main__":
    build().main()
