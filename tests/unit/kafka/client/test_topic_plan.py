import pytest
from msgspec.structs import replace

from stream_peer.events import topics
from stream_peer.kafka.client.topic_plan import (
    AclEntry,
    ActualTopic,
    Finding,
    Policy,
    WantedTopic,
    acl_commands,
    compare,
    creation_configs,
    in_words,
    missing_rights,
    reader_rights,
    set_up_rights,
    wanted_topics,
    worker_rights,
)
from stream_peer.settings.process import Partitions, Settings

SETTINGS = Settings(prefix="acme-", partitions=Partitions(forecast_events=6, feed_log=3, control_events=2))
WANTED = {topic.name: topic for topic in wanted_topics(SETTINGS)}
AS_WANTED = {t.name: ActualTopic(t.partitions, creation_configs(t, 1)) for t in WANTED.values()}


def policy(name: str, key: str) -> Policy:
    return WANTED[name].policies[key]


def test_every_topic_and_both_changelogs_are_wanted() -> None:
    assert WANTED.keys() == {SETTINGS.topic(name) for name in topics.ALL} | {
        "acme-stream-peer-question-question-state-changelog",
        "acme-stream-peer-feed-feed-state-changelog",
    }


def test_partitions_of_what_is_derived_follow_its_source() -> None:
    counts = {name.removeprefix("acme-"): topic.partitions for name, topic in WANTED.items()}

    assert {counts[name] for name in topics.KEYED_BY_QUESTION} == {6} == {counts["forecast-events"]}
    assert {counts[name] for name in topics.KEYED_BY_FEED} == {3} == {counts["feed-log"]}
    assert counts["stream-peer-question-question-state-changelog"] == 6
    assert counts["stream-peer-feed-feed-state-changelog"] == 3
    assert (counts["control-events"], counts["dead-letters"]) == (2, 4)


def test_what_holds_state_is_compacted_only_and_what_is_the_truth_is_kept_for_ever() -> None:
    for name in ("acme-weights", "acme-error-rates", SETTINGS.changelog("question"), SETTINGS.changelog("feed")):
        assert policy(name, "cleanup.policy") == Policy("compact")
        assert int(policy(name, "min.compaction.lag.ms").value) >= 86_400_000
    for name in ("acme-feed-log", "acme-control-events"):
        assert policy(name, "retention.ms") == Policy("-1")
    assert policy("acme-forecast-events", "message.timestamp.type") == Policy("LogAppendTime")


def test_topics_made_as_wanted_are_as_wanted() -> None:
    assert compare(WANTED.values(), AS_WANTED) == []


def test_a_missing_topic_is_named_with_its_shape() -> None:
    rest = {name: topic for name, topic in AS_WANTED.items() if name != "acme-feed-log"}

    (finding,) = compare(WANTED.values(), rest)

    assert finding == Finding("acme-feed-log", "missing", "is missing (3 partitions, delete)")


def test_other_partitions_are_named_with_both_counts_and_what_they_follow() -> None:
    name = SETTINGS.changelog("question")

    (finding,) = compare(WANTED.values(), {**AS_WANTED, name: AS_WANTED[name]._replace(partitions=4)})

    assert in_words([finding]) == [f"{name} has 4 partitions, not 6 (as many as acme-forecast-events)"]


def test_what_is_the_same_of_all_topics_is_said_once() -> None:
    settings = Settings()
    small = {topic.name: ActualTopic(4, creation_configs(topic, 1)) for topic in wanted_topics(settings)}

    (sentence,) = in_words(compare(wanted_topics(settings), small))

    assert sentence.startswith("forecast-events, control-events, feed-log, weights, ")
    assert sentence.endswith(
        "-changelog have 4 partitions, not 16 "
        "(partitions.forecast_events, partitions.control_events, partitions.feed_log)"
    )


@pytest.mark.parametrize(
    ("logical", "key", "value", "accepted"),
    [
        ("forecast-events", "retention.ms", "-1", True),
        ("forecast-events", "retention.ms", "31536000000", True),
        ("forecast-events", "retention.ms", "86400000", False),
        ("forecast-events", "message.timestamp.type", "CreateTime", False),
        ("feed-log", "retention.ms", "31536000000", False),
        ("feed-log", "cleanup.policy", "compact", False),
        ("weights", "cleanup.policy", "compact,delete", False),
        ("reference-answers", "retention.ms", "1000", True),
        ("reference-answers", "cleanup.policy", "compact", True),
    ],
)
def test_policies_are_demanded_where_meaning_depends_on_them(
    logical: str, key: str, value: str, accepted: bool
) -> None:
    name = SETTINGS.topic(logical)
    changed = ActualTopic(AS_WANTED[name].partitions, {**AS_WANTED[name].configs, key: value})

    findings = compare(WANTED.values(), {**AS_WANTED, name: changed})

    assert [finding.kind for finding in findings] == ([] if accepted else ["config"])


def test_settings_that_the_broker_does_not_tell_are_not_judged() -> None:
    assert compare(WANTED.values(), {name: t._replace(configs={}) for name, t in AS_WANTED.items()}) == []


def test_from_three_replicas_on_a_write_needs_two() -> None:
    topic = WantedTopic("t", 1, "", {})

    assert creation_configs(topic, 2) == {}
    assert creation_configs(topic, 3) == {"min.insync.replicas": "2"}


def test_a_worker_may_not_create_or_alter_anything() -> None:
    entries = worker_rights(SETTINGS)

    assert {entry.operation for entry in entries} == {"Read", "Write", "DescribeConfigs"}
    assert ("Read", "group", "acme-stream-peer-", True) in entries
    assert ("Write", "topic", "acme-control-events", False) not in entries
    others = (*set_up_rights(SETTINGS), *reader_rights(SETTINGS))
    assert all(entry.name.startswith("acme-") for entry in (*entries, *others))


def test_a_stage_needs_the_rights_of_that_stage_alone() -> None:
    of_questions = worker_rights(replace(SETTINGS, stage="question"))
    of_feeds = worker_rights(replace(SETTINGS, stage="feed"))

    assert {entry.name for entry in of_questions if entry.operation == "Write"} == {
        "acme-forecast-events",
        "acme-feed-log",
        "acme-dead-letters",
        SETTINGS.changelog("question"),
    }
    assert ("Read", "topic", "acme-forecast-events", False) not in of_feeds
    assert {entry for entry in of_questions if entry.resource == "group"} == {
        ("Read", "group", "acme-stream-peer-question", False),
        ("Describe", "group", "acme-stream-peer-feed", False),
    }


def test_rights_are_missing_where_brokers_say_so_and_not_where_they_say_nothing() -> None:
    one, both = AclEntry("Read", "topic", "a"), AclEntry("Write", "topic", "a-", prefixed=True)
    needed = [one, both, AclEntry("Read", "topic", "unknown")]

    assert missing_rights(needed, {("topic", "a"): {"Read"}, ("topic", "a-1"): {"Write"}, ("group", "a-2"): {}}) == []
    assert missing_rights(needed, {("topic", "a"): {"Write"}, ("topic", "a-1"): {"Read"}, ("topic", "a-2"): {}}) == [
        "Read on topic a",
        "Write on topics that begin with a-",
    ]
    assert missing_rights([both], {("topic", "a-1"): {"Write"}, ("topic", "a-2"): {}}) == [
        "Write on topics that begin with a- (it is missing for a-2)"
    ]


def test_rights_are_printed_as_commands_of_kafkas_own_tool() -> None:
    commands = list(acl_commands(worker_rights(SETTINGS), "peer", "kafka:9092"))

    start = "kafka-acls.sh --bootstrap-server kafka:9092 --command-config admin.properties --add --allow-principal "
    assert all(command.startswith(start + "User:peer ") for command in commands)
    read = "User:peer --operation Read --group acme-stream-peer- --resource-pattern-type prefixed"
    assert start + read in commands
