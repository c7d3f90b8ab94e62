from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from stream_peer.cli.options import Invocation, settings_options
from stream_peer.settings.process import Leaf, leaves


def invoked(*arguments: str, environment: dict[str, str] | None = None) -> Invocation:
    """What a command with all the flags was given."""
    found: list[Invocation] = []

    @click.command()
    @settings_options("http.port")
    def command(invocation: Invocation) -> None:
        found.append(invocation)

    result = CliRunner(env=environment or {}).invoke(command, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return found[0]


def help_text() -> str:
    @click.command()
    @settings_options("http.port")
    def command(invocation: Invocation) -> None:
        """Do nothing."""

    return CliRunner().invoke(command, ["--help"]).output


@pytest.mark.parametrize(
    "leaf", [leaf for leaf in leaves().values() if leaf.reads != "secret"], ids=lambda leaf: leaf.path
)
def test_every_setting_but_secrets_has_its_flag(leaf: Leaf) -> None:
    @click.command()
    @settings_options()
    def command(invocation: Invocation) -> None:
        del invocation

    assert leaf.flag in {option for parameter in command.params for option in parameter.opts}


def test_no_secret_can_be_given_where_other_users_of_the_machine_read_it() -> None:
    @click.command()
    @settings_options()
    def command(invocation: Invocation) -> None:
        del invocation

    options = {option for parameter in command.params for option in parameter.opts}
    assert "--security-password" not in options
    assert "--security-password-file" in options


def test_help_shows_the_common_flags_and_those_of_the_command() -> None:
    shown = help_text()

    assert all(flag in shown for flag in ("--config", "--bootstrap", "--prefix", "--id", "--http-port"))
    assert "--snapshot-every-records" not in shown


def test_flags_that_are_not_shown_work() -> None:
    invocation = invoked("--snapshot-every-records", "7", "--bootstrap", "kafka:1")

    assert invocation.settings.snapshot_every.records == 7
    assert invocation.loaded.origins["snapshot_every.records"] == "flag --snapshot-every-records"


def test_the_file_may_be_named_by_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("id: from-file")

    assert invoked(environment={"STREAM_PEER_CONFIG": str(file)}).settings.id == "from-file"


def test_a_suggested_command_reaches_the_same_topics(tmp_path: Path) -> None:
    file = tmp_path / "my settings.yaml"
    file.write_text("id: x")

    invocation = invoked("-c", str(file), "--bootstrap", "kafka:1", "--prefix", "a-", "--http-port", "1")

    assert invocation.command("topics apply") == (
        f"stream-peer topics apply --config '{file}' --bootstrap kafka:1 --prefix a-"
    )


@pytest.mark.parametrize(
    ("arguments", "environment", "seconds"),
    [
        ([], {}, 10.0),
        (["--patience", "2m"], {}, 120.0),
        (["--broker-patience", "90s"], {}, 90.0),
        ([], {"STREAM_PEER_BROKER_PATIENCE": "60s"}, 60.0),
        (["--patience", "3s"], {"STREAM_PEER_BROKER_PATIENCE": "60s"}, 3.0),
    ],
)
def test_somebody_waits_ten_seconds_for_a_broker_unless_told_otherwise(
    arguments: list[str], environment: dict[str, str], seconds: float
) -> None:
    assert invoked(*arguments, environment=environment).settings.broker_patience == seconds


def test_the_patience_of_a_worker_and_of_what_asks_no_broker_is_the_settings_own() -> None:
    for waits in ("worker", "nobody"):
        found: list[Invocation] = []

        @click.command()
        @settings_options(waits=waits)
        def command(invocation: Invocation, found: list[Invocation] = found) -> None:
            found.append(invocation)

        assert CliRunner().invoke(command, ["--patience", "1s"]).exit_code == 2
        assert CliRunner().invoke(command, []).exit_code == 0
        assert found[0].settings.broker_patience == 60.0
