"""Helm and Kubernetes accept the chart, for each values file of ``ci/``; what is wrong is refused by its name."""

import tarfile

import pytest
import yaml

from stream_peer import __version__
from tests.infra.support.chart import (
    CHART,
    CI,
    KUBERNETES,
    SET_UP,
    containers,
    kubernetes_accepts,
    manifests,
    of_ci,
    one,
    packed,
    pod_specs,
    rendered,
    template,
)
from tests.infra.support.tools import ROOT, run, said, tool

WRONG = {
    "replicaCount: 0": "replicaCount",
    "replicas: 2": "replicas",
    "kafka: {topicPrefix: x}": "topicPrefix",
    "kafka: {bootstrapServers: kafka}": "bootstrapServers",
    "image: {digest: latest}": "digest",
    "http: {port: 80}": "port",
    "secret: {name: Not_A_Name}": "secret",
    "stages: {split: yes please}": "split",
    "fullnameOverride: a-name-that-leaves-no-room-for-what-comes-behind": "fullnameOverride",
    "podDisruptionBudget: {minAvailable: 1}": "minAvailable",
    "podDisruptionBudget: {maxUnavailable: 0}": "maxUnavailable",
    "setUp: {topics: delete}": "topics",
    "terminationGracePeriodSeconds: 20": "larger than shutdownDeadlineSeconds",
    "terminationGracePeriodSeconds: 45": "smaller than kafka.sessionSeconds",
    # Said twice
    "settings: {session: 60}": "settings.session: say it by kafka.sessionSeconds",
    "settings: {http: {port: 9000}}": "settings.http.port: say it by http.port",
    "settings: {log: {level: debug}}": "settings.log.level: say it by logLevel",
    "settings: {stage: feed}": "settings.stage: say it by stages.split",
    "settings: {http: {hosts: a}}": "settings.http.hosts: say it by http.hosts",
    # What Helm's YAML makes another value of
    (ROOT / "tests" / "cases2" / "helm-values-feed-named-no.yaml").read_text(): "the name of a feed as false",
    "feedSettings: {feeds: {off: {quorum: 3}}}": "the name of a feed as false",
    "feedSettings: {feeds: {On: {quorum: 3}}}": "the name of a feed as true",
    "feedSettings: {feeds: {010: {quorum: 3}}}": "the name of a feed as 8",
    "feedSettings: {feeds: {0x1F: {quorum: 3}}}": "the name of a feed as 31",
    "feedSettings: {feeds: {1.50: {quorum: 3}}}": "the name of a feed as 1.5",
    "feedSettings: {feeds: {1e30: {quorum: 3}}}": "the name of a feed as 1e+30",
    "feedSettings: {feeds: {.inf: {quorum: 3}}}": "the name of a feed as .inf",
    "feedSettings: {defaults: {guard: off}}": "guard",
    "feedSettings: {feeds: {econ: {guard: on}}}": "guard of econ",
    "feedSettings: {defaults: {mixer: {trust_prior: on}}}": "trust_prior of defaults",
    "feedSettings: {feeds: {econ: {shadows: [{name: a}, {mixer: {trust_prior: off}}]}}}": "trust_prior of econ",
    # Security that cannot work
    "kafka: {security: {protocol: SASL_SSL}}": "protocol",
    "kafka: {security: {protocol: sasl_ssl, passwordSecret: {name: a}}}": "kafka.security.username",
    "kafka: {security: {protocol: sasl_ssl, username: a}}": "kafka.security.passwordSecret.name",
    "kafka: {security: {protocol: sasl_ssl, mechanism: OAUTHBEARER}}": "kafka.security.tokenSecret.name",
    "kafka: {security: {protocol: ssl, passwordSecret: {name: a}}}": "kafka.security.passwordSecret would not be used",
    "kafka: {security: {caSecret: {name: a}}}": "kafka.security.caSecret would not be used",
    "kafka: {security: {protocol: sasl_plaintext, username: a, passwordSecret: {name: a}}}": "allowPlaintextPassword",
    # Scaling
    "autoscaling: {by: memory}": "by",
    "autoscaling: {by: cpu, maxReplicas: 17}": "17 workers of release-stream-peer would share 16 partitions",
    "autoscaling: {by: cpu, minReplicas: 5}": "autoscaling.minReplicas",
    "autoscaling: {by: lag, minReplicas: 0}": "minReplicas",
    "autoscaling: {cooldownSeconds: 299}": "cooldownSeconds",
    "stages: {split: true}\nkafka: {partitions: {feedLog: 2}}\nautoscaling: {by: lag}": "of release-stream-peer-feed",
    "autoscaling: {by: lag}\nkafka: {security: {protocol: sasl_ssl, mechanism: OAUTHBEARER, tokenSecret: {name: a}}}": (
        "autoscaling.lag.authenticationRef.name"
    ),
    # Watching
    "metrics: {podMonitor: {enabled: true}, serviceMonitor: {enabled: true}}": "counted twice",
    "metrics: {prometheusRule: {runbookBaseUrl: docs}}": "runbookBaseUrl",
    "metrics: {podMonitor: {interval: often}}": "interval",
}


def test_there_is_a_values_file_for_each_way_to_run_it() -> None:
    assert {*CI} == {"autoscaled", "default", "everything", "observability", "secured", "split"}


@pytest.mark.parametrize(("name", "version"), list(zip(CI, KUBERNETES * 2, strict=True)))
def test_helm_lint_finds_nothing(name: str, version: str) -> None:
    command = (tool("helm"), "lint", "--strict", "--kube-version", f"{version}.0", CHART, "--values", str(CI[name]))

    result = run(*command)

    assert result.returncode == 0, said(result)


@pytest.mark.parametrize("version", KUBERNETES)
def test_what_is_rendered_is_known_to_kubernetes(version: str) -> None:
    texts = [rendered(file.read_text(encoding="utf-8"), version) for file in CI.values()]

    result = kubernetes_accepts([*texts, rendered("autoscaling: {by: cpu}", version)], version)

    assert result.returncode == 0, said(result)


def test_a_misspelt_name_in_a_template_would_be_noticed() -> None:
    text = rendered("{}").replace("podManagementPolicy", "podManagmentPolicy")

    assert kubernetes_accepts([text], "1.34").returncode != 0


@pytest.mark.parametrize(("values", "named"), WRONG.items(), ids=WRONG.keys())
def test_a_wrong_value_is_refused_by_name(values: str, named: str) -> None:
    result = template(values)

    assert result.returncode != 0
    assert named in result.stderr, said(result)


def test_a_kubernetes_that_is_too_old_is_refused() -> None:
    assert "1.29" in template("{}", version="1.28").stderr


def test_a_digest_wins_over_a_tag_and_a_tag_over_the_version_of_the_app() -> None:
    def images(values: str) -> set[str]:
        return {container["image"] for spec in pod_specs(manifests(values)) for container in containers(spec)}

    digest = "sha256:" + "0" * 64
    assert images(f"image: {{registry: r.example.com, tag: x, digest: '{digest}'}}") == {
        f"r.example.com/stream-peer@{digest}"
    }
    assert images("image: {tag: x}") == {"stream-peer:x"}
    assert images("{}") == {f"stream-peer:{__version__}"}


@pytest.mark.parametrize("name", CI)
def test_objects_have_names_that_tell_them_apart(name: str) -> None:
    every = of_ci(name)

    identities = [(manifest["kind"], manifest["metadata"]["name"]) for manifest in every]

    assert len(identities) == len(set(identities))
    assert all(len(identity[1]) <= 63 for identity in identities)


def test_the_longest_name_leaves_room_for_what_kubernetes_puts_behind() -> None:
    longest = manifests(
        f"fullnameOverride: {'n' * 43}\nstages: {{split: true}}\nmetrics: {{dashboards: {{enabled: true}}}}"
    )

    names = {manifest["kind"]: manifest["metadata"]["name"] for manifest in longest}

    # A revision's hash follows a StatefulSet's name in a label of 63 characters.
    assert len(names["StatefulSet"]) <= 52
    assert all(len(name) <= 63 for name in names.values())


def test_the_notes_say_the_next_commands() -> None:
    result = run(tool("helm"), "install", "release", packed(), "--namespace", "peer", "--dry-run=client")

    assert result.returncode == 0, said(result)
    for said_there in (
        "2 worker(s) of release-stream-peer run both stages.",
        "rollout status statefulset/release-stream-peer",
        "port-forward service/release-stream-peer 8080",
        "exec release-stream-peer-0 -- stream-peer topics check",
        "secret.name is empty",
        "protocol is plaintext",
        "Nothing scrapes /metrics yet",
    ):
        assert said_there in result.stdout


@pytest.mark.parametrize("name", CI)
def test_nothing_that_is_said_or_rendered_lacks_its_value(name: str) -> None:
    result = run(tool("helm"), "install", "release", packed(), "--dry-run=client", "--values", str(CI[name]))

    assert result.returncode == 0, said(result)
    assert "<no value>" not in result.stdout
    assert "%!" not in result.stdout


def test_the_chart_is_of_the_version_of_the_program() -> None:
    about = yaml.safe_load((ROOT / CHART / "Chart.yaml").read_text(encoding="utf-8"))

    assert about["appVersion"] == __version__


def test_the_notes_say_which_workers_are_too_many() -> None:
    result = run(
        *(tool("helm"), "install", "release", packed(), "--dry-run=client", "--set", "replicaCount=20"),
    )

    assert "There are 16 partitions: 4 of them will have nothing to do." in result.stdout


def test_a_packed_chart_holds_all_that_its_templates_read() -> None:
    with tarfile.open(packed()) as archive:
        held = set(archive.getnames())
    read = [
        file
        for folder in ("rules", "dashboards", "files", "templates")
        for file in (ROOT / CHART / folder).rglob("*.*")
    ]
    assert len(read) > 20
    assert {f"stream-peer/{file.relative_to(ROOT / CHART)}" for file in read} <= held


def test_without_set_up_nothing_runs_before_the_release() -> None:
    without = manifests("setUp: {enabled: false}\nnetworkPolicy: {enabled: true}")

    assert [
        manifest for manifest in without if manifest["metadata"]["labels"]["app.kubernetes.io/component"] == SET_UP
    ] == []
    assert one("StatefulSet", without)
