"""What pods may and may not: the restricted standard, Secrets as files, and who may talk to whom."""

import json

import pytest

from tests.infra.support.chart import CI, Manifest, all_of, containers, environment, manifests, of_ci, one, pod_specs

SECRETS = {
    "a user with a password": "{protocol: sasl_ssl, username: u, passwordSecret: {name: s, key: k}}",
    "a token": "{protocol: sasl_ssl, mechanism: OAUTHBEARER, tokenSecret: {name: s, key: k}}",
    "mutual TLS": "{protocol: ssl, certificateSecret: {name: s}, caSecret: {name: s, key: k}}",
}


@pytest.mark.parametrize("name", CI)
def test_every_pod_passes_the_restricted_standard(name: str) -> None:
    for spec in pod_specs(of_ci(name)):
        assert spec["automountServiceAccountToken"] is False
        assert spec["enableServiceLinks"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] == 10001
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
        assert not any("hostPath" in volume for volume in spec["volumes"])
        for container in containers(spec):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }


def test_a_namespace_may_assign_the_user_as_long_as_it_is_not_root() -> None:
    for spec in pod_specs(manifests("runAsUser: 0")):
        assert spec["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


@pytest.mark.parametrize("name", CI)
def test_every_container_says_what_it_needs_and_which_image_it_is(name: str) -> None:
    for spec in pod_specs(of_ci(name)):
        for container in containers(spec):
            assert {"cpu", "memory"} <= container["resources"]["requests"].keys()
            assert "memory" in container["resources"]["limits"]
            assert ":" in container["image"]
            assert not container["image"].endswith(":latest")


@pytest.mark.parametrize("name", CI)
def test_the_chart_asks_for_no_right_and_makes_no_secret_but_the_signing_key(name: str) -> None:
    kinds = {manifest["kind"] for manifest in of_ci(name)}

    assert not kinds & {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}
    made = [secret["metadata"]["name"] for secret in all_of("Secret", of_ci(name))]
    assert [each.endswith("-signing-key") for each in made] == [True] * (name != "secured")  # there it is named
    assert all(account["automountServiceAccountToken"] is False for account in all_of("ServiceAccount", of_ci(name)))


@pytest.mark.parametrize("security", SECRETS.values(), ids=SECRETS.keys())
def test_secrets_are_files_that_only_the_pods_group_can_read(security: str) -> None:
    for spec in pod_specs(manifests(f"{{kafka: {{security: {security}}}, signingKeySecret: {{name: s}}}}")):
        secrets = [volume for volume in spec["volumes"] if "secret" in volume]
        assert secrets
        assert all(volume["secret"]["secretName"] == "s" for volume in secrets)
        assert all(volume["secret"]["defaultMode"] == 0o440 for volume in secrets)
        for container in containers(spec):
            mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
            assert all(mounts[volume["name"]]["readOnly"] for volume in secrets)
            assert "SECURITY__PASSWORD" not in {name.removeprefix("STREAM_PEER_") for name in environment(container)}


def test_only_workers_have_the_keys_of_producers_each_a_file_beside_the_others() -> None:
    specs = list(pod_specs(of_ci("secured")))

    volumes = [volume for spec in specs for volume in spec["volumes"] if volume["name"] == "producers"]
    variables = [environment(container).get("STREAM_PEER_PRODUCERS_FILE") for s in specs for container in containers(s)]

    assert volumes == [{"name": "producers", "secret": {"secretName": "producers", "defaultMode": 0o440}}]
    assert [found for found in variables if found] == ["/etc/stream-peer/producers/producers.yaml"]
    (worker,) = one("StatefulSet", of_ci("secured"))["spec"]["template"]["spec"]["containers"]
    assert {"name": "producers", "mountPath": "/etc/stream-peer/producers", "readOnly": True} in worker["volumeMounts"]


def test_a_user_can_come_from_the_secret_of_its_password() -> None:
    (container,) = one("StatefulSet", of_ci("secured"))["spec"]["template"]["spec"]["containers"]

    variables = {variable["name"]: variable for variable in container["env"]}

    reference = {"secretKeyRef": {"name": "peer", "key": "username"}}
    assert variables["STREAM_PEER_SECURITY__USERNAME"]["valueFrom"] == reference
    assert variables["STREAM_PEER_SECURITY__PASSWORD_FILE"]["value"] == "/etc/stream-peer/password/password"


def test_the_key_of_a_secret_may_be_any() -> None:
    volumes = one("StatefulSet", of_ci("everything"))["spec"]["template"]["spec"]["volumes"]

    ca = next(volume for volume in volumes if volume["name"] == "ca")

    assert ca["secret"]["items"] == [{"key": "cluster-ca.crt", "path": "ca.crt"}]


def test_a_users_certificate_may_be_that_of_strimzi() -> None:
    secret = "{name: peer, certificateKey: user.crt, privateKey: user.key}"
    every = manifests(f"kafka: {{security: {{protocol: ssl, certificateSecret: {secret}}}}}")

    volumes = one("StatefulSet", every)["spec"]["template"]["spec"]["volumes"]

    (certificate,) = [volume["secret"] for volume in volumes if volume["name"] == "certificate"]
    assert certificate["items"] == [{"key": "user.crt", "path": "tls.crt"}, {"key": "user.key", "path": "tls.key"}]


def test_an_account_of_your_own_is_used_by_every_pod() -> None:
    assert all_of("ServiceAccount", of_ci("secured")) == []
    assert {spec["serviceAccountName"] for spec in pod_specs(of_ci("secured"))} == {"ours"}


def rules(policy: Manifest, direction: str) -> str:
    """The rules of a policy in one direction, as text to look into."""
    return json.dumps(policy["spec"].get(direction, []))


def test_there_is_no_network_policy_unless_asked_for() -> None:
    assert all_of("NetworkPolicy", manifests("{}")) == []


def test_only_named_namespaces_reach_the_http_port_and_nothing_else() -> None:
    policy = one("NetworkPolicy", of_ci("secured"), "worker")

    (ingress,) = policy["spec"]["ingress"]

    assert ingress["ports"] == [{"protocol": "TCP", "port": "http"}]
    release, namespaces = ingress["from"]
    assert release["podSelector"]["matchLabels"]["app.kubernetes.io/instance"] == "release"
    (expression,) = namespaces["namespaceSelector"]["matchExpressions"]
    assert expression == {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["monitoring"]}
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]


@pytest.mark.parametrize("component", ["worker", "set-up"])
def test_names_are_asked_for_where_dns_pods_listen(component: str) -> None:
    names = one("NetworkPolicy", of_ci("secured"), component)["spec"]["egress"][0]

    asked = {(port["protocol"], port["port"]) for port in names["ports"]}
    # Policies see a packet behind the Service's translation; OpenShift's pods of DNS listen on 5353.
    assert asked == {("UDP", 53), ("TCP", 53), ("UDP", 5353), ("TCP", 5353)}
    assert "to" not in names


def test_workers_reach_names_and_brokers_only() -> None:
    names, brokers = one("NetworkPolicy", of_ci("secured"), "worker")["spec"]["egress"]

    assert {port["port"] for port in names["ports"]} == {53, 5353}
    assert brokers == {"ports": [{"protocol": "TCP", "port": 9093}]}
    elsewhere = manifests("networkPolicy: {enabled: true, brokerPorts: [9094, 9095]}")
    assert "9092" not in rules(one("NetworkPolicy", elsewhere, "worker"), "egress")
    assert "9095" in rules(one("NetworkPolicy", elsewhere, "worker"), "egress")
    assert "10.0.0.0/8" in rules(one("NetworkPolicy", of_ci("everything"), "worker"), "egress")


def test_the_set_up_and_the_test_reach_what_they_need_where_all_else_is_closed() -> None:
    every = of_ci("secured")

    set_up, test = one("NetworkPolicy", every, "set-up"), one("NetworkPolicy", every, "test")

    assert rules(set_up, "ingress") == rules(test, "ingress") == "[]"
    assert "9093" in rules(set_up, "egress")
    assert "http" in rules(test, "egress")
    # A policy of the release would come after the Job.
    assert set_up["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade,pre-rollback,post-upgrade"
