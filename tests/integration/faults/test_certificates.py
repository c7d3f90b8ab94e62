"""Certificates over TLS: one of another name is refused with the reason; replaced ones are used without a restart."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.integration.support.brokers import Rung, RunningBroker
from tests.integration.support.client import KafkaClient
from tests.integration.support.events import crowd, milliseconds, question
from tests.integration.support.secured_kafka import PASSWORD, USER, SecuredKafka, secured_kafka
from tests.integration.support.service import Service, Shape, service

pytestmark = [pytest.mark.real_kafka, pytest.mark.faults]

COMMANDS = (
    ("worker",),
    ("topics", "check"),
    ("settings", "apply"),
    ("tail", "econ", "--once"),
    ("explain", "econ", "e1"),
)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    with secured_kafka(tmp_path_factory.mktemp("secured") / "broker") as started:
        yield started


@pytest.fixture
def secured(broker: SecuredKafka, tmp_path: Path) -> Iterator[Service]:
    """A deployment that logs in with password and certificate; tests look over the plain address."""
    security = {
        "protocol": "sasl_ssl",
        "mechanism": "SCRAM-SHA-512",
        "username": USER,
        "password": PASSWORD,
        "ca_file": str(tmp_path / "ca/ca.crt"),
        "cert_file": str(tmp_path / "certificate/tls.crt"),
        "key_file": str(tmp_path / "certificate/tls.key"),
    }
    looking = KafkaClient(RunningBroker(broker.plain, Rung.JARS))
    named = {"bootstrap": broker.bootstrap, "security": security, "broker_patience": "60s"}
    with service(looking, tmp_path, shape=Shape(1, 1), **named) as made:
        yield made


def replace(directory: Path, files: Mapping[str, bytes]) -> None:
    """Put a client's files where the settings name them."""
    for name, content in files.items():
        file = directory / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content)


@pytest.mark.induces("all certificates and their authority replaced under a running worker, then the broker restarted")
def test_a_worker_goes_on_with_certificates_that_were_replaced_under_way(
    broker: SecuredKafka, secured: Service, tmp_path: Path
) -> None:
    replace(tmp_path, broker.renew())
    worker = secured.set_up().workers["w1"].wait_ready()

    replace(tmp_path, broker.renew())
    secured.reconnect()
    secured.send([question("q", "econ", 24.0), *crowd("q", 6, 1.0)])
    secured.settle()
    worker.wait_ready()
    secured.tick(milliseconds(25))
    secured.settle()

    assert secured.weights("econ")["questions"] == 1
    assert "certificates_renewed" in worker.said()


@pytest.mark.induces("a broker whose certificate has another name than its address")
def test_a_certificate_of_another_name_is_refused_in_one_sentence_with_the_reason(
    broker: SecuredKafka, secured: Service, tmp_path: Path, found: Callable[[str], None]
) -> None:
    replace(tmp_path, broker.renew("elsewhere.example"))

    for command in COMMANDS:
        ended = secured.command(*command)
        assert ended.returncode == 77, (command, ended.stderr)
        (said,) = [line for line in ended.stderr.splitlines() if "certificate" in line]
        assert f"The certificate of {broker.bootstrap} is of another name" in said
        assert "Traceback" not in ended.stderr
    found(f"77 and the reason, {len(COMMANDS)} commands")


@pytest.mark.induces("a broker that advertises an address which its certificate does not have")
def test_an_advertised_address_that_the_certificate_lacks_is_named(
    broker: SecuredKafka, secured: Service, tmp_path: Path
) -> None:
    replace(tmp_path, broker.renew("localhost"))
    port = broker.bootstrap.rpartition(":")[2]

    ended = secured.command("worker", STREAM_PEER_BOOTSTRAP=f"localhost:{port}")

    assert ended.returncode == 77, ended.stderr
    assert f"The certificate of {broker.bootstrap} is of another name" in ended.stderr
