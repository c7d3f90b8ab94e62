"""``stream-peer topics plan | apply | check | schemas``."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

from stream_peer.cli.options import Invocation, settings_options
from stream_peer.errors import SettingFault, SettingsError
from stream_peer.kafka.client.topic_plan import (
    AclEntry,
    Finding,
    WantedTopic,
    acl_commands,
    in_words,
    reader_rights,
    set_up_rights,
    wanted_topics,
    worker_rights,
)
from stream_peer.settings.process import Settings

if TYPE_CHECKING:
    from stream_peer.kafka.client.admin import KafkaAdmin


_RIGHTS: dict[str, Callable[[Settings], Iterable[AclEntry]]] = {
    "A worker (--stage {0.stage}), and a user who runs `repair`,": worker_rights,
    "A user who runs `topics`, `settings apply`, `expert`, `reset`, `delete` and `import`": set_up_rights,
    "A user who runs `tail`, `explain`, `export` and `replay --from-log`": reader_rights,
}


@click.group(name="topics", no_args_is_help=True)
def topics_group() -> None:
    """Plan, make and check the topics on the brokers; register their schemas."""


@topics_group.command(name="plan", short_help="Print the topics and rights that are needed, and what apply would do.")
@click.option("--offline", is_flag=True, help="Ask no broker: print only the planned topics and rights.")
@click.option("--user", default="stream-peer", show_default=True, help="User that the rights are printed for.")
@click.option(
    "--command-config",
    default="admin.properties",
    show_default=True,
    metavar="FILE",
    help="How kafka-acls.sh logs in, as a user who may Alter the cluster; named in the commands.",
)
@settings_options("replication", "partitions.forecast_events", "partitions.feed_log", "stage")
def plan_command(invocation: Invocation, *, offline: bool, user: str, command_config: str) -> None:
    """Print the topics that are needed, what `topics apply` would do, and the rights that users need.

    \b
    stream-peer topics plan --bootstrap kafka:9092
    stream-peer topics plan --offline --prefix acme- --user acme     for the person who creates your topics
    """  # noqa: D301
    settings = invocation.settings
    findings = [] if offline else _admin(invocation).plan().findings
    _print_topics(wanted_topics(settings), settings.replication)
    if not offline:
        click.echo()
        _print_findings(findings, invocation.command("topics apply"))
    for who, entries in _RIGHTS.items():
        click.echo(f"\n# {who.format(settings)} needs these rights, where brokers have ACLs:")
        for command in acl_commands(entries(settings), user, settings.bootstrap, command_config):
            click.echo(command)


@topics_group.command(name="apply", short_help="Make missing topics, and set the policies that differ.")
@settings_options("replication", "partitions.forecast_events", "partitions.feed_log")
def apply_topics_command(invocation: Invocation) -> None:
    """Make the topics that are missing, and set the policies that differ. Partition counts are never changed.

    \b
    stream-peer topics apply --bootstrap kafka:9092
    stream-peer topics apply --config settings.yaml --replication 3
    """  # noqa: D301
    if invocation.settings.broker == "embedded":
        click.echo("The embedded broker makes its topics by itself: nothing to do.")
        return
    done = _admin(invocation).apply()
    for finding in done:
        click.echo(f"{finding.topic}: {_deed(finding)}")
    if not done:
        click.echo("Nothing to do: all topics are as planned.")


@topics_group.command(name="check", short_help="List topics that are not as planned; change nothing.")
@settings_options("partitions.forecast_events", "partitions.feed_log")
def check_topics_command(invocation: Invocation) -> None:
    """End with 0 if the topics are as planned, with 78 and the list of faults if not. Changes nothing.

    \b
    stream-peer topics check --bootstrap kafka:9092 && stream-peer worker --bootstrap kafka:9092
    """  # noqa: D301
    _admin(invocation).check()
    click.echo(f"All {len(wanted_topics(invocation.settings))} topics are as planned.")


@topics_group.command(name="schemas", short_help="Register the JSON Schemas at a schema registry.")
@settings_options("registry.url", "registry.username", "registry.password_file", "registry.ca_file", waits="nobody")
def schemas_command(invocation: Invocation) -> None:
    """Register the JSON Schemas of events and outputs at a schema registry that speaks Confluent's API.

    The subject of a topic is its name with -value. What is registered already stays; if the registry finds one schema
    incompatible, none is registered.

    \b
    stream-peer topics schemas --registry-url https://registry.example.org:8081
    """  # noqa: D301
    from stream_peer.tools.schemas import register_schemas

    registry = invocation.settings.registry
    if registry.url is None:
        message = "names no registry: give its URL"
        raise SettingsError([SettingFault("registry.url", invocation.loaded.origins["registry.url"], message)])
    for subject, number, is_new in register_schemas(registry, registry.url, invocation.settings.topic):
        click.echo(f"{subject}: schema {number}, {'registered' if is_new else 'which was there already'}")


def _admin(invocation: Invocation) -> "KafkaAdmin":
    from stream_peer.kafka.client.admin import KafkaAdmin

    settings = invocation.settings
    return KafkaAdmin(settings, command=invocation.command("topics apply"))


def _deed(finding: Finding) -> str:
    return "made" if finding.kind == "missing" else f"set its policies ({finding.message})"


def _print_topics(wanted: tuple[WantedTopic, ...], replication: int) -> None:
    width = max(len(topic.name) for topic in wanted)
    click.echo(f"{'topic':<{width}}  partitions  replicas  policies")
    for topic in wanted:
        policies = " ".join(f"{name}={policy.value}" for name, policy in topic.policies.items())
        click.echo(f"{topic.name:<{width}}  {topic.partitions:>10}  {replication:>8}  {policies}")


def _print_findings(findings: list[Finding], command: str) -> None:
    if not findings:
        click.echo("The brokers have them all, as planned.")
        return
    for sentence in in_words(findings):
        click.echo(sentence)
    if any(finding.kind in ("missing", "config") for finding in findings):
        click.echo(f"`{command}` mends what is missing or has other policies.")
