import json
import re

import click

from stream_peer.cli import cli
from tests.infra.support.tools import ROOT, run, said, tool

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def instructions() -> list[str]:
    joined = re.sub(r"\\\n", " ", DOCKERFILE)
    return [line.strip() for line in joined.splitlines() if line.strip() and not line.startswith("#")]


def final_stage() -> list[str]:
    every = instructions()
    last = max(index for index, line in enumerate(every) if line.startswith("FROM "))
    return every[last:]


def test_hadolint_finds_nothing() -> None:
    result = run(tool("hadolint"), "Dockerfile")

    assert result.returncode == 0, said(result)


def test_every_stage_starts_from_the_base_that_can_be_replaced() -> None:
    stages = [line for line in instructions() if line.startswith("FROM ")]

    assert instructions()[0].startswith("ARG BASE=python:3.")
    assert len(stages) == 2
    assert all(stage.startswith("FROM ${BASE}") for stage in stages)


def test_the_image_runs_as_a_numeric_user_without_a_shell_in_between() -> None:
    final = final_stage()

    assert "USER 10001:10001" in final
    assert 'ENTRYPOINT ["stream-peer"]' in final
    assert not any(line.startswith("RUN ") for line in final)


def test_every_package_of_the_image_is_pinned_with_hashes_and_nothing_names_an_index() -> None:
    installs = [line for line in instructions() if "-m pip" in line and "-r requirements/" in line]
    files = re.findall(r"-r (requirements/\S+)", " ".join(installs))

    assert set(files) == {"requirements/build.txt", "requirements/runtime.txt"}
    assert " ".join(installs).count("--require-hashes") == len(files)
    for file in files:
        text = (ROOT / file).read_text(encoding="utf-8")
        pins = re.findall(r"^\S+==\S+ \\$", text, flags=re.MULTILINE)
        assert pins, file
        assert len(re.findall(r"^[A-Za-z0-9]", text, flags=re.MULTILINE)) == len(pins), file
        assert "://" not in "".join(line for line in text.splitlines() if not line.lstrip().startswith("#")), file


def test_the_build_context_holds_only_what_is_copied() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    let_in = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    copied = {
        path
        for line in instructions()
        if line.startswith("COPY ") and "--from" not in line
        for path in line.split()[1:-1]
    }

    assert "*" in ignored
    assert copied == let_in


def test_the_health_check_is_a_command_of_the_product_without_a_shell() -> None:
    check = next(line for line in final_stage() if line.startswith("HEALTHCHECK "))
    options, command = check.split(" CMD ")
    words = json.loads(command)
    timeout = re.search(r"--timeout=(\d+)s", options)
    asking = cli.get_command(click.Context(cli), words[1])

    assert words[0] == "stream-peer"
    assert asking is not None
    own = asking.make_context("stream-peer health", words[2:], resilient_parsing=True).params["timeout"]
    assert timeout
    assert own < float(timeout.group(1))
