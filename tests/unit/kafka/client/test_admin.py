import time
from types import SimpleNamespace, TracebackType
from typing import Any, Self

import pytest
from kafka import TopicPartition
from kafka import errors as kafka

from stream_peer.errors import BrokerUnavailableError, NotAuthorisedError, StreamPeerError, TopicsError
from stream_peer.kafka.client import admin as kafka_admin
from stream_peer.kafka.client.admin import KafkaAdmin
from stream_peer.kafka.client.topic_plan import creation_configs, wanted_topics
from stream_peer.settings.process import Settings

SETTINGS = Settings(bootstrap="kafka:1", broker_patience=0.0)
WANTED = wanted_topics(SETTINGS)


class FakeCluster:
    """Topics of a cluster, and what it answers instead where something is to fail."""

    def __init__(self) -> None:
        self.topics = {t.name: (t.partitions, creation_configs(t, 1)) for t in WANTED}
        self.codes: dict[str, int] = {}
        self.create_code = 0
        self.altered = "OK"
        self.operations: list[str] | None = ["CREATE", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"]
        self.error: Exception | None = None
        self.leaders_are_away = False
        self.end = 0
        self.is_late = False
        self.stored: dict[str, dict[str, str]] = {}
        self.ids: dict[str, str] = {}

    def catch_up(self) -> None:
        """The settings that were altered are in use."""
        for name, altered in self.stored.items():
            partitions, configs = self.topics[name]
            self.topics[name] = (partitions, {**configs, **altered})

    def __call__(self, **_: Any) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    def describe_topics(self, names: list[str]) -> list[dict[str, Any]]:
        if self.error is not None:
            raise self.error
        return [
            {
                "name": name,
                "topic_id": self.ids.get(name, "00000000-0000-0000-0000-000000000000"),
                "error_code": self.codes.get(name, 0 if name in self.topics else 3),
                "partitions": [{"partition_index": n} for n in range(self.topics.get(name, (0, {}))[0])],
                "authorized_operations": self.operations,
            }
            for name in names
        ]

    def list_partition_offsets(self, asked: dict[TopicPartition, Any]) -> dict[TopicPartition, Any]:
        if self.leaders_are_away:
            raise kafka.KafkaConnectionError
        return {place: SimpleNamespace(offset=self.end) for place in asked}

    def describe_configs(self, resources: list[Any], config_filter: str) -> dict[str, Any]:
        assert config_filter == "all"
        found = {r.name: {key: {"value": v} for key, v in self.topics[r.name][1].items()} for r in resources}
        return {"topic": found}

    def create_topics(self, asked: dict[str, Any], *, raise_errors: bool) -> dict[str, Any]:
        assert not raise_errors
        for name, shape in asked.items():
            self.topics[name] = (shape["num_partitions"], shape["configs"])
        return {"topics": [{"name": name, "error_code": self.create_code, "error_message": None} for name in asked]}

    def wait_for_topics(self, names: list[str], timeout_ms: int) -> None:
        assert timeout_ms
        assert set(names) <= set(self.topics)

    def alter_configs(self, resources: list[Any]) -> dict[str, Any]:
        self.stored = {resource.name: resource.configs for resource in resources}
        if not self.is_late:
            self.catch_up()
        return {"topic": {resource.name: self.altered for resource in resources}}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    made = FakeCluster()
    monkeypatch.setattr(kafka_admin, "KafkaAdminClient", made)
    monkeypatch.setattr(kafka_admin, "preflight", lambda *_, **__: None)
    return made


def refusal(kind: type[StreamPeerError]) -> str:
    with pytest.raises(kind) as caught:
        KafkaAdmin(SETTINGS).apply()
    return str(caught.value)


def test_topics_as_planned_need_nothing(cluster: FakeCluster) -> None:
    assert KafkaAdmin(SETTINGS).apply() == []
    KafkaAdmin(SETTINGS).check()


def test_what_is_missing_is_made_and_what_differs_is_set(cluster: FakeCluster) -> None:
    del cluster.topics["weights"]
    cluster.topics["feed-log"][1]["retention.ms"] = "1000"

    done = KafkaAdmin(SETTINGS).apply()

    assert [(finding.topic, finding.kind) for finding in done] == [("feed-log", "config"), ("weights", "missing")]
    KafkaAdmin(SETTINGS).check()


def test_apply_ends_when_the_brokers_use_the_new_settings(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.topics["feed-log"][1]["retention.ms"] = "1000"
    cluster.is_late = True

    def pause(_: float) -> None:  # a broker learns of new settings a moment after they are stored
        cluster.catch_up()

    monkeypatch.setattr(time, "sleep", pause)
    KafkaAdmin(Settings(bootstrap="kafka:1", broker_patience=10.0)).apply()

    KafkaAdmin(SETTINGS).check()


def test_apply_says_what_the_brokers_do_not_use_yet(cluster: FakeCluster) -> None:
    cluster.topics["feed-log"][1]["retention.ms"] = "1000"
    cluster.is_late = True

    assert "do not use the new settings yet: feed-log has retention.ms=1000" in refusal(BrokerUnavailableError)


def test_partitions_are_left_alone_after_the_rest_was_done(cluster: FakeCluster) -> None:
    del cluster.topics["weights"]
    cluster.topics["feed-log"] = (8, cluster.topics["feed-log"][1])

    message = refusal(TopicsError)

    assert "feed-log has 8 partitions, not 16" in message
    assert "weights" not in message
    assert cluster.topics["feed-log"][0] == 8
    assert "weights" in cluster.topics


def test_each_topic_that_we_may_not_see_is_named(cluster: FakeCluster) -> None:
    cluster.codes = {"weights": 29, "feed-log": 29}

    message = refusal(NotAuthorisedError)

    assert "\n  feed-log, weights may be missing: brokers hide a topic from users who may not Describe it" in message


def test_every_right_that_apply_lacks_is_named_before_it_does_anything(cluster: FakeCluster) -> None:
    del cluster.topics["weights"], cluster.topics["error-rates"]
    cluster.topics["feed-log"][1]["retention.ms"] = "1000"
    cluster.operations = ["DESCRIBE", "DESCRIBE_CONFIGS"]

    message = refusal(NotAuthorisedError)

    assert "Rights are missing at kafka:1; `stream-peer topics plan --offline` prints" in message
    for right in ("Create on topic weights", "Create on topic error-rates", "AlterConfigs on topic feed-log"):
        assert f"\n  {right}\n" in message
    assert "weights" not in cluster.topics


def test_a_broker_that_does_not_tell_rights_shows_them_by_its_refusal(cluster: FakeCluster) -> None:
    del cluster.topics["weights"], cluster.topics["error-rates"]
    cluster.operations = None
    cluster.create_code = 29

    message = refusal(NotAuthorisedError)

    assert "\n  Create on topic weights\n  Create on topic error-rates" in message


def test_topics_that_the_brokers_do_not_make_say_why(cluster: FakeCluster) -> None:
    del cluster.topics["weights"]
    cluster.create_code = 38

    assert refusal(TopicsError) == "The brokers do not make weights: InvalidReplicationFactor"


def test_policies_that_the_brokers_do_not_set_say_why(cluster: FakeCluster) -> None:
    cluster.topics["feed-log"][1]["retention.ms"] = "1000"
    cluster.altered = "PolicyViolationError: no"

    assert refusal(TopicsError) == "The brokers do not set the policies of feed-log: PolicyViolationError: no"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (kafka.KafkaTimeoutError("slow"), BrokerUnavailableError),
        (kafka.KafkaConnectionError("gone"), BrokerUnavailableError),
        (kafka.ClusterAuthorizationFailedError("no"), NotAuthorisedError),
    ],
)
def test_errors_of_the_client_become_ours(cluster: FakeCluster, error: Exception, kind: type[StreamPeerError]) -> None:
    cluster.error = error

    assert "kafka:1" in refusal(kind)


@pytest.mark.parametrize("who", ["all but one", "leaders of partitions"])
def test_a_cluster_of_which_only_some_brokers_answer_is_waited_for(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    cluster.error = kafka.KafkaConnectionError("two of three are away") if who == "all but one" else None
    cluster.leaders_are_away = who == "leaders of partitions"
    pauses: list[float] = []
    told: list[str] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            cluster.error, cluster.leaders_are_away = None, False

    monkeypatch.setattr(time, "sleep", pause)

    KafkaAdmin(Settings(bootstrap="kafka:1", broker_patience=30.0), waiting=told.append).check()

    assert len(pauses) == 3
    assert len(told) == 1


def test_a_new_cluster_that_has_no_coordinator_yet_is_no_fault(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.error = kafka.CoordinatorNotAvailableError("stream-peer-question")
    alarmed, told = list[str](), list[str]()

    def pause(_seconds: float) -> None:
        cluster.error = None

    monkeypatch.setattr(time, "sleep", pause)

    KafkaAdmin(Settings(bootstrap="kafka:1", broker_patience=30.0), waiting=alarmed.append, young=told.append).check()

    assert told == ["The brokers at kafka:1 are making their topic for offsets, as a new cluster does."]
    assert not alarmed


def test_too_few_brokers_are_one_sentence_after_the_patience(cluster: FakeCluster) -> None:
    cluster.leaders_are_away = True

    with pytest.raises(BrokerUnavailableError) as caught:
        KafkaAdmin(SETTINGS).check()

    assert str(caught.value) == (
        "Brokers were awaited for 0 s: The brokers at kafka:1 do not answer any more (KafkaConnection)."
    )


def test_partitions_that_were_added_to_one_topic_have_a_way_back_that_the_other_topics_do_not_refuse(
    cluster: FakeCluster,
) -> None:
    cluster.topics["forecast-events"] = (32, cluster.topics["forecast-events"][1])

    message = refusal(TopicsError)

    assert "delete forecast-events, run `stream-peer topics apply`, and start them with on_recreated: keep" in message
    assert "set them to what there is" not in message


def grow(cluster: FakeCluster, follows: str) -> None:
    for topic in WANTED:
        if follows in topic.count_from:
            cluster.topics[topic.name] = (32, cluster.topics[topic.name][1])


def test_counts_that_agree_with_each_other_are_those_to_set_while_nothing_is_stored(cluster: FakeCluster) -> None:
    grow(cluster, "forecast")

    assert "set them to what there is" in refusal(TopicsError)


@pytest.mark.parametrize("follows", ["forecast", "feed", ""])
def test_where_a_log_and_its_state_have_grown_feeds_move_to_other_topics(cluster: FakeCluster, follows: str) -> None:
    cluster.end = 7
    grow(cluster, follows)

    message = refusal(TopicsError)

    assert "under another prefix (`stream-peer topics apply --prefix NEW-`), and move each feed" in message
    assert "delete" not in message
    assert "set them" not in message


FOLDED = ["forecast-events", "control-events", "feed-log", SETTINGS.changelog("question"), SETTINGS.changelog("feed")]


@pytest.mark.parametrize("name", FOLDED)
def test_a_folded_topic_that_was_deleted_is_named_with_the_way_back(cluster: FakeCluster, name: str) -> None:
    cluster.ids = {topic.name: f"first of {topic.name}" for topic in WANTED}
    former = KafkaAdmin(SETTINGS).check()
    assert KafkaAdmin(SETTINGS).check((), former) == former == cluster.ids
    shape = cluster.topics.pop(name)

    with pytest.raises(TopicsError, match="topics apply") as missing:
        KafkaAdmin(SETTINGS).check((), former)
    cluster.topics[name], cluster.ids[name] = shape, "second"
    with pytest.raises(TopicsError) as recreated:
        KafkaAdmin(SETTINGS).check((), former)

    assert f"{name} was deleted while workers run" in str(missing.value)
    assert f"{name} was deleted and recreated while workers run" in str(recreated.value)
    assert all("restart the workers with on_recreated: keep" in str(each.value) for each in (missing, recreated))
    assert "topics apply" not in str(recreated.value)


def test_an_output_may_be_recreated_and_a_broker_without_ids_tells_nothing(cluster: FakeCluster) -> None:
    cluster.ids = {"weights": "second"}

    former = {topic.name: "first" for topic in WANTED}

    assert KafkaAdmin(SETTINGS).check((), former) == {"weights": "second"}
