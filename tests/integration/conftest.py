"""What the end-to-end tests share: one served deployment, since a start costs more than most tests."""

from collections.abc import Iterator

import pytest

from tests.integration.support.client import KafkaClient
from tests.integration.support.service import Service, service


@pytest.fixture(scope="session")
def _deployment(kafka: KafkaClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with service(kafka, tmp_path_factory.mktemp("served"), feeds={"paper": {"preset": "paper"}}) as made:
        yield made.set_up()


@pytest.fixture
def served(_deployment: Service) -> Service:
    """A deployment with a worker that serves: historical feeds, four partitions; one feed has the preset ``paper``.

    Use questions of your own.
    """
    if _deployment.workers["w1"].has_ended:
        _deployment.start()
    _deployment.workers["w1"].wait_ready()
    return _deployment
