"""Which topics a deployment needs, how they must be shaped, and which rights its users need. No I/O."""

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from stream_peer.events import topics
from stream_peer.settings.process import Settings

_DAY = 86_400_000
FOREVER = -1
_FOLLOWS = "as many as "
_LOGS = (topics.FORECAST_EVENTS, topics.FEED_LOG)

Rule = Literal["equal", "at-least", "free"]
Kind = Literal["missing", "hidden", "partitions", "config", "deleted"]
Resource = Literal["topic", "group"]
Granted = Mapping[tuple[Resource, str], Collection[str]]
"""What a user may do with each topic and group, as far as the brokers say so."""


class Policy(NamedTuple):
    """A topic setting: its value when we make the topic, and what else will do."""

    value: str
    rule: Rule = "equal"

    def accepts(self, actual: str) -> bool:
        """Whether a topic with this value may be used."""
        if self.rule == "at-least":
            return int(actual) == FOREVER or int(actual) >= int(self.value)
        return self.rule == "free" or actual == self.value

    def __str__(self) -> str:
        sign = "≥ " if self.rule == "at-least" else ""
        return sign + self.value


class WantedTopic(NamedTuple):
    """A topic by its physical name. ``count_from`` says what its partition count follows from."""

    name: str
    partitions: int
    count_from: str
    policies: Mapping[str, Policy]


class ActualTopic(NamedTuple):
    """A topic as the broker describes it; ``is_hidden`` if we may not describe it: then nothing else is known.

    ``topic_id``: empty if the broker gives none.
    """

    partitions: int
    configs: Mapping[str, str]
    is_hidden: bool = False
    topic_id: str = ""


class Ids(NamedTuple):
    """The id of the cluster, and those of topics by name; empty, and without topics that are not there."""

    cluster: str
    topics: Mapping[str, str]


class Finding(NamedTuple):
    """Something about a topic that is not as wanted. ``count_from``: what its wanted partition count follows from."""

    topic: str
    kind: Kind
    message: str
    count_from: str = ""


class AclEntry(NamedTuple):
    """A right that a user of the brokers needs."""

    operation: str
    resource: Resource
    name: str
    prefixed: bool = False

    def covers(self, resource: Resource, name: str) -> bool:
        """Whether the right is about this topic or group."""
        return resource == self.resource and (name.startswith(self.name) if self.prefixed else name == self.name)

    def __str__(self) -> str:
        names = f"{self.resource}s that begin with {self.name}" if self.prefixed else f"{self.resource} {self.name}"
        return f"{self.operation} on {names}"


def wanted_topics(settings: Settings) -> tuple[WantedTopic, ...]:
    """All topics of a deployment: inputs, the feed-log, outputs and both changelogs."""
    counts = settings.partitions
    by_question, by_feed = counts.forecast_events, counts.feed_log
    forecasts, feed_log = settings.topic(topics.FORECAST_EVENTS), settings.topic(topics.FEED_LOG)
    durable = {"cleanup.policy": Policy("delete"), "retention.ms": Policy(str(FOREVER))}
    kept = {"cleanup.policy": Policy("delete", "free"), "retention.ms": Policy(str(30 * _DAY), "free")}
    compacted = {"cleanup.policy": Policy("compact"), "min.compaction.lag.ms": Policy(str(7 * _DAY), "at-least")}
    # A record's time is the broker's, not its sender's, whose clock may be wrong.
    of_brokers = {"message.timestamp.type": Policy("LogAppendTime")}
    # The lag is longer than a frozen worker can live: by what it still appends, a record of the next owner may be
    # compacted away. Tombstones stay longer than a recovery takes: if it read the value, it must read that it is gone.
    state = {
        "cleanup.policy": Policy("compact"),
        "min.compaction.lag.ms": Policy(str(_DAY), "at-least"),
        "delete.retention.ms": Policy(str(_DAY), "at-least"),
        "segment.bytes": Policy(str(64 * 2**20), "free"),
        **of_brokers,
    }
    events = {"cleanup.policy": Policy("delete"), "retention.ms": Policy(str(30 * _DAY), "at-least"), **of_brokers}
    controls = {**durable, **of_brokers}
    setting, follows = "partitions.{}".format, (_FOLLOWS + "{}").format
    return (
        WantedTopic(forecasts, by_question, setting("forecast_events"), events),
        WantedTopic(settings.topic(topics.CONTROL_EVENTS), counts.control_events, setting("control_events"), controls),
        WantedTopic(feed_log, by_feed, setting("feed_log"), {**durable, "retention.bytes": Policy(str(FOREVER))}),
        *(WantedTopic(settings.topic(t), by_feed, follows(feed_log), compacted) for t in topics.KEYED_BY_FEED),
        *(WantedTopic(settings.topic(t), by_question, follows(forecasts), kept) for t in topics.KEYED_BY_QUESTION),
        *(WantedTopic(settings.topic(t), by_question, follows(forecasts), kept) for t in topics.KEYED_BY_GROUP),
        WantedTopic(settings.topic(topics.DEAD_LETTERS), counts.dead_letters, setting("dead_letters"), kept),
        WantedTopic(settings.changelog("question"), by_question, follows(forecasts), state),
        WantedTopic(settings.changelog("feed"), by_feed, follows(feed_log), state),
    )


def creation_configs(topic: WantedTopic, replication: int) -> dict[str, str]:
    """Settings to make a topic with. From three replicas on, a write needs two of them."""
    configs = {name: policy.value for name, policy in topic.policies.items()}
    return {**configs, "min.insync.replicas": "2"} if replication >= 3 else configs


def compare(wanted: Iterable[WantedTopic], actual: Mapping[str, ActualTopic]) -> list[Finding]:
    """What is not as wanted, in the order of ``wanted``."""
    return [finding for topic in wanted for finding in _findings(topic, actual.get(topic.name))]


def _findings(wanted: WantedTopic, actual: ActualTopic | None) -> Iterator[Finding]:
    if actual is None:
        shape = f"{wanted.partitions} partitions, {wanted.policies['cleanup.policy'].value}"
        yield Finding(wanted.name, "missing", f"is missing ({shape})")
        return
    if actual.is_hidden:
        yield Finding(wanted.name, "hidden", "may be missing: brokers hide a topic from users who may not Describe it")
        return
    if actual.partitions != wanted.partitions:
        message = f"{actual.partitions} partitions, not {wanted.partitions}"
        yield Finding(wanted.name, "partitions", message, wanted.count_from)
    for name, policy in wanted.policies.items():
        value = actual.configs.get(name)
        if value is not None and not policy.accepts(value):
            yield Finding(wanted.name, "config", f"has {name}={value}, not {policy}")


def deleted(
    wanted: Iterable[WantedTopic], actual: Mapping[str, ActualTopic], former: Mapping[str, str]
) -> list[Finding]:
    """Which topics were deleted since they had the ids ``former``, whether they were recreated or not."""
    found = []
    for topic in wanted:
        present = actual.get(topic.name)
        if topic.name in former and (present is None or present.topic_id not in ("", former[topic.name])):
            found.append(
                Finding(topic.name, "deleted", "was deleted" if present is None else "was deleted and recreated")
            )
    return found


def agree(wanted: Iterable[WantedTopic], findings: Iterable[Finding]) -> bool:
    """Whether topics whose counts are not as wanted have one count wherever one follows from another."""
    found = {finding.topic: finding.message for finding in findings}
    groups: dict[str, set[str | None]] = {}
    for topic in wanted:
        first = topic.count_from.removeprefix(_FOLLOWS) if topic.count_from.startswith(_FOLLOWS) else topic.name
        groups.setdefault(first, set()).add(found.get(topic.name))
    return all(len(messages) == 1 for messages in groups.values())


def in_words(findings: Iterable[Finding]) -> list[str]:
    """A sentence for each finding; what is the same of several topics is said once, with the names of all."""
    alike: dict[tuple[Kind, str], list[Finding]] = {}
    for finding in findings:
        alike.setdefault((finding.kind, finding.message), []).append(finding)
    return [sentence for (kind, message), found in alike.items() for sentence in _in_words(kind, message, found)]


def _in_words(kind: Kind, message: str, alike: list[Finding]) -> list[str]:
    names = ", ".join(finding.topic for finding in alike)
    if kind == "hidden":
        return [f"{names} {message}"]
    if kind != "partitions":
        return [f"{finding.topic} {message}" for finding in alike]
    causes = {finding.count_from: None for finding in alike}  # in their order
    settings = [cause for cause in causes if cause.startswith("partitions.")] or list(causes)
    return [f"{names} {'has' if len(alike) == 1 else 'have'} {message} ({', '.join(settings)})"]


def worker_rights(settings: Settings) -> tuple[AclEntry, ...]:
    """What a worker of this stage needs: nothing on the cluster, no right to create topics.

    Besides its input, each worker reads the settings document in force, and what it answers from over HTTP.
    """
    read = {topics.CONTROL_EVENTS, topics.FEED_LOG, topics.WEIGHTS, topics.ERROR_RATES}
    write = {topics.FORECAST_EVENTS, topics.FEED_LOG, topics.DEAD_LETTERS}
    if settings.stage != "feed":
        read.add(topics.FORECAST_EVENTS)
    if settings.stage != "question":
        write.update(topics.OUTPUTS)
    return (
        *(AclEntry("Read", "topic", settings.topic(name)) for name in topics.ALL if name in read),
        *(AclEntry("Write", "topic", settings.topic(name)) for name in topics.ALL if name in write),
        *(AclEntry("DescribeConfigs", "topic", settings.topic(name)) for name in topics.ALL if name in read | write),
        *_internal_rights(settings),
    )


def _internal_rights(settings: Settings) -> Iterator[AclEntry]:
    """On changelogs and groups. Workers of the question stage ask the other group who owns which feed."""
    stage, both = settings.stage, f"{settings.prefix}{settings.id}-"
    changelog = both if stage == "all" else settings.changelog(stage)
    group = both if stage == "all" else settings.app_id(stage)
    for operation in ("Read", "Write", "DescribeConfigs"):
        yield AclEntry(operation, "topic", changelog, prefixed=stage == "all")
    yield AclEntry("Read", "group", group, prefixed=stage == "all")
    if stage == "question":
        yield AclEntry("Describe", "group", settings.app_id("feed"))


def set_up_rights(settings: Settings) -> tuple[AclEntry, ...]:
    """What ``topics apply`` needs, what writes to control-events or waits until settings are in force, and imports."""
    internal, control = f"{settings.prefix}{settings.id}-", settings.topic(topics.CONTROL_EVENTS)
    operations = ("Create", "Describe", "DescribeConfigs", "AlterConfigs")
    return (
        *(AclEntry(o, "topic", settings.topic(name)) for name in topics.ALL for o in operations),
        *(AclEntry(o, "topic", internal, prefixed=True) for o in operations),
        AclEntry("Describe", "group", internal, prefixed=True),  # who runs, before the method's version is raised
        AclEntry("Read", "topic", control),
        AclEntry("Write", "topic", control),
        AclEntry("Write", "topic", settings.topic(topics.FEED_LOG)),
        *(AclEntry("Read", "topic", settings.topic(name)) for name in (*_LOGS, topics.WEIGHTS)),
    )


def reader_rights(settings: Settings) -> tuple[AclEntry, ...]:
    """What commands need that only look: the logs, the outputs and the stored state."""
    names = (topics.CONTROL_EVENTS, topics.FEED_LOG, *topics.OUTPUTS)
    internal = AclEntry("Read", "topic", f"{settings.prefix}{settings.id}-", prefixed=True)
    return (*(AclEntry("Read", "topic", settings.topic(name)) for name in names), internal)


def missing_rights(needed: Iterable[AclEntry], granted: Granted) -> list[str]:
    """Those of the rights that are not granted, in words. What the brokers do not say is taken for granted."""
    return [text for entry in needed if (text := _missing(entry, granted))]


def _missing(entry: AclEntry, granted: Granted) -> str:
    covered = {name: held for (resource, name), held in granted.items() if entry.covers(resource, name)}
    lacking = [name for name, held in covered.items() if entry.operation not in held]
    if not lacking or not entry.prefixed or len(lacking) == len(covered):
        return str(entry) if lacking else ""
    return f"{entry} (it is missing for {', '.join(lacking)})"


def acl_commands(
    entries: Iterable[AclEntry], user: str, bootstrap: str, command_config: str = "admin.properties"
) -> Iterator[str]:
    """The rights as commands of Kafka's own tool, one for each resource; it logs in as ``command_config`` says."""
    by_resource: dict[tuple[str, str, bool], list[str]] = {}
    for entry in entries:
        by_resource.setdefault((entry.resource, entry.name, entry.prefixed), []).append(entry.operation)
    start = ["kafka-acls.sh", "--bootstrap-server", bootstrap, "--command-config", command_config]
    for (resource, name, prefixed), operations in by_resource.items():
        asked = [word for operation in operations for word in ("--operation", operation)]
        pattern = ["--resource-pattern-type", "prefixed"] if prefixed else []
        yield shlex.join(
            [*start, "--add", "--allow-principal", f"User:{user}", *asked, f"--{resource}", name, *pattern]
        )
