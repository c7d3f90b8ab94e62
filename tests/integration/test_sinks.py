"""The recipe for PostgreSQL: Kafka Connect puts what a worker publishes into tables, row by row."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from stream_peer.events import topics
from stream_peer.events.outputs import encode_output
from tests.feed_outputs import part, weights
from tests.integration.support.connect import Postgres, connect, missing_package, postgres
from tests.integration.support.events import crowd, milliseconds, question
from tests.integration.support.service import Service
from tests.integration.support.waiting import wait_until

pytestmark = pytest.mark.real_kafka

DAY = 24
START = 60 * DAY
FEED, GONE = "in-a-table", "gone-from-a-table"
EXPERTS = 'select * from expert_weights order by expert collate "C"'
FORECASTS = 'select * from mixed_forecasts order by question collate "C"'
OF_A_FORECAST = ("question", "feed", "revision", "trust", "state", "final", "mix", "stretched", "mean", "outcome")


def of_experts(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows that a record of ``weights`` is in the view."""
    head = {name: record[name] for name in ("feed", "revision", "status")} | {
        "at": datetime.fromisoformat(record["at"])
    }
    columns = ("mix", "select", "questions", "coverage", "peer_loss", "outcome_loss")
    return [
        {**head, "expert": expert["id"], **{name: expert[name] for name in columns}} for expert in record["experts"]
    ]


def rows(database: Postgres, query: str, feed: str) -> list[dict[str, Any]]:
    """Rows of a query that are of a feed."""
    return [{**row, "at": datetime.fromisoformat(row["at"])} for row in database.rows(query) if row["feed"] == feed]


def test_tables_have_the_weights_and_forecasts_that_a_worker_publishes(
    served: Service, repository: Path, tmp_path: Path
) -> None:
    missing = missing_package()
    if missing:
        pytest.skip(f"Kafka Connect or PostgreSQL cannot run here: install {missing}")
    recipes = repository / "examples" / "sinks"
    connector = json.loads((recipes / "postgresql.json").read_text())
    read = ",".join([served.topic(topics.WEIGHTS), served.topic(topics.MIXED_FORECASTS)])
    with postgres() as database:
        connector["config"] |= {"connection.url": database.url, "topics": read}
        database.run("-f", str(recipes / "postgresql.sql"))
        with connect(recipes, connector, tmp_path, served.kafka.bootstrap, POSTGRES_PASSWORD=database.password) as said:
            for name, feed in {f"{feed}-q{number}": feed for feed in (FEED, GONE) for number in range(3)}.items():
                served.send([question(name, feed, START + DAY), *crowd(name, 4, START)])
            served.settle()
            served.tick(milliseconds(START + 2 * DAY))
            served.settle()
            newest, revisions = served.weights(FEED), "select feed, revision from expert_weights"

            def are_there(*feeds: str) -> bool:
                found = {row["feed"]: row["revision"] for row in database.rows(revisions)}
                return found.keys() & {FEED, GONE} == {*feeds} and found[FEED] == newest["revision"]

            wait_until(lambda: are_there(FEED, GONE), 120.0, said)
            served.run("delete", GONE, "--yes")
            served.settle()
            wait_until(lambda: are_there(FEED), 120.0, said)

        assert newest["questions"] == 3
        assert rows(database, EXPERTS, FEED) == of_experts(newest)
        forecasts = served.last(topics.MIXED_FORECASTS, FEED)
        found = rows(database, FORECASTS, FEED)
        assert [{name: row[name] for name in OF_A_FORECAST} for row in found] == [
            {name: forecasts[key][name] for name in OF_A_FORECAST} for key in sorted(forecasts)
        ]
        assert not rows(database, FORECASTS, GONE)

        whole = weights(9)
        records = {"econ": encode_output(weights(8, "a", "b")), "econ/0": part(whole, 0, 2, "a")}
        for key, value in (records | {"econ/1": part(whole, 1, 2, "c")}).items():
            put = ["-v", f"key={key}", "-v", f"record={value.decode()}"]
            database.run(*put, given="insert into weights values (:'key', :'record')")
        assert [row["expert"] for row in rows(database, EXPERTS, "econ")] == ["a", "c"]
