"""What docs/kubernetes.md and the chart's README tell a reader to type and to write works."""

import re
import shlex
from collections.abc import Iterator

import pytest
import yaml

from tests.infra.support.chart import CHART, KUBERNETES, manifests, one
from tests.infra.support.tools import ROOT, run, said, tool

PAGES = {page: (ROOT / page).read_text(encoding="utf-8") for page in ("docs/kubernetes.md", f"{CHART}/README.md")}
BLOCKS = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
NAMESPACE_OF_THE_PAGE = "forecasting"


def blocks(language: str) -> Iterator[str]:
    for page in PAGES.values():
        yield from (text for found, text in BLOCKS.findall(page) if found == language)


def commands(program: str) -> list[list[str]]:
    """What is typed in blocks, and between backticks; a command goes on after a backslash."""
    typed = [line for block in blocks("bash") for line in block.replace("\\\n", " ").splitlines()]
    typed += [" ".join(found.split()) for page in PAGES.values() for found in re.findall(r"`(kubectl [^`]+)`", page)]
    return [shlex.split(line) for line in typed if line.startswith(f"{program} ")]


VALUES = list(blocks("yaml"))
HELM = [words for words in commands("helm") if words[1] in ("install", "upgrade")]
KUBECTL = commands("kubectl")


@pytest.mark.parametrize("values", VALUES, ids=lambda text: text.split(":")[0])
def test_values_that_are_shown_are_accepted(values: str) -> None:
    assert isinstance(yaml.safe_load(values), dict)
    assert one("ConfigMap", manifests(values), "worker")


@pytest.mark.parametrize("words", HELM, ids=lambda words: " ".join(words[:3]))
def test_an_install_or_upgrade_that_is_shown_renders(words: list[str]) -> None:
    of_a_cluster = re.compile(r"--wait|--timeout|\d+m|--reset-then-reuse-values")
    flags = run(tool("helm"), words[1], "--help").stdout

    result = run(tool("helm"), "template", *(word for word in words[2:] if not of_a_cluster.fullmatch(word)))

    assert [word for word in words if word.startswith("--") and not re.search(rf" {word}[ =\[]", flags)] == []
    assert result.returncode == 0, said(result)


def test_the_image_that_is_built_and_loaded_is_that_of_an_install_without_a_value_for_it() -> None:
    built = re.findall(
        r"(?:docker build --tag|load docker-image|image load) (stream-peer:[\d.]+\d)", PAGES["docs/kubernetes.md"]
    )

    assert len(built) == 3
    assert {f"image: {image}" for image in built} <= set(re.findall(r"image: \S+", installed()))


def installed() -> str:
    words = next(words for words in HELM if words[1] == "install")
    return run(
        tool("helm"), "template", *(word for word in words[2:] if not re.fullmatch(r"--wait|--timeout|\d+m", word))
    ).stdout


def test_other_commands_of_helm_have_their_options() -> None:
    others = [words for words in commands("helm") if words not in HELM]

    for words in others:
        flags = run(tool("helm"), words[1], "--help").stdout
        assert [word for word in words if word.startswith("--") and f"{word} " not in flags] == [], words
    assert {words[1] for words in others} == {"test", "rollback"}


@pytest.mark.parametrize("words", KUBECTL, ids=lambda words: " ".join(words[:6]))
def test_commands_of_kubectl_exist_with_their_options(words: list[str]) -> None:
    verb = next(word for word in words[1:] if not word.startswith("--") and word != NAMESPACE_OF_THE_PAGE)
    rest = words[words.index(verb) + 1 :]
    sub = rest[:1] if verb in ("create", "rollout") else []
    sub += rest[1:2] if rest[:1] == ["secret"] else []
    ours = rest.index("--") if "--" in rest else len(rest)

    known = run(tool("kubectl"), verb, *sub, "--help").stdout + run(tool("kubectl"), "options").stdout

    given = {word.split("=")[0] for word in rest[:ours] if word.startswith("--")}
    assert {flag for flag in given if not re.search(rf"{flag}[=\s]", known)} == set()


def test_names_of_objects_that_are_shown_are_those_of_the_chart() -> None:
    result = run(tool("helm"), "template", "stream-peer", CHART, "--set", "stages.split=true")
    both = result.stdout + run(tool("helm"), "template", "stream-peer", CHART).stdout

    for name in re.findall(r"`(stream-peer-[a-z-]+)`", PAGES["docs/kubernetes.md"]):
        assert f"name: {name}\n" in both, name


def test_versions_that_are_promised_are_those_that_are_tested() -> None:
    about = yaml.safe_load((ROOT / CHART / "Chart.yaml").read_text(encoding="utf-8"))

    assert about["kubeVersion"] == f">={KUBERNETES[0]}.0-0"
    assert all(f"Kubernetes {KUBERNETES[0]} or newer" in " ".join(page.split()) for page in PAGES.values())
