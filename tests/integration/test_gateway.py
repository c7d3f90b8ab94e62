"""Events posted by HTTP reach the worker, whatever happens to the gateway."""

import json
from collections.abc import Iterator

import pytest

from stream_peer.events import topics
from stream_peer.events.incoming import decode
from tests.integration.support.client import KafkaClient
from tests.integration.support.events import Event, at, forecast, milliseconds, question
from tests.integration.support.gateway import Platform, post_once, producer_files, start_gateway
from tests.integration.support.service import Service, service

pytestmark = pytest.mark.real_kafka

DAY = 24
QUESTIONS, EXPERTS = 100, 100


@pytest.fixture(scope="module")
def guarded(kafka: KafkaClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A deployment whose worker accepts signed events only."""
    directory = tmp_path_factory.mktemp("posted")
    with service(kafka, directory, producers_file=producer_files(directory)) as made:
        yield made.set_up()


def said(number: int) -> float:
    """The probability of the forecast of a number: each expert's are all different."""
    return round((number % 97 + 1) / 100, 2)


def test_a_gateway_killed_amid_posts_loses_and_doubles_nothing(guarded: Service) -> None:
    feed = "posted"
    gateways = [start_gateway(guarded).wait_ready()]
    platform = Platform(lambda: gateways[-1])

    def kill(acknowledged: int) -> None:
        if acknowledged == QUESTIONS * EXPERTS // 2 and len(gateways) == 1:
            gateways[0].kill()
            gateways.append(start_gateway(guarded))

    names = [f"posted-{number}" for number in range(QUESTIONS)]
    platform.post([question(name, feed, DAY, at=at(0)) for name in names], "asked")
    platform.acknowledged = 0
    numbered = [(name, f"e{n}", number * EXPERTS + n) for number, name in enumerate(names) for n in range(EXPERTS)]
    platform.post([forecast(name, expert, said(n), 1) for name, expert, n in numbered], "forecast", kill)
    assert gateways[-1].terminate() == 0, gateways[-1].said()
    guarded.settle()
    guarded.tick(milliseconds(2 * DAY))
    guarded.settle()

    assert len(gateways) == 2
    assert platform.repeated
    told = guarded.last(topics.PEER_LOSSES, feed)
    heard = [(name, each["id"], each["probability"]) for name in names for each in told[name]["experts"]]
    assert sorted(heard) == sorted((name, expert, said(n)) for name, expert, n in numbered)
    assert not [
        letter for letter in guarded.dead_letters().values() if (letter.message.key or b"").startswith(b"posted-")
    ]
    assert len(event_ids(guarded)) == QUESTIONS + len(numbered)


def event_ids(run: Service) -> dict[str, bytes]:
    """The ids of what was posted, each with its one content."""
    found: dict[str, bytes] = {}
    for message in run.read(topics.FORECAST_EVENTS):
        event_id = getattr(decode(message.value), "event_id", None)
        if event_id is not None:
            assert found.setdefault(event_id, message.value or b"") == message.value
    return found


def test_lines_are_written_in_their_order(guarded: Service) -> None:
    gateway = start_gateway(guarded).wait_ready()
    feed = "lined"
    lines: list[Event] = [question("lined", feed, DAY, at=at(0))]
    lines += [forecast("lined", f"e{n}", 0.3, 1) for n in range(5)]
    lines += [forecast("lined", f"e{n}", 0.8, 1) for n in range(5)]

    body = "\n".join(map(json.dumps, lines))
    status, _, told = post_once(gateway, body, "lines", "application/x-ndjson")
    assert gateway.terminate() == 0
    guarded.settle()
    guarded.tick(milliseconds(2 * DAY))
    guarded.settle()

    assert (status, told["accepted"]) == (202, len(lines))
    losses = guarded.last(topics.PEER_LOSSES, feed)["lined"]
    assert {each["probability"] for each in losses["experts"]} == {0.8}
