"""A broker that has ACLs: what a worker says of rights that it lacks, before it starts."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from msgspec.structs import replace

import stream_peer_client as client
from stream_peer.errors import NotAuthorisedError, TopicsError
from stream_peer.kafka.client.admin import KafkaAdmin
from stream_peer.kafka.client.topic_plan import AclEntry, set_up_rights, worker_rights
from stream_peer.settings.process import Partitions, Secret, Security, Settings
from tests.integration.support.secured_kafka import PASSWORD, USER, SecuredKafka, kafka_with_acls
from tests.integration.support.waiting import wait_until

pytestmark = [
    pytest.mark.real_kafka,
]

PARTITIONS = Partitions(forecast_events=1, control_events=1, feed_log=1, dead_letters=1)
ALL = Settings(partitions=PARTITIONS)
STAGES = {
    "all": ALL,
    "question": Settings(stage="question", partitions=PARTITIONS),
    "feed": Settings(stage="feed", partitions=PARTITIONS),
}
EACH = [(stage, entry) for stage, settings in STAGES.items() for entry in worker_rights(settings)]
OPERATIONS = {
    "Read": ACLOperation.READ,
    "Write": ACLOperation.WRITE,
    "Create": ACLOperation.CREATE,
    "Describe": ACLOperation.DESCRIBE,
    "DescribeConfigs": ACLOperation.DESCRIBE_CONFIGS,
    "AlterConfigs": ACLOperation.ALTER_CONFIGS,
}


class Cluster:
    """The broker, and the ACLs of ``USER``."""

    def __init__(self, broker: SecuredKafka, directory: Path) -> None:
        self.client: Any = KafkaAdminClient(bootstrap_servers=broker.plain)
        ca = directory / "ca.crt"
        ca.write_bytes(broker.files["ca/ca.crt"])
        self.bootstrap = broker.bootstrap
        self.security = Security(
            protocol="sasl_ssl", mechanism="SCRAM-SHA-512", username=USER, password=Secret(PASSWORD), ca_file=ca
        )

    def admin(self, settings: Settings) -> KafkaAdmin:
        """What a worker or a command of this stage asks the broker with."""
        return KafkaAdmin(replace(settings, bootstrap=self.bootstrap, security=self.security))

    @contextmanager
    def allowing(self, entries: Iterable[AclEntry]) -> Iterator[None]:
        """Let the user do this and nothing else, while the block runs."""
        acls = [_acl(entry) for entry in entries]
        self.client.create_acls(acls)
        wait_until(lambda: self._held() == set(acls), 30, "the broker never knew the ACLs")
        try:
            yield
        finally:
            self.client.delete_acls([_EVERYTHING])
            wait_until(lambda: not self._held(), 30, "the broker never forgot the ACLs")

    def refusal(self, settings: Settings, entries: Iterable[AclEntry]) -> NotAuthorisedError:
        """What a worker of this stage says that may do just this."""
        with self.allowing(entries), pytest.raises(NotAuthorisedError) as caught:
            self.admin(settings).check(worker_rights(settings))
        return caught.value

    def _held(self) -> set[ACL]:
        found, _ = self.client.describe_acls(_EVERYTHING)
        return set(found)


_EVERYTHING = ACLFilter(
    principal=None,
    host=None,
    operation=ACLOperation.ANY,
    permission_type=ACLPermissionType.ANY,
    resource_pattern=ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY),
)


def _acl(entry: AclEntry) -> ACL:
    kind = ResourceType.TOPIC if entry.resource == "topic" else ResourceType.GROUP
    pattern = ACLResourcePatternType.PREFIXED if entry.prefixed else ACLResourcePatternType.LITERAL
    resource = ResourcePattern(kind, entry.name, pattern)
    return ACL(f"User:{USER}", "*", OPERATIONS[entry.operation], ACLPermissionType.ALLOW, resource)


def rights_in(refusal: NotAuthorisedError) -> list[str]:
    """The lines of a message that name a right."""
    return [line.strip() for line in str(refusal).splitlines()[1:] if " on topic" in line or " on group" in line]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("acls")
    with kafka_with_acls(directory / "broker", [USER], "admin") as broker:
        made = Cluster(broker, directory)
        with made.allowing(set_up_rights(ALL)):
            made.admin(ALL).apply()
        yield made
        made.client.close()


@pytest.mark.parametrize("stage", STAGES)
def test_the_printed_rights_of_a_stage_are_enough_for_its_start(cluster: Cluster, stage: str) -> None:
    with cluster.allowing(worker_rights(STAGES[stage])):
        cluster.admin(STAGES[stage]).check(worker_rights(STAGES[stage]))


@pytest.mark.parametrize(("stage", "entry"), EACH, ids=lambda part: str(part).replace(" ", "-"))
def test_each_right_that_is_missing_is_named_and_no_other(cluster: Cluster, stage: str, entry: AclEntry) -> None:
    rights = worker_rights(STAGES[stage])

    refusal = cluster.refusal(STAGES[stage], [each for each in rights if each != entry])

    assert rights_in(refusal) == [str(entry)]
    assert f"for the user {USER}" in str(refusal)


def test_all_missing_rights_are_named_at_once_with_what_is_wrong_with_topics(cluster: Cluster) -> None:
    gone = {
        AclEntry("Write", "topic", "weights"),
        AclEntry("Read", "topic", "weights"),
        AclEntry("Write", "topic", "feed-log"),
        AclEntry("Read", "group", "stream-peer-", prefixed=True),
    }
    settings = replace(ALL, partitions=replace(PARTITIONS, control_events=2))

    refusal = cluster.refusal(settings, [each for each in worker_rights(settings) if each not in gone])

    assert set(rights_in(refusal)) == {str(entry) for entry in gone}
    assert refusal.exit_code == 77
    assert "control-events has 1 partitions, not 2" in str(refusal)
    assert "weights may be missing: brokers hide a topic from users who may not Describe it" in str(refusal)


def test_a_user_without_any_right_reads_all_that_are_needed(cluster: Cluster) -> None:
    assert rights_in(cluster.refusal(ALL, [])) == [str(entry) for entry in worker_rights(ALL)]


def test_topics_that_are_wrong_while_all_rights_are_there_are_a_matter_of_topics(cluster: Cluster) -> None:
    settings = Settings()

    with cluster.allowing(worker_rights(settings)), pytest.raises(TopicsError) as caught:
        cluster.admin(settings).check(worker_rights(settings))

    assert caught.value.exit_code == 78


def test_what_apply_may_not_do_is_named_before_it_does_anything(cluster: Cluster) -> None:
    settings = replace(ALL, prefix="new-")
    gone = [AclEntry("Create", "topic", "new-weights"), AclEntry("Create", "topic", "new-feed-log")]

    with (
        cluster.allowing([each for each in set_up_rights(settings) if each not in gone]),
        pytest.raises(NotAuthorisedError) as caught,
    ):
        cluster.admin(settings).apply()

    assert set(rights_in(caught.value)) == {str(entry) for entry in gone}
    assert not [name for name in cluster.client.list_topics() if name.startswith("new-")]


def test_a_client_needs_the_right_to_read_the_weights_and_no_other(cluster: Cluster) -> None:
    security = client.Security(username=USER, password=PASSWORD, protocol="sasl_ssl", ca_file=cluster.security.ca_file)
    reading = cluster.allowing([AclEntry("Read", "topic", "weights")])
    with reading, client.WeightsReader(cluster.bootstrap, security=security) as reader:
        assert reader.feeds() == []
    refused = pytest.raises(client.NotAuthorisedError, match=r"^No right to read the topic weights\.$")
    with cluster.allowing([AclEntry("Describe", "topic", "weights")]), refused:
        client.WeightsReader(cluster.bootstrap, security=security).__enter__()
