"""File, environment and flags become settings, or every fault is named at once with where it came from."""

import re
from pathlib import Path

import pytest

from stream_peer.errors import SettingFault, SettingsError
from stream_peer.settings.process import Loaded, Secret, Settings, leaves, load, read_secret, required_signing_keys


def written(folder: Path, text: str) -> Path:
    file = folder / "settings.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def faults_of(
    file: Path | None = None, environment: dict[str, str] | None = None, flags: dict[str, str] | None = None
) -> list[SettingFault]:
    with pytest.raises(SettingsError) as caught:
        load(file, environment, flags)
    return caught.value.faults


def paths(faults: list[SettingFault]) -> set[str]:
    return {fault.path for fault in faults}


def test_without_any_source_everything_is_at_its_default() -> None:
    loaded = load()

    assert loaded.settings == Settings()
    assert set(loaded.origins.values()) == {"default"}
    assert loaded.origins.keys() == leaves().keys()


def test_a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default(tmp_path: Path) -> None:
    file = written(tmp_path, "prefix: file-\nid: file\nbootstrap: file:1\n")
    environment = {"STREAM_PEER_ID": "environment", "STREAM_PEER_BOOTSTRAP": "environment:1"}

    loaded = load(file, environment, {"bootstrap": "flag:1"})

    assert (loaded.settings.prefix, loaded.settings.id, loaded.settings.bootstrap) == ("file-", "environment", "flag:1")
    assert loaded.origins["prefix"] == f"file {file}"
    assert loaded.origins["id"] == "environment STREAM_PEER_ID"
    assert loaded.origins["bootstrap"] == "flag --bootstrap"
    assert loaded.origins["stage"] == "default"


def test_blocks_are_nested_in_files_and_by_two_underscores_in_the_environment(tmp_path: Path) -> None:
    file = written(tmp_path, "http: {port: 1234}\nsnapshot_every: {records: 7}\n")

    settings = load(file, {"STREAM_PEER_HTTP__HOST": "0.0.0.0"}).settings  # noqa: S104 - only read

    assert (settings.http.host, settings.http.port) == ("0.0.0.0", 1234)  # noqa: S104
    assert settings.snapshot_every.records == 7


def test_all_faults_are_named_at_once_with_path_and_origin(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        """
        sesion: 3s
        http: 8080
        snapshot_every: {bytes: 64 parsecs}
        defaults: {round_every: soon}
        feeds: {econ: {quorum: 0}}
        """,
    )

    faults = faults_of(file, environment={"STREAM_PEER_HTTP__PORT": "99999"}, flags={"compression": "lz4"})

    by_path = {fault.path: fault for fault in faults}
    assert by_path.keys() == {
        "sesion",
        "http",
        "snapshot_every.bytes",
        "http.port",
        "compression",
        "defaults.round_every",
        "feeds.econ.quorum",
    }
    assert by_path["http.port"].origin == "environment STREAM_PEER_HTTP__PORT"
    assert by_path["compression"] == ("compression", "flag --compression", "must be one of zstd, none, got 'lz4'")
    assert "did you mean session?" in by_path["sesion"].message
    assert by_path["defaults.round_every"].origin == f"file {file}"


def test_a_secret_is_read_from_the_file_that_its_file_variant_names(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("hunter2\n")
    environment = {
        "STREAM_PEER_SECURITY__PROTOCOL": "sasl_ssl",
        "STREAM_PEER_SECURITY__USERNAME": "peer",
        "STREAM_PEER_SECURITY__PASSWORD_FILE": str(tmp_path / "password"),
    }

    loaded = load(None, environment)

    assert loaded.settings.security.password == Secret("hunter2")
    assert loaded.origins["security.password"] == (
        f"environment STREAM_PEER_SECURITY__PASSWORD_FILE ({tmp_path / 'password'})"
    )


def test_a_secret_given_twice_by_one_source_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, f"security: {{password: a, password_file: {tmp_path / 'p'}}}")

    assert "security.password_file" in paths(faults_of(file))


def test_a_path_that_can_name_no_file_is_a_fault(tmp_path: Path) -> None:
    (fault,) = faults_of(written(tmp_path, 'security: {password_file: "\\0"}'))

    assert fault.path == "security.password_file"
    assert "null byte" in fault.message


def test_a_stronger_source_may_give_a_secret_directly_where_a_weaker_one_names_a_file(tmp_path: Path) -> None:
    (tmp_path / "p").write_text("weak")
    file = written(tmp_path, f"security: {{protocol: sasl_ssl, username: u, password_file: {tmp_path / 'p'}}}")

    loaded = load(file, {"STREAM_PEER_SECURITY__PASSWORD": "strong"})

    assert loaded.settings.security.password == Secret("strong")


def test_a_secret_that_cannot_be_read_is_one_fault_and_not_also_a_missing_secret() -> None:
    environment = {
        "STREAM_PEER_SECURITY__PROTOCOL": "sasl_ssl",
        "STREAM_PEER_SECURITY__USERNAME": "peer",
        "STREAM_PEER_SECURITY__PASSWORD_FILE": "/does/not/exist",
    }

    assert paths(faults_of(environment=environment)) == {"security.password_file"}


def test_faults_do_not_repeat_a_secret(tmp_path: Path) -> None:
    file = written(tmp_path, "security: {password: 123456789}")

    assert "123456789" not in str(faults_of(file))


def test_variables_of_kubernetes_services_and_of_tests_are_no_settings() -> None:
    environment = {
        "STREAM_PEER_PORT": "tcp://10.0.0.1:80",
        "STREAM_PEER_PORT_8080_TCP_ADDR": "10.0.0.1",
        "STREAM_PEER_SERVICE_HOST": "10.0.0.1",
        "STREAM_PEER_SERVICE_PORT_HTTP": "80",
        "STREAM_PEER_CONFIG": "settings.yaml",
        "STREAM_PEER_FAULT": "somewhere:1",
        "STREAM_PEER_TEST_BOOTSTRAP": "x",
        "PATH": "/bin",
    }

    assert load(None, environment) == load()


def test_a_misspelt_variable_is_a_fault_since_it_would_silently_do_nothing() -> None:
    faults = faults_of(environment={"STREAM_PEER_BOOTSTRAPS": "kafka:9092"})

    assert faults == [
        SettingFault("bootstraps", "environment STREAM_PEER_BOOTSTRAPS", "no such setting; did you mean bootstrap?")
    ]


def test_an_empty_variable_is_not_given() -> None:
    assert load(None, {"STREAM_PEER_BOOTSTRAP": ""}) == load()


def test_feed_settings_come_from_the_file_only(tmp_path: Path) -> None:
    faults = faults_of(environment={"STREAM_PEER_DEFAULTS__GRACE": "3s"})

    assert "under defaults and feeds" in faults[0].message


def test_feed_settings_of_the_file_are_resolved_and_travel_as_they_were_written(tmp_path: Path) -> None:
    file = written(tmp_path, "defaults: {grace: 3s, guard: off}\nfeeds: {2024: {quorum: 5}}\n")

    loaded = load(file)

    assert loaded.book.of("2024").quorum == 5
    assert loaded.book.of("2024").grace == loaded.book.of("other").grace == 3000
    assert loaded.settings.document == {"defaults": {"grace": "3s", "guard": "off"}, "feeds": {"2024": {"quorum": 5}}}


def test_a_historical_feed_does_not_inherit_the_limits_of_live_ones(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        "defaults: {backdate_limit: 1h, idle_after: 5s}\n"
        "feeds: {archive: {history: true}, mixed: {history: true, backdate_limit: 2h}, live: {}}\n",
    )

    book = load(file).book

    assert (book.of("archive").backdate_limit, book.of("archive").idle_after) == (None, None)
    assert (book.of("mixed").backdate_limit, book.of("mixed").idle_after) == (7_200_000, None)
    assert (book.of("live").backdate_limit, book.of("live").idle_after) == (3_600_000, 5000)


@pytest.mark.parametrize("text", ["", "# nothing\n", "security:\n", "{}"])
def test_a_file_may_be_empty_or_name_empty_blocks(tmp_path: Path, text: str) -> None:
    assert load(written(tmp_path, text)).settings == Settings()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bootstrap: [unclosed", "line 1"),
        ("- a list", "must be a mapping"),
        ("session: 30s\nsession: 40s\n", "session stands twice"),
    ],
)
def test_a_file_that_is_no_mapping_in_yaml_is_one_fault(tmp_path: Path, text: str, message: str) -> None:
    (fault,) = faults_of(written(tmp_path, text))

    assert fault.path == "config"
    assert message in fault.message


def test_a_missing_file_is_one_fault(tmp_path: Path) -> None:
    (fault,) = faults_of(tmp_path / "none.yaml")

    assert fault == SettingFault(
        "config", f"file {tmp_path / 'none.yaml'}", "cannot be read: No such file or directory"
    )


def test_an_embedded_broker_brings_its_partitions_and_no_compression() -> None:
    loaded = load(None, {}, {"broker": "embedded"})

    assert loaded.settings.compression == "none"
    assert loaded.settings.partitions.forecast_events == loaded.settings.partitions.dead_letters == 4
    assert loaded.origins["compression"] == "broker embedded"


def test_the_seed_of_the_draws_is_the_content_of_the_secret_file(tmp_path: Path) -> None:
    (tmp_path / "seed").write_bytes(b"seed\n")

    assert read_secret(loaded_with(tmp_path / "seed").settings) == b"seed"
    assert read_secret(Settings()) == b""


def test_an_empty_secret_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "seed").touch()

    with pytest.raises(SettingsError, match="is empty"):
        read_secret(loaded_with(tmp_path / "seed").settings)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty: `openssl rand -hex 32 > signing-key` makes one"),
        (b" \n\n", "is empty"),
        (b"0123456789abcdef\nshort\n", "key 2 has less than 16 bytes"),
        (None, "No such file or directory: `openssl rand -hex 32 > signing-key` makes one"),
    ],
)
def test_a_signing_key_that_could_be_guessed_or_is_not_there_is_refused(
    tmp_path: Path, content: bytes | None, message: str
) -> None:
    file = tmp_path / "keys"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(SettingsError, match=re.escape(message)) as refused:
        required_signing_keys(Settings(signing_key_file=file))

    assert refused.value.exit_code == 78
    assert str(file) in str(refused.value)


def test_signing_keys_stand_one_a_line(tmp_path: Path) -> None:
    (tmp_path / "keys").write_bytes(b"\xef\xbb\xbf  the new signing key\r\n\nthe former signing key")

    assert required_signing_keys(Settings(signing_key_file=tmp_path / "keys")) == (
        b"the new signing key",
        b"the former signing key",
    )


def test_only_an_embedded_broker_goes_without_a_signing_key() -> None:
    assert required_signing_keys(Settings(broker="embedded")) == (b"",)
    with pytest.raises(SettingsError, match=r"signing_key_file .*openssl rand -hex 32") as refused:
        required_signing_keys(Settings())
    assert str(refused.value).count("\n") <= 1


def loaded_with(secret_file: Path) -> Loaded:
    return load(None, {}, {"secret_file": str(secret_file)})


def paths_at_fault(environment: dict[str, str] | None = None, **flags: str) -> set[str]:
    given = {path.replace("__", "."): text for path, text in flags.items()}
    with pytest.raises(SettingsError) as caught:
        load(None, environment or {}, given)
    return {fault.path for fault in caught.value.faults}


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
    assert paths_at_fault(broker="embedded", security__protocol="soon") == {"security.protocol"}


@pytest.mark.parametrize("bootstrap", ["kafka:port", "kafka:0", "kafka:70000", ":9092", ",", "a:1,b:x"])
def test_a_bootstrap_that_is_no_address_is_refused_with_where_it_came_from(bootstrap: str) -> None:
    with pytest.raises(SettingsError, match=r"bootstrap \(environment STREAM_PEER_BOOTSTRAP\): "):
        load(None, {"STREAM_PEER_BOOTSTRAP": bootstrap})


@pytest.mark.parametrize("bootstrap", ["PLAINTEXT://kafka:9092", "kafka:9092, PLAINTEXT://kafka-2:9092"])
def test_a_protocol_before_an_address_is_named(bootstrap: str) -> None:
    with pytest.raises(SettingsError, match=r"leave PLAINTEXT:// out; security\.protocol says how"):
        load(None, {"STREAM_PEER_BOOTSTRAP": bootstrap})
