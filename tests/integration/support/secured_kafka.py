"""Kafkas with TLS and passwords (SCRAM): one that demands a client certificate too, and one that has ACLs."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import trustme
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from stream_peer.tools.demo.brokers import free_ports
from tests.integration.support.kafka_broker import KafkaBroker
from tests.integration.support.kafka_jars import fetch_jars

USER, PASSWORD = "peer", "not-a-word"


class SecuredKafka(NamedTuple):
    """A running broker: its secured address, and a client's files by where a pod has them mounted.

    Whoever comes over the plain address of the broker itself may do everything, as every user may without ACLs.
    """

    bootstrap: str
    files: dict[str, bytes]
    plain: str
    broker: KafkaBroker

    def renew(self, name: str = "127.0.0.1") -> dict[str, bytes]:
        """Restart the broker with a certificate of this name, of a new authority; a client's files for it.

        It trusts certificates of the new authority only.
        """
        self.broker.kill()
        files = _certify(self.broker.directory.parent, name)
        self.broker.start()
        return files


@contextmanager
def secured_kafka(directory: Path) -> Iterator[SecuredKafka]:
    """Start a broker that lets nobody in but ``USER`` with ``PASSWORD`` and a certificate of its own authority."""
    with _running(directory, [USER], {"listener.name.sasl_ssl.ssl.client.auth": "required"}) as broker:
        yield broker


@contextmanager
def kafka_with_acls(directory: Path, users: Iterable[str], superuser: str) -> Iterator[SecuredKafka]:
    """Start a broker that lets in users with ``PASSWORD``, who may do what ACLs say; the superuser may do all."""
    config = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:ANONYMOUS;User:{superuser}",
    }
    with _running(directory, [*users, superuser], config) as broker:
        yield broker


@contextmanager
def _running(directory: Path, users: Iterable[str], more: Mapping[str, str]) -> Iterator[SecuredKafka]:
    directory.mkdir()
    files = _certify(directory, "127.0.0.1")
    port, inner, controller = free_ports(3)
    config = {**_listeners(port, inner, controller), **_tls(directory), **more}
    scram = [f"name={user},password={PASSWORD}" for user in users]
    with KafkaBroker(fetch_jars(os.environ), directory / "kafka", config=config, scram=scram) as broker:
        yield SecuredKafka(f"127.0.0.1:{port}", files, f"127.0.0.1:{inner}", broker)


def _certify(directory: Path, name: str) -> dict[str, bytes]:
    """Give a broker a certificate of this name, of a new authority; a client's files for it."""
    authority = trustme.CA()
    mine, its = authority.issue_cert(name), authority.issue_cert("peer@example.com")
    (directory / "broker.pem").write_bytes(_pkcs8(mine) + _chain(mine))
    (directory / "ca.pem").write_bytes(authority.cert_pem.bytes())
    return {
        "ca/ca.crt": authority.cert_pem.bytes(),
        "certificate/tls.crt": _chain(its),
        "certificate/tls.key": its.private_key_pem.bytes(),
        "password/password": PASSWORD.encode(),
    }


def _listeners(port: int, inner: int, controller: int) -> dict[str, str]:
    """One for clients, a plain one for the broker itself, and the controller's."""
    both = f"SASL_SSL://127.0.0.1:{port},PLAINTEXT://127.0.0.1:{inner}"
    return {
        "listeners": f"{both},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": both,
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
    }


def _tls(directory: Path) -> dict[str, str]:
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(directory / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(directory / "ca.pem"),
    }


def _pkcs8(certificate: trustme.LeafCert) -> bytes:
    """The private key in the one form that Java reads."""
    key = load_pem_private_key(certificate.private_key_pem.bytes(), None)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _chain(certificate: trustme.LeafCert) -> bytes:
    return b"".join(part.bytes() for part in certificate.cert_chain_pems)
