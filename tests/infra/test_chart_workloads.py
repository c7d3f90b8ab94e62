"""What runs: workers by stage, under names that last, where the probes and other pods find them."""

import pytest

from stream_peer.serve.http.routes import ROUTES
from tests.infra.support.chart import (
    COMPONENT,
    STAGE,
    Manifest,
    all_of,
    containers,
    environment,
    manifests,
    of_ci,
    one,
    set_up_job,
    worker,
)


def labels_of_pods(stateful_set: Manifest) -> Manifest:
    labels: Manifest = stateful_set["spec"]["template"]["metadata"]["labels"]
    return labels


def selects(selector: Manifest, labels: Manifest) -> bool:
    return selector.items() <= labels.items()


def test_probes_ask_paths_of_the_worker_on_its_port() -> None:
    container = worker(manifests("http: {port: 9000}"))

    asked = {name: container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")}

    assert {get["path"] for get in asked.values()} == {"/healthz/startup", "/healthz/live", "/healthz/ready"}
    assert {get["path"] for get in asked.values()} <= {route.path for route in ROUTES}
    assert {get["port"] for get in asked.values()} == {"http"}
    assert container["ports"] == [{"name": "http", "containerPort": 9000, "protocol": "TCP"}]


def test_a_recovery_has_ten_minutes_and_a_stuck_worker_half_of_one() -> None:
    container = worker(manifests("{}"))

    def patience(probe: Manifest) -> int:
        period, failures = int(probe["periodSeconds"]), int(probe["failureThreshold"])
        return period * failures

    assert patience(container["startupProbe"]) == 600
    assert patience(container["livenessProbe"]) == 30


def test_a_pod_is_a_static_member_by_its_name_unless_told_otherwise() -> None:
    assert environment(worker(manifests("{}")))["STREAM_PEER_INSTANCE"] == "release-stream-peer-0"
    assert "STREAM_PEER_INSTANCE" not in environment(worker(manifests("kafka: {staticMembership: false}")))


def test_a_worker_is_told_to_others_by_its_pods_name_in_the_headless_service() -> None:
    every = manifests("{}")

    url = environment(worker(every), pod="release-stream-peer-7")["STREAM_PEER_HTTP__ADVERTISE"]

    headless = one("Service", every, "worker-names")
    assert url == f"http://release-stream-peer-7.{headless['metadata']['name']}.peer.svc:8080"
    assert headless["spec"]["clusterIP"] == "None"
    assert headless["spec"]["publishNotReadyAddresses"] is True
    assert one("StatefulSet", every)["spec"]["serviceName"] == headless["metadata"]["name"]


def test_a_url_of_your_own_is_told_instead() -> None:
    variables = environment(worker(manifests("http: {advertise: 'https://peer.example.com'}")))

    assert variables["STREAM_PEER_HTTP__ADVERTISE"] == "https://peer.example.com"


def test_state_is_in_memory_and_in_kafka_so_that_there_are_no_volumes_of_a_worker() -> None:
    for name in ("everything", "split"):
        for stateful_set in all_of("StatefulSet", of_ci(name)):
            assert "volumeClaimTemplates" not in stateful_set["spec"]
            assert "persistentVolumeClaimRetentionPolicy" not in stateful_set["spec"]


def test_one_workload_runs_both_stages_unless_they_are_split() -> None:
    assert environment(worker(manifests("{}")))["STREAM_PEER_STAGE"] == "all"

    split = {labels_of_pods(each)[STAGE]: each for each in all_of("StatefulSet", of_ci("split"))}

    assert {each["metadata"]["name"] for each in split.values()} == {
        "release-stream-peer-question",
        "release-stream-peer-feed",
    }
    for stage, each in split.items():
        (container,) = containers(each["spec"]["template"]["spec"])
        assert environment(container)["STREAM_PEER_STAGE"] == stage
    assert (split["question"]["spec"]["replicas"], split["feed"]["spec"]["replicas"]) == (4, 2)


def test_a_stage_has_its_own_resources_or_those_of_all() -> None:
    split = {labels_of_pods(each)[STAGE]: each for each in all_of("StatefulSet", of_ci("split"))}

    def memory(stage: str) -> str:
        text = containers(split[stage]["spec"]["template"]["spec"])[0]["resources"]["limits"]["memory"]
        return str(text)

    assert (memory("question"), memory("feed")) == ("1Gi", "4Gi")


def test_each_workload_selects_its_own_pods_and_the_headless_service_those_of_all() -> None:
    every = of_ci("split")
    sets = all_of("StatefulSet", every)

    for each in sets:
        selector = each["spec"]["selector"]["matchLabels"]
        assert [selects(selector, labels_of_pods(other)) for other in sets].count(True) == 1
        assert selects(selector, labels_of_pods(each))
    headless = one("Service", every, "worker-names")["spec"]["selector"]
    assert all(selects(headless, labels_of_pods(each)) for each in sets)


def test_who_asks_the_service_reaches_workers_that_know_who_owns_a_feed() -> None:
    for name, stages in (("default", ["all"]), ("split", ["feed"])):
        selector = one("Service", of_ci(name), "worker")["spec"]["selector"]
        labels = [labels_of_pods(each) for each in all_of("StatefulSet", of_ci(name))]
        assert [each[STAGE] for each in labels if selects(selector, each)] == stages


@pytest.mark.parametrize("name", ["default", "everything", "split"])
def test_nothing_selects_the_pods_of_the_set_up_or_the_test(name: str) -> None:
    every = of_ci(name)
    others = [one("Pod", every)["metadata"]["labels"]]
    others += [job["spec"]["template"]["metadata"]["labels"] for job in all_of("Job", every)]

    selectors = [service["spec"]["selector"] for service in all_of("Service", every)]
    selectors += [each["spec"]["selector"]["matchLabels"] for each in all_of("StatefulSet", every)]
    selectors += [each["spec"]["selector"]["matchLabels"] for each in all_of("PodDisruptionBudget", every)]

    assert selectors
    assert not any(selects(selector, labels) for selector in selectors for labels in others)


def test_drains_take_one_worker_after_the_other_and_do_not_wait_for_one_that_is_not_ready() -> None:
    budget = one("PodDisruptionBudget", manifests("{}"))["spec"]

    assert budget["maxUnavailable"] == 1
    assert "minAvailable" not in budget
    assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    assert all_of("PodDisruptionBudget", manifests("podDisruptionBudget: {enabled: false}")) == []
    assert {each["spec"]["maxUnavailable"] for each in all_of("PodDisruptionBudget", of_ci("split"))} == {"25%"}


def test_workers_are_spread_over_zones_and_nodes_without_being_held_up() -> None:
    spec = one("StatefulSet", manifests("{}"))["spec"]

    spread = spec["template"]["spec"]["topologySpreadConstraints"]

    assert [each["topologyKey"] for each in spread] == ["topology.kubernetes.io/zone", "kubernetes.io/hostname"]
    for each in spread:
        assert each["whenUnsatisfiable"] == "ScheduleAnyway"
        assert each["labelSelector"] == spec["selector"]


def test_a_selector_of_your_own_stays_as_it_is_and_an_empty_list_spreads_nothing() -> None:
    (own,) = one("StatefulSet", of_ci("everything"))["spec"]["template"]["spec"]["topologySpreadConstraints"]

    assert own["labelSelector"] == {"matchLabels": {"app.kubernetes.io/part-of": "stream-peer"}}
    bare = one("StatefulSet", manifests("topologySpreadConstraints: []"))["spec"]["template"]["spec"]
    assert "topologySpreadConstraints" not in bare


def test_pods_are_replaced_in_order_and_started_together() -> None:
    spec = one("StatefulSet", manifests("{}"))["spec"]

    assert spec["podManagementPolicy"] == "Parallel"
    assert spec["updateStrategy"] == {"type": "RollingUpdate"}
    assert (spec["minReadySeconds"], spec["revisionHistoryLimit"]) == (10, 5)
    assert "lifecycle" not in worker(manifests("{}"))


def test_what_you_add_is_in_every_pod() -> None:
    for spec in (
        one("StatefulSet", of_ci("everything"))["spec"]["template"]["spec"],
        set_up_job(of_ci("everything"))["spec"]["template"]["spec"],
    ):
        assert spec["nodeSelector"] == {"kubernetes.io/os": "linux"}
        assert spec["tolerations"] == [{"key": "dedicated", "operator": "Exists"}]
        assert (spec["priorityClassName"], spec["imagePullSecrets"]) == ("high", [{"name": "pull"}])
        assert spec["dnsConfig"] == {"options": [{"name": "ndots", "value": "2"}]}
        assert {"name": "more", "emptyDir": {}} in spec["volumes"]
        for container in containers(spec):
            assert {"name": "TZ", "value": "UTC"} in container["env"]
            assert container["envFrom"] == [{"configMapRef": {"name": "more"}}]
            assert {"name": "more", "mountPath": "/more"} in container["volumeMounts"]


def test_labels_and_annotations_are_where_they_belong() -> None:
    every = of_ci("everything")
    stateful_set = one("StatefulSet", every)

    assert all(manifest["metadata"]["labels"]["team"] == "forecasting" for manifest in every)
    assert stateful_set["metadata"]["annotations"] == {"reloader.stakater.com/auto": "true"}
    assert stateful_set["spec"]["template"]["metadata"]["annotations"]["example.com/note"] == "yes"
    assert labels_of_pods(stateful_set)["tier"] == "backend"
    assert labels_of_pods(set_up_job(every))["tier"] == "set-up"
    assert all(COMPONENT in manifest["metadata"]["labels"] for manifest in every)
