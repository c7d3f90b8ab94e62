"""What GitHub runs for us: valid, pinned, with the least rights, and naming only what is there."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import stream_peer
from tests.infra.support.tools import ROOT, run, said, tool

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
LONGEST_MINUTES = {"nightly.yml": 90}  # ten thousand simulated deployments take up to an hour; others: 60


def workflow(file: Path) -> dict[str, Any]:
    """A workflow; its ``on`` is a truth value in YAML 1.1."""
    document: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return document


def names(files: list[Path]) -> list[str]:
    return [file.name for file in files]


def test_workflows_are_valid_and_safe() -> None:
    checks = (
        run(tool("actionlint")),
        run(tool("zizmor"), "--offline", "--no-progress", "--persona", "auditor", ".github"),
        run(tool("check-jsonschema"), "--builtin-schema", "vendor.github-workflows", *map(str, WORKFLOWS)),
        run(tool("check-jsonschema"), "--builtin-schema", "vendor.dependabot", ".github/dependabot.yml"),
        run(tool("yamllint"), "--strict", "-d", "{extends: relaxed, rules: {line-length: {max: 140}}}", ".github"),
    )

    assert [said(result) for result in checks if result.returncode] == []


def test_what_zizmor_is_there_for_would_be_noticed(tmp_path: Path) -> None:
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    (tmp_path / "ci.yml").write_text(text.replace("- run: make check", "- run: echo ${{ github.head_ref }}"))

    result = run(tool("zizmor"), "--offline", "--no-progress", str(tmp_path / "ci.yml"))

    assert "template-injection" in result.stdout
    assert result.returncode != 0


@pytest.mark.parametrize("file", WORKFLOWS, ids=names(WORKFLOWS))
def test_each_workflow_starts_without_rights_and_ends_in_time(file: Path) -> None:
    document = workflow(file)

    assert document["permissions"] == {}
    assert "group" in document["concurrency"]
    for job in document["jobs"].values():
        assert job["timeout-minutes"] <= LONGEST_MINUTES.get(file.name, 60)
        assert job["permissions"]


@pytest.mark.parametrize("file", WORKFLOWS, ids=names(WORKFLOWS))
def test_each_action_is_pinned_by_hash_with_its_version(file: Path) -> None:
    used = [
        line.strip().removeprefix("- ") for line in file.read_text(encoding="utf-8").splitlines() if "uses:" in line
    ]

    assert [line for line in used if not PINNED.match(line)] == []


def test_every_target_that_a_workflow_makes_exists() -> None:
    texts = [file.read_text(encoding="utf-8") for file in (*WORKFLOWS, ROOT / ".ci" / "run")]
    made = {target for text in texts for target in re.findall(r"\bmake (?:--\S+ )*([a-z]+(?:-[a-z]+)*)", text)} - {
        "make"
    }
    rules = "\n".join((ROOT / name).read_text(encoding="utf-8") for name in ("Makefile", "tools.mk"))

    assert made >= {"check", "test", "release", "image", "stack", "bench-short"}
    assert {target for target in made if not re.search(rf"^{target}:", rules, re.MULTILINE)} == set()


@pytest.mark.parametrize(("tag", "code"), [(f"v{stream_peer.__version__}", 0), ("v9.9.9", 1), ("v", 1)])
def test_only_a_tag_that_is_the_version_of_package_and_chart_becomes_a_release(tag: str, code: int) -> None:
    steps = workflow(ROOT / ".github" / "workflows" / "release.yml")["jobs"]["build"]["steps"]
    (script,) = [step["run"] for step in steps if step.get("name", "").startswith("The tag is the version")]

    result = run("env", f"GITHUB_REF_NAME={tag}", "bash", "-e", "-o", "pipefail", "-c", script)

    assert result.returncode == code, said(result)


def test_a_release_finds_the_base_of_the_image() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    (script,) = re.findall(r"base=\$\((.+)\)", text)

    assert re.fullmatch(r"python:3\.\d+-slim\S*\n", run("bash", "-c", script).stdout)


def test_each_directory_that_is_kept_up_to_date_has_something_to_keep() -> None:
    files = {
        "pip": "*.txt",
        "npm": "package-lock.json",
        "docker": "Dockerfile",
        "docker-compose": "docker-compose.yml",
        "maven": "pom.xml",
        "github-actions": ".github/workflows/*.yml",
    }
    for update in workflow(ROOT / ".github" / "dependabot.yml")["updates"]:
        directory, wanted = ROOT / update["directory"].lstrip("/"), files[update["package-ecosystem"]]
        assert list(directory.glob(wanted)) or (directory / "pyproject.toml").exists(), update


def test_hooks_run_what_the_environments_bring_along() -> None:
    file = ROOT / ".pre-commit-config.yaml"
    result = run(tool("pre-commit"), "validate-config", str(file))
    assert result.returncode == 0, said(result)

    for repository in workflow(file)["repos"]:
        assert repository["repo"] == "local"
        for hook in repository["hooks"]:
            assert (ROOT / hook["entry"].split()[0]).exists(), hook["entry"]
            for argument in hook["entry"].split()[1:]:
                assert not argument.endswith(".py") or (ROOT / argument).exists(), hook["entry"]
