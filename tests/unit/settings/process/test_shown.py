"""What is shown of settings reads back as the same, never shows a secret, and has a schema for editors."""

import json
from typing import Any

import jsonschema
import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from stream_peer.settings.feed.document import load_document
from stream_peer.settings.feed.model import FeedSettings, ShadowSettings, parse_duration
from stream_peer.settings.process import Secret, Security, Settings, leaves
from stream_peer.settings.process.shown import settings_schema, shown_duration, shown_feed_settings, shown_settings


@given(st.integers(0, 10**13))
def test_a_shown_duration_reads_back_as_itself(duration: int) -> None:
    assert parse_duration(shown_duration(duration)) == duration


def test_every_setting_is_shown_and_secrets_are_not() -> None:
    shown = dict(shown_settings(Settings(security=Security(password=Secret("hunter2")))))

    assert shown.keys() == leaves().keys()
    assert shown["security.password"] == "***"
    assert shown["session"] == "45s"


def test_shown_feed_settings_are_a_document_that_gives_them_again() -> None:
    settings = msgspec.structs.replace(
        FeedSettings(), grace=1500, quorum=4, shadows=(ShadowSettings(name="plain", stretch=False),)
    )
    document: dict[str, dict[str, object]] = {"defaults": {}}
    for path, value in shown_feed_settings(settings):
        outer, _, inner = path.partition(".")
        if inner:
            nested = document["defaults"].setdefault(outer, {})
            assert isinstance(nested, dict)
            nested[inner] = value
        else:
            document["defaults"][outer] = value

    assert load_document(document).default == settings


def test_what_the_preset_paper_does_not_use_is_not_shown() -> None:
    shown = [path for path, _ in shown_feed_settings(FeedSettings(preset="paper"))]

    assert not [path for path in shown if path.startswith("mixer.") or path == "stretch"]
    assert {"preset", "trust.dependence_z", "ledger_max"}.issubset(shown)


SECRET = Secret("hunter2")


@pytest.mark.parametrize(
    "shown", [str(SECRET), repr(SECRET), f"{SECRET}", f"{[SECRET]}", json.dumps(SECRET, default=str)]
)
def test_a_secret_never_shows_its_text(shown: str) -> None:
    assert "hunter2" not in shown
    assert "***" in shown


def test_settings_with_a_secret_can_be_shown_and_encoded() -> None:
    settings = Settings(security=Security(password=SECRET))

    assert "hunter2" not in repr(settings)
    assert b"hunter2" not in msgspec.json.encode(settings, enc_hook=str)
    assert settings.secrets() == (SECRET,)


def test_secrets_compare_by_their_text() -> None:
    assert Secret("a") == Secret("a") != Secret("b")
    assert len({Secret("a"), Secret("a")}) == 1
    assert Secret("a").reveal() == "a"


@pytest.fixture(scope="module")
def checker() -> Any:
    jsonschema.Draft202012Validator.check_schema(settings_schema())
    return jsonschema.Draft202012Validator(settings_schema())


def test_the_schema_accepts_a_file_that_uses_units_nulls_and_secret_files(checker: Any) -> None:
    text = """
    session: 30s
    snapshot_every: {bytes: 64MB}
    security: {protocol: sasl_ssl, username: peer, password_file: /run/secrets/password}
    registry: {url: "https://registry:8081", username: peer, password_file: /run/secrets/registry}
    defaults: {round_every: 7d, idle_after: null, mixer: {uniform_share: 0.4}}
    feeds: {econ: {quorum: 5}}
    """

    assert list(checker.iter_errors(yaml.safe_load(text))) == []


@pytest.mark.parametrize("wrong", [{"sesion": "3s"}, {"http": {"prt": 1}}, {"feeds": {"a": {"gracee": "1s"}}}])
def test_the_schema_refuses_names_that_are_no_settings(checker: Any, wrong: dict[str, Any]) -> None:
    assert not checker.is_valid(wrong)


def test_the_schema_names_every_setting() -> None:
    schema = settings_schema()

    for path in leaves():
        block, name = schema["properties"], path
        if "." in path:
            outer, name = path.split(".")
            block = schema["$defs"][schema["properties"][outer]["$ref"].rsplit("/", 1)[1]]["properties"]
        assert name in block, path


def test_every_setting_says_what_it_is() -> None:
    assert [path for path, leaf in leaves().items() if not leaf.about] == []


def test_the_schema_speaks_to_whoever_writes_the_file_not_of_the_classes_behind_it() -> None:
    assert "``" not in json.dumps(settings_schema())


def test_names_of_topics_groups_and_changelogs_follow_from_prefix_and_id() -> None:
    settings = Settings(prefix="acme-", id="peer")

    assert settings.topic("weights") == "acme-weights"
    assert settings.app_id("question") == "acme-peer-question"
    assert settings.changelog("feed") == "acme-peer-feed-feed-state-changelog"


def test_every_setting_has_a_flag_and_a_variable_of_its_own() -> None:
    known = leaves().values()

    assert len({leaf.flag for leaf in known}) == len({leaf.variable for leaf in known}) == len(known)
    assert leaves()["security.ca_file"].flag == "--security-ca-file"
    assert leaves()["security.ca_file"].variable == "STREAM_PEER_SECURITY__CA_FILE"
