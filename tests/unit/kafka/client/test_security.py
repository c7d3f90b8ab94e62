import ast
import asyncio
import ssl
from pathlib import Path
from typing import Literal

import pytest
import trustme

from stream_peer.errors import SettingsError
from stream_peer.kafka.client.security import client_options, security_options, ssl_context
from stream_peer.kafka.worker.faust_bridge import aiokafka_options
from stream_peer.settings.process import Secret, Security, Settings


class Pki:
    """An authority, and a client certificate of it, as files."""

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        client = authority.issue_cert("peer.example")
        self.ca, self.both, self.cert, self.key = (folder / f"{name}.pem" for name in ("ca", "both", "cert", "key"))
        authority.cert_pem.write_to_path(str(self.ca))
        client.private_key_and_cert_chain_pem.write_to_path(str(self.both))
        client.private_key_pem.write_to_path(str(self.key))
        client.cert_chain_pems[0].write_to_path(str(self.cert))


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return Pki(tmp_path_factory.mktemp("pki"))


def test_plaintext_needs_nothing() -> None:
    assert aiokafka_options(Security()) == security_options(Security()) == {"security_protocol": "PLAINTEXT"}
    assert client_options(Settings(bootstrap="a:1,b:2")) == {
        "bootstrap_servers": ["a:1", "b:2"],
        "security_protocol": "PLAINTEXT",
    }
    assert ssl_context(Security()) is None


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_both_clients_log_in_by_user_and_password(
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"],
) -> None:
    security = Security(protocol="sasl_ssl", mechanism=mechanism, username="peer", password=Secret("hunter2"))

    for options in (aiokafka_options(security), security_options(security)):
        assert isinstance(options.pop("ssl_context"), ssl.SSLContext)
        assert options == {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": mechanism,
            "sasl_plain_username": "peer",
            "sasl_plain_password": "hunter2",
        }


def test_a_password_in_the_clear_brings_no_tls() -> None:
    security = Security(protocol="sasl_plaintext", username="peer", password=Secret("hunter2"))

    assert "ssl_context" not in aiokafka_options(security)


def test_tokens_are_read_anew_at_each_login(tmp_path: Path) -> None:
    file = tmp_path / "token"
    security = Security(protocol="sasl_ssl", mechanism="OAUTHBEARER", token_file=file)
    for_aiokafka = aiokafka_options(security)["sasl_oauth_token_provider"]
    for_kafka_python = client_options(Settings(security=security))["sasl_oauth_token_provider"]

    for token in ("first", "second"):
        file.write_text(f"{token}\n")
        assert asyncio.run(for_aiokafka.token()) == for_kafka_python.token() == token
    assert for_kafka_python.extensions() == {}


def test_the_servers_certificate_and_name_are_checked(pki: Pki) -> None:
    context = ssl_context(Security(protocol="ssl", ca_file=pki.ca))

    assert context is not None
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert len(context.get_ca_certs()) == 1


def test_a_client_certificate_may_stand_with_its_key_or_apart(pki: Pki) -> None:
    assert ssl_context(Security(protocol="ssl", ca_file=pki.ca, cert_file=pki.both))
    assert ssl_context(Security(protocol="ssl", ca_file=pki.ca, cert_file=pki.cert, key_file=pki.key))


def test_a_file_that_is_no_certificate_is_named(pki: Pki, tmp_path: Path) -> None:
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("nonsense")

    with pytest.raises(SettingsError, match=r"security\.ca_file \(.*nonsense.pem\): cannot be loaded"):
        ssl_context(Security(protocol="ssl", ca_file=nonsense))
    with pytest.raises(SettingsError, match=r"security\.cert_file"):
        ssl_context(Security(protocol="ssl", ca_file=pki.ca, cert_file=nonsense))
    with pytest.raises(SettingsError, match=r"security\.cert_file"):
        ssl_context(Security(protocol="ssl", ca_file=pki.ca, cert_file=pki.cert, key_file=nonsense))


def test_a_token_login_without_a_token_file_is_refused() -> None:
    with pytest.raises(SettingsError, match="token_file"):
        aiokafka_options(Security(protocol="sasl_ssl", mechanism="OAUTHBEARER"))


def test_every_consumer_of_the_package_reads_committed_records_only(repository: Path) -> None:
    calls = [
        call
        for file in (repository / "stream_peer").rglob("*.py")
        for call in ast.walk(ast.parse(file.read_text()))
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") in {"AIOKafkaConsumer", "KafkaConsumer"}
    ]

    assert len(calls) >= 2
    assert [ast.unparse(call) for call in calls if "isolation_level=ISOLATION" not in ast.unparse(call)] == []
