"""Strimzi's objects are those that ``stream-peer topics plan`` prints, and outlive the release."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from stream_peer.kafka.client.topic_plan import (
    AclEntry,
    creation_configs,
    set_up_rights,
    wanted_topics,
    worker_rights,
)
from stream_peer.settings.process import Settings
from tests.infra.support.chart import Manifest, all_of, manifests, one, set_up_job, template
from tests.infra.test_chart_values import loaded

LOGIN = "security: {protocol: sasl_ssl, username: peer, passwordSecret: {name: peer}}"
VALUES = {
    "as it is": f"strimzi: {{cluster: events}}\nkafka: {{{LOGIN}}}",
    "of other names and counts": f"""
strimzi: {{cluster: events, namespace: kafka}}
kafka:
  prefix: Acme_1.
  applicationId: "007"
  replication: 2
  partitions: {{forecastEvents: 8, controlEvents: 3, feedLog: 5, deadLetters: 2}}
  {LOGIN}
""",
}


def settings_of(values: str, directory: Path) -> Settings:
    """What the process reads in the settings that the chart renders of the same values."""
    return loaded(manifests(values), directory).settings


def granted(user: Manifest) -> Iterator[AclEntry]:
    for acl in user["spec"]["authorization"]["acls"]:
        resource = acl["resource"]
        for operation in acl["operations"]:
            yield AclEntry(operation, resource["type"], resource["name"], resource["patternType"] == "prefix")


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES.keys())
def test_topics_are_those_that_are_planned(values: str, tmp_path: Path) -> None:
    settings = settings_of(values, tmp_path)

    made = {
        topic["spec"]["topicName"]: (topic["spec"]["partitions"], topic["spec"]["replicas"], topic["spec"]["config"])
        for topic in all_of("KafkaTopic", manifests(values))
    }

    assert made == {
        topic.name: (topic.partitions, settings.replication, creation_configs(topic, settings.replication))
        for topic in wanted_topics(settings)
    }


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES.keys())
def test_the_user_has_the_rights_that_are_printed_for_workers_and_the_set_up(values: str, tmp_path: Path) -> None:
    settings, user = settings_of(values, tmp_path), one("KafkaUser", manifests(values))

    rights = list(granted(user))

    assert len(rights) == len(set(rights))
    assert set(rights) == {*worker_rights(settings), *set_up_rights(settings)}
    assert user["metadata"]["name"] == settings.security.username
    assert user["spec"]["authentication"] == {"type": "scram-sha-512"}


def test_each_object_is_of_the_cluster_in_its_namespace_and_stays_after_an_uninstall() -> None:
    every = manifests(VALUES["of other names and counts"])

    objects = [*all_of("KafkaTopic", every), one("KafkaUser", every)]

    for found in objects:
        about = found["metadata"]
        assert about["labels"]["strimzi.io/cluster"] == "events"
        assert (about["namespace"], about["annotations"]) == ("kafka", {"helm.sh/resource-policy": "keep"})
        assert about["name"] == about["name"].lower().replace("_", "-")
    assert len({found["metadata"]["name"] for found in objects}) == len(objects) == 13


def test_a_certificate_makes_a_user_of_tls_named_as_the_release() -> None:
    security = "security: {protocol: ssl, certificateSecret: {name: release-stream-peer}}"

    user = one("KafkaUser", manifests(f"strimzi: {{cluster: events}}\nkafka: {{{security}}}"))

    assert (user["metadata"]["name"], user["spec"]["authentication"]) == ("release-stream-peer", {"type": "tls"})


def test_the_first_set_up_comes_after_the_objects_and_waits_until_rights_are_granted() -> None:
    with_strimzi, without = (set_up_job(manifests(values)) for values in (VALUES["as it is"], "{}"))

    def hooks(job: Manifest) -> str:
        text: str = job["metadata"]["annotations"]["helm.sh/hook"]
        return text

    def final(job: Manifest) -> list[int]:
        codes: list[int] = job["spec"]["podFailurePolicy"]["rules"][0]["onExitCodes"]["values"]
        return codes

    assert hooks(with_strimzi) == hooks(without).replace("pre-install", "post-install")
    assert (final(with_strimzi), final(without)) == ([2], [2, 77, 78])
    for found in (each for each in manifests(VALUES["as it is"]) if each["kind"] in ("ConfigMap", "ServiceAccount")):
        assert "pre-install" not in yaml.safe_dump(found["metadata"].get("annotations", {}))


def test_nothing_is_made_unless_a_cluster_is_named_nor_what_is_not_wanted() -> None:
    def kinds(values: str) -> set[str]:
        return {found["kind"] for found in manifests(values) if found["kind"].startswith("Kafka")}

    assert kinds("{}") == set()
    assert kinds("strimzi: {cluster: events, user: false}") == {"KafkaTopic"}
    assert kinds(f"strimzi: {{cluster: events, topics: false}}\nkafka: {{{LOGIN}}}") == {"KafkaUser"}
    assert "strimzi.user" in template("strimzi: {cluster: events}").stderr
