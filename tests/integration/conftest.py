"""What the end-to-end tests share: deployments that serve until the last of these tests, since starts cost most."""

from collections.abc import Iterator
from itertools import count

import pytest

from tests.integration.support.client import KafkaClient
from tests.integration.support.lives import LIVES
from tests.integration.support.service import Service, service


def _with_worker(deployment: Service, **environment: str) -> Service:
    """The deployment once its worker is ready, which is started again if it has ended."""
    if deployment.workers["w1"].has_ended:
        deployment.start(**environment)
    deployment.workers["w1"].wait_ready()
    return deployment


@pytest.fixture(scope="package")
def _deployment(kafka: KafkaClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    directory, paper = tmp_path_factory.mktemp("served"), {"preset": "paper"}
    with service(kafka, directory, feeds={"paper": paper}, cloudevents=True) as made:
        yield made.set_up()


@pytest.fixture
def served(_deployment: Service) -> Service:
    """A deployment with a worker that serves: historical feeds, four partitions; one feed has the preset ``paper``.
    Its outputs have CloudEvents headers.

    Use questions of your own.
    """
    return _with_worker(_deployment)


_LONG_LIVES = {
    "c01resolution": {"round_every": "2d"},
    "c01close": {"round_every": "2d"},
    "c07": {"round_every": "1d"},
    "c22paper": {"preset": "paper"},
    "c09": {"round_every": "1d"},
    "c14": {"round_every": "1d"},
}
"""Settings of feeds whose names begin so."""


@pytest.fixture(scope="package")
def _long_lived(kafka: KafkaClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    feeds = {f"{case}{which}": own for case, own in _LONG_LIVES.items() for which in ("", "other")}
    defaults = {"history": True, "vote_rule": "half", "guard": "off"}
    directory = tmp_path_factory.mktemp("lived")
    with service(kafka, directory, defaults=defaults, feeds=feeds, **LIVES) as made:
        yield made.set_up(STREAM_PEER_INSTANCE="w1")


@pytest.fixture
def lived(_long_lived: Service) -> Service:
    """A deployment for tests that end its worker halfway: historical feeds, votes at one half, four partitions.

    Name your feeds and questions after your case.
    """
    return _with_worker(_long_lived, STREAM_PEER_INSTANCE="w1")


_AS_IT_HAPPENS = {"history": False, "backdate_limit": "24h", "idle_after": "1s", "grace": "1s"}
_LATE_COMERS = {
    "c08move": {"late_forecasts": "move"},
    "c08refuse": {"late_forecasts": "refuse"},
    "c11move": {"late_forecasts": "move", "backdate_limit": "1s"},
    "c11refuse": {"late_forecasts": "refuse", "backdate_limit": "1s"},
}


@pytest.fixture(scope="package")
def _live(kafka: KafkaClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    defaults = {"vote_rule": "half", "guard": "off", **_AS_IT_HAPPENS}
    directory = tmp_path_factory.mktemp("live")
    with service(kafka, directory, defaults=defaults, feeds=_LATE_COMERS, **LIVES) as made:
        yield made.set_up(STREAM_PEER_INSTANCE="w1")


@pytest.fixture
def live(_live: Service) -> Service:
    """A deployment whose clock is the wall's: deadlines are met within two seconds. Name feeds after your case."""
    return _with_worker(_live, STREAM_PEER_INSTANCE="w1")


_MONTHS = count(-70)


@pytest.fixture
def start() -> float:
    """The first hour of a month that no test before has come to, years ago."""
    return 30.0 * 24 * next(_MONTHS)
