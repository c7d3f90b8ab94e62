"""The Job before each install and upgrade, the one after an upgrade, and the pod of ``helm test``."""

import asyncio
import os
import sys

import pytest

from stream_peer import __version__
from tests.infra.support.chart import CI, SET_UP, TEST, Manifest, all_of, containers, manifests, of_ci, one, set_up_job
from tests.unit.serve.http.serving import serving

HOOK, WEIGHT, DELETION = "helm.sh/hook", "helm.sh/hook-weight", "helm.sh/hook-delete-policy"


def commands(spec: Manifest) -> list[list[str]]:
    return [container["args"] for container in containers(spec)]


def job(name: str) -> Manifest:
    return set_up_job(of_ci(name))


def method_job(values: str = "{}") -> Manifest:
    return set_up_job(manifests(values), "set-up-method")


def test_the_topics_are_made_before_the_feed_settings_are_applied() -> None:
    assert commands(job("default")["spec"]["template"]["spec"]) == [
        ["topics", "apply"],
        ["settings", "apply", "--no-wait"],
    ]


def test_topics_of_others_are_checked_and_feed_settings_of_others_left_alone() -> None:
    assert commands(job("split")["spec"]["template"]["spec"]) == [["topics", "check"]]


@pytest.mark.parametrize("name", CI)
def test_what_the_job_needs_is_there_before_it_and_before_the_release(name: str) -> None:
    hooks = [m for m in of_ci(name) if m["metadata"]["labels"]["app.kubernetes.io/component"] == SET_UP]
    spec = job(name)["spec"]["template"]["spec"]

    needed = {("ConfigMap", volume["configMap"]["name"]) for volume in spec["volumes"] if "configMap" in volume}
    if name != "secured":  # there the account is one that exists
        needed.add(("ServiceAccount", spec["serviceAccountName"]))

    weights = {(m["kind"], m["metadata"]["name"]): int(m["metadata"]["annotations"][WEIGHT]) for m in hooks}
    jobs = {m["metadata"]["name"]: m["metadata"]["annotations"][HOOK] for m in hooks if m["kind"] == "Job"}
    assert jobs.pop(job(name)["metadata"]["name"]) == "pre-install,pre-upgrade,pre-rollback"
    assert list(jobs.values()) == ([] if name == "split" else ["post-upgrade"])
    of_needed = {m["metadata"]["annotations"][HOOK] for m in hooks if m["kind"] != "Job"}
    assert of_needed == {"pre-install,pre-upgrade,pre-rollback,post-upgrade"}
    assert needed <= weights.keys()
    assert all(weights[each] < weights["Job", job(name)["metadata"]["name"]] for each in needed)


def test_after_an_upgrade_the_version_of_the_method_rises_once_no_former_worker_runs() -> None:
    spec = method_job("setUp: {formerWorkersSeconds: 1200}")["spec"]["template"]["spec"]

    assert commands(spec) == [["settings", "apply", "--no-wait", "--upgrade", "1200"]]
    (container,) = containers(spec)
    (former,) = job("default")["spec"]["template"]["spec"]["containers"]
    assert {**container, "name": "", "args": []} == {**former, "name": "", "args": []}
    of_pod, of_former = ({**each, "containers": []} for each in (spec, job("default")["spec"]["template"]["spec"]))
    assert of_pod == {key: value for key, value in of_former.items() if key != "initContainers"}


def test_a_job_after_an_upgrade_ends_before_helm_gives_up() -> None:
    assert commands(method_job()["spec"]["template"]["spec"])[0][-1] == "240"
    assert method_job()["spec"]["backoffLimit"] == 6


def test_a_job_that_failed_stays_to_be_looked_at_and_goes_before_the_next() -> None:
    assert job("default")["metadata"]["annotations"][DELETION] == "before-hook-creation,hook-succeeded"
    assert job("default")["spec"]["template"]["spec"]["restartPolicy"] == "Never"


def test_what_does_not_mend_itself_is_not_tried_again() -> None:
    final, disrupted = job("default")["spec"]["podFailurePolicy"]["rules"]

    # Wrong usage, not authorised, wrong settings or topics; a broker that is away is 69.
    assert final == {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [2, 77, 78]}}
    assert disrupted["action"] == "Ignore"
    assert (job("default")["spec"]["backoffLimit"], job("default")["spec"]["activeDeadlineSeconds"]) == (6, 600)


def test_helm_test_asks_the_service_and_the_topics() -> None:
    every = manifests("http: {port: 9000}")
    pod = one("Pod", every)

    ready, version, topics = containers(pod["spec"])

    assert pod["metadata"]["annotations"][HOOK] == "test"
    assert pod["spec"]["restartPolicy"] == "Never"
    (service,) = all_of("Service", every, "worker")
    assert ready["args"] == ["health", "--http-host", service["metadata"]["name"], "--timeout", "20"]
    assert {"name": "WORKER", "value": f"{service['metadata']['name']}:9000"} in version["env"]
    assert topics["args"] == ["topics", "check"]
    assert pod["metadata"]["labels"]["app.kubernetes.io/component"] == TEST


async def asked(script: str) -> tuple[int | None, str]:
    """How the script ends, and what it says, beside the worker's real HTTP server."""
    async with serving() as client:
        variables = {**os.environ, "WORKER": client.server.url.removeprefix("http://")}
        command = (sys.executable, "-c", script)
        process = await asyncio.create_subprocess_exec(*command, env=variables, stderr=asyncio.subprocess.PIPE)
        _, errors = await asyncio.wait_for(process.communicate(), 60)
        return process.returncode, errors.decode()


@pytest.mark.parametrize(
    ("image", "ends"),
    [(__version__, (0, "")), ("9.9.9", (1, f"The worker runs {__version__}, this image is 9.9.9.\n"))],
)
def test_helm_test_fails_where_the_worker_is_not_of_the_images_version(image: str, ends: tuple[int, str]) -> None:
    version = containers(one("Pod", manifests("{}"))["spec"])[1]
    (script,) = version["args"]
    assert version["command"] == ["python", "-c"]

    of_image = script.replace("from stream_peer import __version__", f"__version__ = {image!r}")

    assert asyncio.run(asked(of_image)) == ends
