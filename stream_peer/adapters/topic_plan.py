"""Which topics a deployment needs, how they must be shaped, and which rights its users need. No I/O."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from stream_peer.events import topics
from stream_peer.settings import Settings

_DAY = 86_400_000
FOREVER = -1

Rule = Literal["equal", "at-least", "free"]
Kind = Literal["missing", "partitions", "config"]


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
    """A topic as the broker describes it."""

    partitions: int
    configs: Mapping[str, str]


class Finding(NamedTuple):
    """Something about a topic that is not as wanted."""

    topic: str
    kind: Kind
    message: str


class AclEntry(NamedTuple):
    """A right that a user of the brokers needs."""

    operation: str
    resource: Literal["topic", "group"]
    name: str
    prefixed: bool = False


def wanted_topics(settings: Settings) -> tuple[WantedTopic, ...]:
    """All topics of a deployment: inputs, the feed-log, outputs and both changelogs."""
    counts = settings.partitions
    by_question, by_feed = counts.forecast_events, counts.feed_log
    forecasts, feed_log = settings.topic(topics.FORECAST_EVENTS), settings.topic(topics.FEED_LOG)
    durable = {"cleanup.policy": Policy("delete"), "retention.ms": Policy(str(FOREVER))}
    kept = {"cleanup.policy": Policy("delete", "free"), "retention.ms": Policy(str(30 * _DAY), "free")}
    compacted = {"cleanup.policy": Policy("compact"), "min.compaction.lag.ms": Policy(str(7 * _DAY), "at-least")}
    state = {
        "cleanup.policy": Policy("compact"),
        "min.compaction.lag.ms": Policy(str(_DAY), "at-least"),
        "segment.bytes": Policy(str(64 * 2**20), "free"),
    }
    events = {
        "cleanup.policy": Policy("delete"),
        "retention.ms": Policy(str(30 * _DAY), "at-least"),
        "message.timestamp.type": Policy("LogAppendTime"),
    }
    setting, follows = "partitions.{}".format, "as many as {}".format
    return (
        WantedTopic(forecasts, by_question, setting("forecast_events"), events),
        WantedTopic(settings.topic(topics.CONTROL_EVENTS), counts.control_events, setting("control_events"), durable),
        WantedTopic(feed_log, by_feed, setting("feed_log"), {**durable, "retention.bytes": Policy(str(FOREVER))}),
        *(WantedTopic(settings.topic(t), by_feed, follows(feed_log), compacted) for t in topics.KEYED_BY_FEED),
        *(WantedTopic(settings.topic(t), by_question, follows(forecasts), kept) for t in topics.KEYED_BY_QUESTION),
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
    if actual.partitions != wanted.partitions:
        message = f"has {actual.partitions} partitions, not {wanted.partitions} ({wanted.count_from})"
        yield Finding(wanted.name, "partitions", message)
    for name, policy in wanted.policies.items():
        value = actual.configs.get(name)
        if value is not None and not policy.accepts(value):
            yield Finding(wanted.name, "config", f"has {name}={value}, not {policy}")


def worker_rights(settings: Settings) -> tuple[AclEntry, ...]:
    """What a worker needs: nothing on the cluster, no right to create topics."""
    internal = f"{settings.prefix}{settings.id}-"
    read = (topics.FORECAST_EVENTS, topics.CONTROL_EVENTS, topics.FEED_LOG, topics.WEIGHTS, topics.ERROR_RATES)
    write = (topics.FORECAST_EVENTS, topics.FEED_LOG, *topics.OUTPUTS)
    return (
        *(AclEntry("Read", "topic", settings.topic(name)) for name in read),
        *(AclEntry("Write", "topic", settings.topic(name)) for name in write),
        *(AclEntry(operation, "topic", internal, prefixed=True) for operation in ("Read", "Write", "DescribeConfigs")),
        *(AclEntry("DescribeConfigs", "topic", settings.topic(name)) for name in topics.ALL),
        AclEntry("Read", "group", internal, prefixed=True),
    )


def set_up_rights(settings: Settings) -> tuple[AclEntry, ...]:
    """What ``topics apply`` and ``settings apply`` need besides."""
    internal, control = f"{settings.prefix}{settings.id}-", settings.topic(topics.CONTROL_EVENTS)
    operations = ("Create", "DescribeConfigs", "AlterConfigs")
    return (
        *(AclEntry(o, "topic", settings.topic(name)) for name in topics.ALL for o in operations),
        *(AclEntry(o, "topic", internal, prefixed=True) for o in operations),
        AclEntry("Read", "topic", control),
        AclEntry("Write", "topic", control),
    )


def acl_commands(entries: Iterable[AclEntry], user: str, bootstrap: str) -> Iterator[str]:
    """The rights as commands of Kafka's own tool, one for each resource."""
    by_resource: dict[tuple[str, str, bool], list[str]] = {}
    for entry in entries:
        by_resource.setdefault((entry.resource, entry.name, entry.prefixed), []).append(entry.operation)
    for (resource, name, prefixed), operations in by_resource.items():
        pattern = " --resource-pattern-type prefixed" if prefixed else ""
        asked = " ".join(f"--operation {operation}" for operation in operations)
        start = f"kafka-acls.sh --bootstrap-server {bootstrap} --add --allow-principal 'User:{user}'"
        yield f"{start} {asked} --{resource} '{name}'{pattern}"
