"""The client's connection has the service's settings, by the same names."""

from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import stream_peer
import stream_peer_client
from stream_peer.events import topics
from stream_peer.settings.process import Security as OfTheService
from stream_peer.settings.process import load
from stream_peer_client import ConnectionSettingsError, Security
from stream_peer_client.connection import MECHANISMS, PROTOCOLS, Connection
from stream_peer_client.reader import TOPIC


def shown(security: object) -> dict[str, Any]:
    return {name: getattr(security, name) for name in OfTheService.__struct_fields__}


def test_names_words_and_defaults_are_those_of_the_service() -> None:
    hints = get_type_hints(OfTheService)

    assert asdict(Security()) == shown(OfTheService())
    assert [each.name for each in fields(Security)] == list(OfTheService.__struct_fields__)
    assert (get_args(hints["protocol"]), get_args(hints["mechanism"])) == (PROTOCOLS, MECHANISMS)
    assert topics.WEIGHTS == TOPIC
    assert stream_peer_client.__version__ == stream_peer.__version__


def test_the_environment_means_what_it_means_to_the_service(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("secret\n")
    environment = {
        "STREAM_PEER_SECURITY__PROTOCOL": "sasl_plaintext",
        "STREAM_PEER_SECURITY__MECHANISM": "PLAIN",
        "STREAM_PEER_SECURITY__USERNAME": "ann",
        "STREAM_PEER_SECURITY__PASSWORD_FILE": str(tmp_path / "password"),
        "STREAM_PEER_SECURITY__ALLOW_PLAINTEXT_PASSWORD": "true",
    }

    service = shown(load(environment=environment).settings.security)
    client = shown(Security.from_environment(environment))

    assert client.pop("password") == service.pop("password").reveal() == "secret"
    assert {name: str(value) for name, value in client.items()} == {name: str(value) for name, value in service.items()}
    assert "secret" not in repr(Security.from_environment(environment))


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"protocol": "tls"}, "security.protocol is 'tls', not one of plaintext, ssl"),
        ({"mechanism": "GSSAPI"}, "security.mechanism is 'GSSAPI'"),
        ({"protocol": "sasl_ssl", "username": "ann"}, "security.password is needed by sasl_ssl, SCRAM-SHA-512"),
        ({"protocol": "sasl_ssl", "mechanism": "OAUTHBEARER"}, "security.token_file is needed"),
        ({"protocol": "sasl_plaintext", "username": "ann", "password": "b"}, "readable by anyone on the wire"),
    ],
)
def test_security_that_no_connection_could_use_is_refused(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConnectionSettingsError, match=reason):
        Security(**given)


@pytest.mark.parametrize("bootstrap", ["", " , ", "kafka:port", "kafka:0", "PLAINTEXT://kafka:9092", ":9092"])
def test_addresses_that_nobody_could_connect_to_are_refused(bootstrap: str) -> None:
    with pytest.raises(ConnectionSettingsError, match="bootstrap"):
        Connection(bootstrap=bootstrap)


def test_addresses_are_read_as_the_service_reads_them() -> None:
    found = Connection(bootstrap="kafka-1:9093, [::1]:9094,localhost").addresses()

    assert found == [("kafka-1", 9093), ("::1", 9094), ("localhost", 9092)]


@pytest.mark.parametrize("name", ["ca_file", "cert_file"])
def test_a_file_that_cannot_be_loaded_is_named(name: str, tmp_path: Path) -> None:
    file = tmp_path / "no.pem"
    security: dict[str, Any] = {name: file}
    for reason in ("No such file", "no PEM|NO_CERTIFICATE|PEM"):
        with pytest.raises(ConnectionSettingsError, match=f"security.{name} {file} cannot be loaded .*({reason})"):
            Security(protocol="ssl", **security).options()
        file.write_text("nothing")


def test_the_token_is_read_at_each_login(tmp_path: Path) -> None:
    file = tmp_path / "token"
    provider = Security(protocol="sasl_ssl", mechanism="OAUTHBEARER", token_file=file).options()[
        "sasl_oauth_token_provider"
    ]

    for token in ("one", "two"):
        file.write_text(f"{token}\n")
        assert provider.token() == token
