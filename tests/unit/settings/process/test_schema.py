import json
from typing import Any

import jsonschema
import pytest
import yaml

from stream_peer.settings.process import Settings, leaves
from stream_peer.settings.process.shown import settings_schema


@pytest.fixture(scope="module")
def checker() -> Any:
    jsonschema.Draft202012Validator.check_schema(settings_schema())
    return jsonschema.Draft202012Validator(settings_schema())


def test_the_schema_accepts_a_file_that_uses_units_nulls_and_secret_files(checker: Any) -> None:
    text = """
    session: 30s
    batch_deadline: 10
    snapshot_every: {bytes: 64MB}
    security: {protocol: sasl_ssl, username: peer, password_file: /run/secrets/password}
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
