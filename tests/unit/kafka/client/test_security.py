import ast
import asyncio
import contextlib
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


def test_a_client_certificate_may_stand_with_its_key_or_apart(pki: Pki) -> None:
    assert ssl_context(Security(protocol="ssl", ca_file=pki.ca, cert_file=pki.both))
    assert ssl_context(Security(protocol="ssl", ca_file=pki.ca, cert_file=pki.cert, key_file=pki.key))


def met(client: ssl.SSLContext, server: ssl.SSLContext, name: str) -> tuple[str, str]:
    """The first connection between two contexts: the names of the certificates that the client and the server meet."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    ours = client.wrap_bio(to_client, to_server, server_hostname=name)
    for side in (ours, theirs, ours, theirs):
        with contextlib.suppress(ssl.SSLWantReadError):
            side.do_handshake()
    return alternative_name(ours), alternative_name(theirs)


def alternative_name(side: ssl.SSLObject) -> str:
    certificate = side.getpeercert()
    assert certificate
    return str(certificate["subjectAltName"][0][1])


def serving(authority: trustme.CA, of_clients: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.verify_mode = ssl.CERT_REQUIRED
    authority.issue_cert("localhost").configure_cert(context)
    of_clients.configure_trust(context)
    return context


def test_the_servers_certificate_and_name_are_checked(tmp_path: Path) -> None:
    own, stranger = trustme.CA(), trustme.CA()
    own.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    context = ssl_context(Security(protocol="ssl", ca_file=tmp_path / "ca.pem"))
    assert context

    for authority, name in ((own, "elsewhere"), (stranger, "localhost")):
        with pytest.raises(ssl.SSLCertVerificationError):
            met(context, serving(authority, own), name)


def test_a_connection_uses_the_files_as_they_are_when_it_begins(tmp_path: Path) -> None:
    ca, both = tmp_path / "ca.pem", tmp_path / "both.pem"
    former, present = trustme.CA(), trustme.CA()
    former.cert_pem.write_to_path(str(ca))
    former.issue_cert("former@example.com").private_key_and_cert_chain_pem.write_to_path(str(both))
    context = ssl_context(Security(protocol="ssl", ca_file=ca, cert_file=both))
    assert context
    first = met(context, serving(former, former), "localhost")

    both.write_text("half a file")
    meanwhile = met(context, serving(former, former), "localhost")
    present.cert_pem.write_to_path(str(ca))
    present.issue_cert("present@example.com").private_key_and_cert_chain_pem.write_to_path(str(both))
    last = met(context, serving(present, present), "localhost")

    assert first == meanwhile == ("localhost", "former@example.com")
    assert last == ("localhost", "present@example.com")
    with pytest.raises(ssl.SSLCertVerificationError):
        met(context, serving(former, present), "localhost")


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
