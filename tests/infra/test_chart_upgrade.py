"""An upgrade changes what it should and nothing that Kubernetes, Kafka or a neighbour remembers by name.

``golden/chart-names.yaml`` holds what the released chart has promised. A change there is a chart that cannot be
upgraded: Kubernetes refuses another selector, and under other names workers are new members.
"""

import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from stream_peer import __version__
from tests.infra.support.chart import CHART, CI, Manifest, manifests, of_ci, parsed, rendered, template
from tests.infra.support.tools import ROOT, said

GOLDEN = Path(__file__).parent / "golden" / "chart-names.yaml"
IMMUTABLE = ("selector", "serviceName", "podManagementPolicy", "volumeClaimTemplates")
# Where a version is told: labels of every object and of what pods are made from, and the image.
OF_A_VERSION = re.compile(
    r"metadata\.labels\.(app\.kubernetes\.io/version|helm\.sh/chart)"
    r"|spec\.template\.metadata\.labels\.(app\.kubernetes\.io/version|helm\.sh/chart)"
    r"|(spec\.template\.)?spec\.(initContainers|containers)\.\d+\.image"
)
LATER = """
image: {tag: 9.9.9}
replicaCount: 5
resources: {requests: {cpu: "1", memory: 2Gi}, limits: {memory: 2Gi}}
logLevel: debug
"""
INTENDED = {
    "StatefulSet release-stream-peer": {
        "spec.replicas",
        "spec.template.metadata.annotations.checksum/settings",
        "spec.template.spec.containers.0.image",
        "spec.template.spec.containers.0.resources.limits.memory",
        "spec.template.spec.containers.0.resources.requests.cpu",
        "spec.template.spec.containers.0.resources.requests.memory",
    },
    "ConfigMap release-stream-peer": {"data.settings.yaml"},
    "ConfigMap release-stream-peer-set-up": {"data.settings.yaml"},
    "Job release-stream-peer-set-up": {
        "spec.template.spec.containers.0.image",
        "spec.template.spec.initContainers.0.image",
    },
    "Job release-stream-peer-set-up-method": {"spec.template.spec.containers.0.image"},
    "Pod release-stream-peer-test": {
        "spec.containers.0.image",
        "spec.initContainers.0.image",
        "spec.initContainers.1.image",
    },
}


def promised(every: Sequence[Manifest]) -> dict[str, Any]:
    """What may never change: all names, and what is immutable of each workload and Service."""
    found: dict[str, Any] = {}
    for manifest in every:
        fixed: dict[str, Any] = {}
        if manifest["kind"] in ("StatefulSet", "Deployment"):
            fixed = {name: manifest["spec"][name] for name in IMMUTABLE if name in manifest["spec"]}
        elif manifest["kind"] == "Service":
            fixed = {name: manifest["spec"].get(name) for name in ("clusterIP", "selector")}
        found[f"{manifest['kind']} {manifest['metadata']['name']}"] = fixed
    return dict(sorted(found.items()))


def leaves(value: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, below in value.items():
            yield from leaves(below, f"{before}{key}.")
    elif isinstance(value, list):
        for number, below in enumerate(value):
            yield from leaves(below, f"{before}{number}.")
    else:
        yield before.removesuffix("."), value


def differences(old: Sequence[Manifest], new: Sequence[Manifest]) -> dict[str, set[str]]:
    """Paths that differ, by object; an object that came or went differs at ``.``.

    Not the signing key: without a cluster each rendering has another (test_chart_signing_key.py).
    """
    before, after = ({f"{m['kind']} {m['metadata']['name']}": dict(leaves(m)) for m in each} for each in (old, new))
    found = {name: {"."} for name in before.keys() ^ after.keys()}
    for name in before.keys() & after.keys():
        paths = before[name].keys() | after[name].keys()
        paths.discard("data.signing-key")
        if different := {path for path in paths if before[name].get(path) != after[name].get(path)}:
            found[name] = different
    return found


@pytest.fixture(scope="module")
def next_version(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The same chart as version 9.2.0 of itself and of the app."""
    chart = tmp_path_factory.mktemp("next") / "stream-peer"
    shutil.copytree(ROOT / CHART, chart)
    about = chart / "Chart.yaml"
    about.write_text(
        about.read_text(encoding="utf-8").replace(f"ersion: {__version__}", "ersion: 9.2.0"), encoding="utf-8"
    )
    return str(chart)


@pytest.mark.parametrize("name", CI)
def test_names_and_what_is_immutable_are_as_promised(name: str) -> None:
    """To promise more (a new object): write ``yaml.safe_dump`` of all ``promised(of_ci(name))`` to the golden file."""
    golden = yaml.safe_load(GOLDEN.read_text(encoding="utf-8"))

    assert promised(of_ci(name)) == golden[name]


@pytest.mark.parametrize("name", CI)
def test_another_version_differs_by_its_version_and_by_nothing_else(name: str, next_version: str) -> None:
    values = CI[name].read_text(encoding="utf-8")
    result = template(values, chart=next_version)
    assert result.returncode == 0, said(result)
    assert "9.2.0" in result.stdout

    changed = differences(of_ci(name), parsed(result.stdout))

    unintended = {each: {path for path in paths if not OF_A_VERSION.fullmatch(path)} for each, paths in changed.items()}
    assert {each: paths for each, paths in unintended.items() if paths} == {}
    assert promised(parsed(result.stdout)) == promised(of_ci(name))


def test_other_values_change_what_they_name_and_nothing_else() -> None:
    assert differences(manifests("{}"), manifests(LATER)) == INTENDED


def test_the_names_of_a_release_do_not_depend_on_the_values_that_an_upgrade_changes() -> None:
    assert promised(manifests(LATER)) == promised(manifests("{}"))


def test_an_upgrade_that_would_be_refused_would_be_noticed(tmp_path: Path) -> None:
    chart = tmp_path / "stream-peer"
    shutil.copytree(ROOT / CHART, chart)
    names = chart / "templates" / "_names.tpl"
    text = names.read_text(encoding="utf-8").replace(
        "app.kubernetes.io/component: worker",
        "app.kubernetes.io/component: worker\nhelm.sh/chart: {{ .Chart.Version }}",
    )
    names.write_text(text, encoding="utf-8")

    broken = parsed(template("{}", chart=str(chart)).stdout)

    assert promised(broken) != promised(manifests("{}"))


def test_the_same_values_give_the_same_bytes() -> None:
    values = CI["everything"].read_text(encoding="utf-8") + "signingKeySecret: {name: ours}\n"

    assert template(values).stdout == rendered(values)
