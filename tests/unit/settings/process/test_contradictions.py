import pytest

from stream_peer.errors import SettingsError
from stream_peer.settings.process import load

SASL = {"security.protocol": "sasl_ssl", "security.username": "u"}


def paths_at_fault(environment: dict[str, str] | None = None, **flags: str) -> set[str]:
    given = {path.replace("__", "."): text for path, text in flags.items()}
    with pytest.raises(SettingsError) as caught:
        load(None, environment or {}, given)
    return {fault.path for fault in caught.value.faults}


def test_the_batch_deadline_is_below_half_the_session() -> None:
    assert load(None, {}, {"session": "41s"}).settings.session == 41
    assert paths_at_fault(session="40s") == {"batch_deadline"}


def test_a_password_in_the_clear_has_to_be_allowed() -> None:
    password = {"STREAM_PEER_SECURITY__PASSWORD": "p"}
    flags = {"security.protocol": "sasl_plaintext", "security.username": "u"}

    assert paths_at_fault(password, **flags) == {"security.protocol"}
    assert load(None, password, {**flags, "security.allow_plaintext_password": "true"})


def test_a_login_needs_its_credentials() -> None:
    assert paths_at_fault(security__protocol="sasl_ssl") == {"security.username", "security.password"}
    assert paths_at_fault(security__protocol="sasl_ssl", security__mechanism="OAUTHBEARER") == {"security.token_file"}


def test_credentials_that_nobody_would_use_are_refused() -> None:
    assert paths_at_fault({"STREAM_PEER_SECURITY__PASSWORD": "p"}) == {"security.password"}


def test_certificates_need_tls(tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("x") / "ca.pem"
    file.touch()

    assert paths_at_fault(security__ca_file=str(file)) == {"security.ca_file"}
    assert paths_at_fault(security__protocol="ssl", security__key_file=str(file)) == {"security.key_file"}


@pytest.mark.parametrize(
    ("path", "text"), [("compression", "zstd"), ("partitions.feed_log", "16"), ("security.protocol", "ssl")]
)
def test_the_embedded_broker_is_not_asked_for_what_it_cannot(path: str, text: str) -> None:
    assert paths_at_fault(None, broker="embedded", **{path: text}) == {path}


def test_a_contradiction_with_a_faulty_value_is_not_reported() -> None:
    assert paths_at_fault(session="soon", batch_deadline="50s") == {"session"}


@pytest.mark.parametrize("bootstrap", ["kafka:port", "kafka:0", "kafka:70000", ":9092", ",", "a:1,b:x"])
def test_a_bootstrap_that_is_no_address_is_refused_with_where_it_came_from(bootstrap: str) -> None:
    with pytest.raises(SettingsError, match=r"bootstrap \(environment STREAM_PEER_BOOTSTRAP\): "):
        load(None, {"STREAM_PEER_BOOTSTRAP": bootstrap})


@pytest.mark.parametrize("bootstrap", ["PLAINTEXT://kafka:9092", "kafka:9092, PLAINTEXT://kafka-2:9092"])
def test_a_protocol_before_an_address_is_named(bootstrap: str) -> None:
    with pytest.raises(SettingsError, match=r"leave PLAINTEXT:// out; security\.protocol says how"):
        load(None, {"STREAM_PEER_BOOTSTRAP": bootstrap})
