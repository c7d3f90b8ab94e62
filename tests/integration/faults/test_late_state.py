"""What a former owner sent to a changelog, and what comes late: the owner goes on, and recovery finds all state."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from stream_peer.log.changelog import ChangelogReader, ChangelogRow, Recovered, StateRecord, token_row
from tests.integration.support.client import KafkaClient, Message
from tests.integration.support.events import forecast, question
from tests.integration.support.recount import Recount
from tests.integration.support.service import APPLY, Service, Shape, service
from tests.integration.support.waiting import wait_until

pytestmark = [pytest.mark.real_kafka, pytest.mark.faults]

TOKEN = token_row(0, "former")
ROW = ChangelogRow(b"0/q/q1", msgspec.msgpack.encode(StateRecord("former", 0, b"a former state")))


def changelog(made: Service) -> list[Message]:
    return made.kafka.read_all(made.settings.changelog("question"))


def compacted(rows: list[Message]) -> Recovered:
    """What recovery finds, when of each key the last record is left."""
    last = {row.key: row.offset for row in rows}
    reader = ChangelogReader()
    for row in rows:
        if last[row.key] == row.offset:
            reader.add(row.offset, row.key or b"", row.value)
    return reader.recovered()


@pytest.mark.induces("a former owner's records and fencing token come late to a changelog")
@pytest.mark.parametrize("late", [ROW, TOKEN], ids=["record", "token"])
def test_state_that_comes_late_is_found_by_an_idle_owner_who_goes_on(
    kafka: KafkaClient, tmp_path: Path, late: ChangelogRow, found: Callable[[str], None]
) -> None:
    with service(kafka, tmp_path, shape=Shape(1, 1)) as made:
        made.run("topics", "apply")
        worker = made.start("w1", "looks_always")
        made.run(*APPLY)
        made.wait_configured()
        made.send([question("q1", "econ", 48.0), forecast("q1", "ann", 0.7, 24.0)])
        made.settle()
        kafka.produce_many(made.settings.changelog("question"), [Message(late.key, late.value, 0)])
        wait_until(lambda: "late_state" in made.logs(), 30, made.logs)
        made.send([forecast("q2", "bob", 0.3, 24.0)])
        made.settle()

        assert not worker.has_ended
        assert {b"q/q1", b"q/q2"} <= compacted(changelog(made)).entries.keys()
        Recount(made).check()
        assert worker.terminate() == 0
        found("the state is whole, as is what compaction leaves of it")
