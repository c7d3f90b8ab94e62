import contextlib
import datetime
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from kafka import errors as kafka
from msgspec.structs import replace

from stream_peer.errors import BrokerUnavailableError, NotAuthorisedError, SettingsError
from stream_peer.kafka.client import preflight as module
from stream_peer.kafka.client.preflight import preflight
from stream_peer.kafka.client.waiting import tell_of_waiting
from stream_peer.settings.process import Security, Settings


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    return port


@pytest.fixture
def rude_port() -> Iterator[int]:
    """Something that takes connections and closes them at once."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    server.accept()[0].close()

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def test_nobody_there_is_one_sentence_after_the_patience(closed_port: int) -> None:
    told: list[str] = []
    settings = Settings(bootstrap=f"127.0.0.1:{closed_port}", broker_patience=0.8)

    with pytest.raises(BrokerUnavailableError) as caught:
        preflight(settings, waiting=told.append)

    assert str(caught.value) == f"No broker answered at 127.0.0.1:{closed_port} within 0.8s: connection refused."
    assert told == ["connection refused"]


def test_a_closed_connection_names_what_it_may_mean(rude_port: int) -> None:
    settings = Settings(bootstrap=f"127.0.0.1:{rude_port}", broker_patience=0.3)

    with pytest.raises(BrokerUnavailableError, match="a wrong user or password, a client certificate"):
        preflight(settings)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (kafka.SaslAuthenticationFailedError("no"), "refuses the user or password"),
        (kafka.UnsupportedSaslMechanismError("no"), "does not offer the mechanism"),
        (kafka.IllegalSaslStateError("no"), r"expects another security.protocol"),
        (ssl.SSLError(1, "wrong version"), "does not speak TLS as we do"),
    ],
)
def test_a_refusal_is_not_waited_out(monkeypatch: pytest.MonkeyPatch, error: Exception, sentence: str) -> None:
    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(module, "_connect", refuse)

    with pytest.raises(NotAuthorisedError, match=sentence):
        preflight(Settings(broker_patience=60.0))


@contextlib.contextmanager
def serving_tls(
    authority: trustme.CA, tmp_path: Path, *, name: str = "localhost", asks_for_ours: bool = False
) -> Iterator[Settings]:
    """A server that speaks TLS, and no Kafka; the settings trust its authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    if asks_for_ours:
        context.verify_mode = ssl.CERT_REQUIRED
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    plain = server.accept()[0]
                    with contextlib.suppress(OSError):
                        context.wrap_socket(plain, server_side=True).recv(1)
                    plain.close()

        threading.Thread(target=serve, daemon=True).start()
        security = Security(protocol="ssl", ca_file=tmp_path / "ca.pem")
        yield Settings(bootstrap=f"localhost:{server.getsockname()[1]}", security=security, broker_patience=0.5)
        server.shutdown(socket.SHUT_RDWR)


def test_a_certificate_that_is_not_trusted_is_named(tmp_path: Path) -> None:
    stranger, ours = tmp_path / "stranger.pem", trustme.CA()
    trustme.CA().cert_pem.write_to_path(str(stranger))
    with serving_tls(ours, tmp_path) as settings:
        mistrusting = replace(settings, security=Security(protocol="ssl", ca_file=stranger))
        with pytest.raises(NotAuthorisedError, match=r"The certificate of localhost:\d+ is not trusted \(.*issuer"):
            preflight(mistrusting)


def test_a_certificate_of_another_name_is_named_with_what_to_do(tmp_path: Path) -> None:
    with (
        serving_tls(trustme.CA(), tmp_path, name="elsewhere.example") as settings,
        pytest.raises(NotAuthorisedError) as caught,
    ):
        preflight(settings)

    assert re.fullmatch(
        r"The certificate of localhost:\d+ is of another name \(Hostname mismatch, .* 'localhost'\.\); use a name "
        r"that it has, in bootstrap and in advertised\.listeners of the broker\.",
        str(caught.value),
    )


def test_a_connection_that_is_closed_while_tls_begins_is_waited_for(rude_port: int) -> None:
    settings = Settings(bootstrap=f"localhost:{rude_port}", security=Security(protocol="ssl"), broker_patience=0.3)

    with pytest.raises(BrokerUnavailableError, match=r"it closed the connection|reset by peer"):
        preflight(settings)


def test_a_client_certificate_that_is_missing_is_guessed_from_a_closed_connection(tmp_path: Path) -> None:
    with (
        serving_tls(trustme.CA(), tmp_path, asks_for_ours=True) as settings,
        pytest.raises(BrokerUnavailableError, match="a client certificate that is missing or refused"),
    ):
        preflight(settings)


@pytest.fixture
def only_localhost_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(host: str, *_: object) -> None:
        if host != "localhost":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        raise ConnectionRefusedError

    monkeypatch.setattr(module, "_connect", connect)


@pytest.mark.usefixtures("only_localhost_is_known")
def test_a_worker_waits_for_hosts_that_are_not_known_yet() -> None:
    told: list[str] = []

    with pytest.raises(BrokerUnavailableError, match=r"within 0\.6s: the host kafka-1 is not known \(Name or service"):
        preflight(Settings(bootstrap="kafka-1:1,kafka-1:2", broker_patience=0.6), waiting=told.append)

    assert told == ["the host kafka-1 is not known (Name or service not known)"]


@pytest.mark.usefixtures("only_localhost_is_known")
def test_somebody_who_looks_on_waits_for_no_host_that_is_not_known_but_for_those_that_are() -> None:
    told: list[str] = []
    with tell_of_waiting(lambda _, reason: told.append(reason)):
        with pytest.raises(BrokerUnavailableError) as at_once:
            preflight(Settings(bootstrap="kafka-1:1,kafka-2:1", broker_patience=600.0))
        with pytest.raises(BrokerUnavailableError, match=r"within 0\.6s"):
            preflight(Settings(bootstrap="kafka-1:1,localhost:1", broker_patience=0.6))

    assert str(at_once.value) == (
        "No broker can be asked at kafka-1:1,kafka-2:1: the host kafka-1 is not known (Name or service not known); "
        "the host kafka-2 is not known (Name or service not known)."
    )
    assert told == ["the host kafka-1 is not known (Name or service not known); connection refused"]


def test_an_expired_client_certificate_is_named_before_connecting(tmp_path: Path) -> None:
    authority = trustme.CA()
    past = datetime.datetime(2020, 1, 2, 3, 4, tzinfo=datetime.UTC)
    expired = authority.issue_cert("peer", not_before=past - datetime.timedelta(days=9), not_after=past)
    expired.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "peer.pem"))
    security = Security(protocol="ssl", cert_file=tmp_path / "peer.pem")

    with pytest.raises(SettingsError, match="expired at 2020-01-02 03:04Z"):
        preflight(Settings(security=security))


def test_a_client_certificate_that_lasts_is_no_fault(tmp_path: Path, closed_port: int) -> None:
    for until in (
        datetime.datetime(2049, 1, 1, tzinfo=datetime.UTC),
        datetime.datetime(2051, 1, 1, tzinfo=datetime.UTC),
    ):
        lasting = trustme.CA().issue_cert("peer", not_after=until)
        lasting.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "peer.pem"))
        security = Security(protocol="ssl", cert_file=tmp_path / "peer.pem")

        with pytest.raises(BrokerUnavailableError):
            preflight(Settings(bootstrap=f"127.0.0.1:{closed_port}", security=security, broker_patience=0.1))
