"""A rolling upgrade to a release with another version of the method, with workers of both releases side by side."""

import json
from pathlib import Path

import pytest

from stream_peer.events import topics
from stream_peer.settings.feed.document import stated_method
from tests.integration.support.client import KafkaClient
from tests.integration.support.recreated import DAY, FEED, FEEDS, SHAPE, before, first_half, newer, second_half, told
from tests.integration.support.service import APPLY, Service, service

pytestmark = pytest.mark.real_kafka

EARLIER = "is_before_method_versions"
REFUSED = "are of a release that does not serve version 2: feeds stay at version 1"


def stated(deployment: Service) -> list[int | None]:
    """The version of the method in each document on control-events."""
    messages = deployment.read(topics.CONTROL_EVENTS)
    return [stated_method(json.loads(message.value or b"")["document"]) for message in messages]


@pytest.mark.case("C26")
@pytest.mark.induces("a rolling upgrade to another version of the method, and one worker taken back")
def test_the_method_is_raised_when_no_earlier_worker_runs_and_not_before(kafka: KafkaClient, tmp_path: Path) -> None:
    with service(kafka, tmp_path, shape=SHAPE, feeds=FEEDS) as deployment:
        deployment.run("topics", "apply")
        deployment.start("earlier", EARLIER).wait_ready()
        assert REFUSED in deployment.run(*APPLY)
        deployment.wait_configured()
        told(deployment, before(), 1.5 * DAY)

        present = deployment.start("present").wait_ready()
        again = deployment.run(*APPLY)
        explicit = deployment.command(*APPLY, STREAM_PEER_CONFIG=str(naming(deployment, tmp_path)))
        told(deployment, newer(first_half()), 3.5 * DAY)
        assert deployment.workers.pop("earlier").terminate() == 0, deployment.logs()
        raised = deployment.run(*APPLY, "--upgrade", "60")
        told(deployment, second_half(), 7 * DAY)

        assert REFUSED in again
        assert "Nothing to do" in again
        assert (explicit.returncode, "nothing was applied" in explicit.stderr) == (69, True)
        assert raised.startswith("Applied feed settings ")
        assert stated(deployment) == [None, 2]
        assert "rebuild_begins" in present.said()
        assert not deployment.dead_letters()
        assert "published revisions are what the log gives" in deployment.run("replay", "--from-log", FEED)

        taken_back = deployment.start("earlier", EARLIER)
        assert taken_back.process.wait(120.0) == 78
        assert "method_version" in taken_back.said()


def naming(deployment: Service, directory: Path) -> Path:
    """The deployment's file with the version of the method in it."""
    file = directory / "naming.yaml"
    file.write_text((directory / "settings.yaml").read_text() + "\n")
    content = file.read_text().replace("defaults:\n", "defaults:\n  method_version: 2\n")
    file.write_text(content)
    return file
