"""The gateway of a release: off unless it is wanted, with its files, probes and neighbours."""

import pytest

from stream_peer.gateway.server import ROUTES
from tests.infra.support.chart import all_of, environment, gateway, manifests, of_ci, one, template
from tests.infra.test_chart_monitoring import MONITORS

ON = "{producersSecret: {name: producers}, gateway: {enabled: true, tokensSecret: {name: tokens}}}"


def test_there_is_none_unless_it_is_wanted() -> None:
    assert all_of("Deployment", manifests("{}")) == []
    assert not [each for each in manifests("{}") if each["metadata"]["name"].endswith("-gateway")]


def test_it_has_producers_and_tokens_and_not_the_signing_key() -> None:
    every = manifests(ON)
    variables = environment(gateway(every))

    assert variables["STREAM_PEER_GATEWAY__TOKENS_FILE"] == "/etc/stream-peer/gateway-tokens/tokens"
    assert variables["STREAM_PEER_PRODUCERS_FILE"] == "/etc/stream-peer/producers/producers.yaml"
    assert not {"STREAM_PEER_SIGNING_KEY_FILE", "STREAM_PEER_GATEWAY__CERT_FILE"} & variables.keys()
    mounts = {mount["mountPath"] for mount in gateway(every)["volumeMounts"]}
    assert {"/etc/stream-peer/gateway-tokens", "/etc/stream-peer/producers"} <= mounts
    assert "/etc/stream-peer/signing-key" not in mounts


def test_its_service_finds_its_pods_under_a_name_that_it_answers_to() -> None:
    every = manifests(ON)
    service = one("Service", every, "gateway")
    labels = one("Deployment", every)["spec"]["template"]["metadata"]["labels"]
    workers = one("Service", every, "worker")["spec"]["selector"]

    assert service["spec"]["selector"].items() <= labels.items()
    assert not workers.items() <= labels.items()
    assert f"{service['metadata']['name']}.peer.svc" in environment(gateway(every))["STREAM_PEER_HTTP__HOSTS"].split(
        ","
    )


def test_probes_ask_its_own_paths_and_by_tls_where_it_speaks_it() -> None:
    for every, scheme in ((manifests(ON), "HTTP"), (of_ci("everything"), "HTTPS")):
        asked = [gateway(every)[f"{name}Probe"]["httpGet"] for name in ("liveness", "readiness")]
        assert {get["path"] for get in asked} <= {route.path for route in ROUTES}
        assert {get["scheme"] for get in asked} == {scheme}


@pytest.mark.parametrize("certificate", ["", "c"])
@pytest.mark.parametrize(("kind", "value", "endpoints"), MONITORS)
def test_it_is_scraped_as_workers_are_and_by_tls_where_it_speaks_it(
    kind: str, value: str, endpoints: str, certificate: str
) -> None:
    files = f"tokensSecret: {{name: t}}, certificateSecret: {{name: '{certificate}'}}"
    scraped = f"metrics: {{{value}: {{enabled: true}}}}, http: {{tokenSecret: {{name: h}}}}"
    every = manifests(f"{{producersSecret: {{name: p}}, gateway: {{enabled: true, {files}}}, {scraped}}}")
    pods, service = one("Deployment", every)["spec"]["template"], one("Service", every, "gateway")
    labels, ports = {
        "PodMonitor": (pods["metadata"]["labels"], gateway(every)["ports"]),
        "ServiceMonitor": (service["metadata"]["labels"], service["spec"]["ports"]),
    }[kind]
    (own,), (of_workers,) = (one(kind, every, component)["spec"][endpoints] for component in ("gateway", "worker"))

    assert one(kind, every, "gateway")["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert own["port"] in [port["name"] for port in ports]
    assert own.get("scheme") == ("https" if certificate else None)
    assert {**own, "port": "http"}.items() >= of_workers.items()


def test_only_who_is_named_reaches_it() -> None:
    policy = one("NetworkPolicy", of_ci("everything"), "gateway")

    (rule,) = policy["spec"]["ingress"]
    ((named,),) = [source["namespaceSelector"]["matchExpressions"] for source in rule["from"]]
    assert named["values"] == ["monitoring", "web", "platform"]
    assert policy["spec"]["egress"] == one("NetworkPolicy", of_ci("everything"), "worker")["spec"]["egress"]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ("{gateway: {enabled: true, tokensSecret: {name: t}}}", "producersSecret.name"),
        ("{producersSecret: {name: p}, gateway: {enabled: true}}", "gateway.tokensSecret.name"),
        (
            "{producersSecret: {name: p}, gateway: {enabled: true, clientCaSecret: {name: c}}}",
            "gateway.certificateSecret.name",
        ),
        ("{settings: {gateway: {tokens_file: /t}}}", "gateway.tokensSecret.name"),
    ],
)
def test_what_it_would_end_with_is_refused(values: str, sentence: str) -> None:
    result = template(values)

    assert result.returncode != 0
    assert sentence in result.stderr
