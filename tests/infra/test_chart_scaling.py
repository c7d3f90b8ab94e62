"""Workers by CPU (HorizontalPodAutoscaler) or by lag (KEDA), and what neither may do."""

import pytest

from stream_peer.kafka.client.topic_plan import wanted_topics
from stream_peer.settings.process import Settings
from tests.infra.support.chart import STAGE, Manifest, all_of, manifests, of_ci, one, template
from tests.infra.support.tools import said

BY_CPU = "autoscaling: {by: cpu, minReplicas: 2, maxReplicas: 8}"
BY_LAG = "autoscaling: {by: lag}\n"
MECHANISMS = {
    "SCRAM-SHA-512": "scram_sha512",
    "SCRAM-SHA-256": "scram_sha256",
    "PLAIN": "plaintext",
}
USER = "protocol: sasl_ssl, username: u, passwordSecret: {name: s}"


def triggers(scaled: Manifest) -> list[Manifest]:
    found: list[Manifest] = scaled["spec"]["triggers"]
    return found


def test_nothing_scales_unless_asked_for() -> None:
    kinds = {manifest["kind"] for manifest in manifests("{}")}

    assert not kinds & {"HorizontalPodAutoscaler", "ScaledObject", "TriggerAuthentication"}


@pytest.mark.parametrize("values", [BY_CPU, BY_LAG])
def test_who_scales_says_how_many_there_are_and_an_upgrade_does_not(values: str) -> None:
    assert "replicas" not in one("StatefulSet", manifests(values))["spec"]
    assert one("StatefulSet", manifests("{}"))["spec"]["replicas"] == 2


def test_by_cpu_there_is_one_autoscaler_and_it_takes_workers_away_slowly() -> None:
    every = manifests(BY_CPU)
    spec = one("HorizontalPodAutoscaler", every)["spec"]

    target = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "release-stream-peer"}
    assert spec["scaleTargetRef"] == target
    assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 8)
    assert spec["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 600
    assert all_of("ScaledObject", every) == []


def test_by_lag_both_stages_count_where_one_workload_runs_both() -> None:
    scaled = one("ScaledObject", manifests(BY_LAG + "kafka: {prefix: acme-, applicationId: x}"))
    settings = Settings(prefix="acme-", id="x")

    asked = {trigger["metadata"]["consumerGroup"]: trigger["metadata"]["topic"] for trigger in triggers(scaled)}

    assert asked == {settings.app_id("question"): "acme-forecast-events", settings.app_id("feed"): "acme-feed-log"}
    assert set(asked.values()) <= {topic.name for topic in wanted_topics(settings)}
    assert all_of("HorizontalPodAutoscaler", manifests(BY_LAG)) == []


def test_by_lag_each_stage_is_scaled_by_its_own_where_they_are_split() -> None:
    scaled = {each["metadata"]["labels"][STAGE]: each for each in all_of("ScaledObject", of_ci("autoscaled"))}

    limits = {
        stage: (each["spec"]["minReplicaCount"], each["spec"]["maxReplicaCount"]) for stage, each in scaled.items()
    }

    assert limits == {"question": (2, 16), "feed": (2, 6)}
    assert [trigger["metadata"]["topic"] for trigger in triggers(scaled["question"])] == ["forecast-events"]
    assert [trigger["metadata"]["topic"] for trigger in triggers(scaled["feed"])] == ["feed-log"]
    names = {each["metadata"]["name"] for each in all_of("StatefulSet", of_ci("autoscaled"))}
    assert {each["spec"]["scaleTargetRef"]["name"] for each in scaled.values()} == names


def test_a_broker_that_is_replaced_scales_nothing_to_zero_and_idle_partitions_count_for_nothing() -> None:
    spec = one("ScaledObject", manifests(BY_LAG))["spec"]

    assert spec["minReplicaCount"] >= 1
    assert spec["cooldownPeriod"] >= 300
    assert "idleReplicaCount" not in spec
    for trigger in spec["triggers"]:
        assert all(isinstance(value, str) for value in trigger["metadata"].values())
        assert trigger["metadata"]["lagThreshold"] == "5000"
        assert trigger["metadata"]["limitToPartitionsWithLag"] == "true"
        assert trigger["metadata"]["scaleToZeroOnInvalidOffset"] == "false"
    down = spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]["scaleDown"]
    assert down["stabilizationWindowSeconds"] == spec["cooldownPeriod"]


@pytest.mark.parametrize(("mechanism", "word"), MECHANISMS.items())
def test_keda_logs_in_as_the_workers_do(mechanism: str, word: str) -> None:
    every = manifests(f"{BY_LAG}kafka: {{security: {{mechanism: {mechanism}, {USER}, caSecret: {{name: c}}}}}}")

    for trigger in triggers(one("ScaledObject", every)):
        assert (trigger["metadata"]["sasl"], trigger["metadata"]["tls"]) == (word, "enable")
        assert trigger["authenticationRef"]["name"] == one("TriggerAuthentication", every)["metadata"]["name"]
    spec = one("TriggerAuthentication", every)["spec"]
    (user,) = spec["env"]
    assert (user["parameter"], user["containerName"]) == ("username", "worker")
    assert {(each["parameter"], each["name"], each["key"]) for each in spec["secretTargetRef"]} == {
        ("password", "s", "password"),
        ("ca", "c", "ca.crt"),
    }


def test_keda_has_the_client_certificate_and_a_user_from_the_secret() -> None:
    security = "{protocol: sasl_ssl, passwordSecret: {name: s, usernameKey: u}, certificateSecret: {name: t}}"

    spec = one("TriggerAuthentication", manifests(f"{BY_LAG}kafka: {{security: {security}}}"))["spec"]

    assert "env" not in spec
    assert {(each["parameter"], each["name"], each["key"]) for each in spec["secretTargetRef"]} == {
        ("password", "s", "password"),
        ("username", "s", "u"),
        ("cert", "t", "tls.crt"),
        ("key", "t", "tls.key"),
    }


def test_where_keda_needs_no_secret_there_is_no_authentication() -> None:
    every = manifests(f"{BY_LAG}kafka: {{security: {{protocol: ssl}}}}")

    assert all_of("TriggerAuthentication", every) == []
    for trigger in triggers(one("ScaledObject", every)):
        assert "authenticationRef" not in trigger
        assert trigger["metadata"]["tls"] == "enable"
        assert "sasl" not in trigger["metadata"]


def test_a_user_without_sasl_is_none() -> None:
    security = "{protocol: ssl, username: u, caSecret: {name: c}}"

    spec = one("TriggerAuthentication", manifests(f"{BY_LAG}kafka: {{security: {security}}}"))["spec"]

    assert spec == {"secretTargetRef": [{"parameter": "ca", "name": "c", "key": "ca.crt"}]}


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ("username: u", "kafka.security.passwordSecret.name"),
        ("username: u, certificateSecret: {name: t}", "kafka.security.passwordSecret.name"),
        ("passwordSecret: {name: s}", "kafka.security.username"),
        ("mechanism: OAUTHBEARER", "autoscaling.lag.authenticationRef.name"),
    ],
)
def test_what_only_workers_have_from_elsewhere_is_asked_for_keda(given: str, missing: str) -> None:
    elsewhere = f"extraEnvFrom: [{{secretRef: {{name: e}}}}]\nkafka: {{security: {{protocol: sasl_ssl, {given}}}}}\n"

    refused = template(elsewhere + BY_LAG)

    assert refused.returncode != 0
    assert f"{missing}: KEDA" in refused.stderr, said(refused)
    own = manifests(elsewhere + "autoscaling: {by: lag, lag: {authenticationRef: {name: mine}}}")
    assert all_of("TriggerAuthentication", own) == []
    assert {trigger["authenticationRef"]["name"] for trigger in triggers(one("ScaledObject", own))} == {"mine"}
    assert manifests(elsewhere + "autoscaling: {by: cpu}")


def test_an_authentication_of_your_own_is_used() -> None:
    security = "{protocol: sasl_ssl, mechanism: OAUTHBEARER, tokenSecret: {name: t}}"
    values = f"autoscaling: {{by: lag, lag: {{authenticationRef: {{name: mine}}}}}}\nkafka: {{security: {security}}}"

    every = manifests(values)

    assert all_of("TriggerAuthentication", every) == []
    for trigger in triggers(one("ScaledObject", every)):
        assert trigger["authenticationRef"] == {"name": "mine", "kind": "TriggerAuthentication"}
        assert trigger["metadata"]["sasl"] == "oauthbearer"


def test_on_plaintext_nobody_logs_in() -> None:
    every = manifests(BY_LAG)

    assert all_of("TriggerAuthentication", every) == []
    assert all("authenticationRef" not in trigger for trigger in triggers(one("ScaledObject", every)))
