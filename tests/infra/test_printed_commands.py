"""What the pages and the help texts tell a user to type exists, down to each option."""

import re
import shlex
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from stream_peer.cli import cli

PAGES = [
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "benchmarks/README.md",
    "docs/*.md",
    "docs/runbook/*.md",
]
FENCED = re.compile(r"^ *(?:```|~~~).*?^ *(?:```|~~~)", re.DOTALL | re.MULTILINE)
OURS = re.compile(r"(?:^|[\s`/(])stream-peer +([^`]*)")
MODULES = re.compile(r"python -m\s+(benchmarks(?:\.\w+)?)")
TARGETS = re.compile(r"`make ([a-z-]+)|^ *make ([a-z-]+)", re.MULTILINE)
LEAST_COMMANDS = 60
LEAST_MODULES = 4


def pages(repository: Path) -> dict[str, str]:
    found = [path for page in PAGES for path in sorted(repository.glob(page))]
    return {str(path.relative_to(repository)): path.read_text(encoding="utf-8") for path in found}


def typed(text: str) -> Iterator[str]:
    """Lines of code blocks, and what stands between backticks: a command may go over the end of its line there."""
    for block in FENCED.findall(text):
        yield from block.splitlines()
    yield from re.findall(r"^ {4}(\S.*)$", text, re.MULTILINE)
    yield from (" ".join(found.split()) for found in re.findall(r"`([^`]+)`", FENCED.sub("", text)))


def commands(repository: Path) -> Iterator[tuple[str, str]]:
    """Every ``stream-peer …`` that is printed anywhere, and where."""
    for page, text in pages(repository).items():
        yield from ((page, found) for line in typed(text) if (found := _command(line)))
    for name, command in every("stream-peer", cli):
        help_lines = (command.help or "").replace("\b", "").splitlines()
        yield from ((f"{name} --help", found) for line in help_lines if (found := _command(line)))


def _command(line: str) -> str:
    if line.startswith(("helm ", "kubectl ")):  # there stream-peer is the name of a release; what a pod runs follows --
        line = line.partition(" -- ")[2]
    found = OURS.search(line)
    return re.split(r" {2,}|[|&>#]| — ", found.group(1))[0].strip() if found else ""


def every(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for sub in command.list_commands(context):
            found = command.get_command(context, sub)
            assert found is not None
            yield from every(f"{name} {sub}", found)


def parse(words: list[str]) -> None:
    """Find the command and its options, without running anything; alternatives such as `a | b` were cut off before."""
    command: click.Command = cli
    context = click.Context(cli)
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(context, words[0])
        if found is None:
            msg = f"no such command: {words[0]}"
            raise click.UsageError(msg)
        command, words, context = found, words[1:], click.Context(found)
    command.make_parser(context).parse_args(words)


def test_every_command_that_is_printed_exists_with_its_options(repository: Path) -> None:
    found = list(dict.fromkeys(commands(repository)))
    wrong = []
    for place, text in found:
        try:
            parse(shlex.split(text.replace("…", "").replace("[", "").replace("]", ""), comments=True))
        except click.BadOptionUsage:  # the text speaks of an option by its name alone
            continue
        except (click.UsageError, ValueError) as error:
            wrong.append(f"{place}: stream-peer {text}: {error}")

    assert wrong == []
    assert len(found) > LEAST_COMMANDS


@pytest.mark.parametrize("text", ["exprt econ ann", "expert econ ann --exlude", "settings diff"])
def test_what_does_not_exist_would_be_noticed(text: str) -> None:
    with pytest.raises(click.UsageError):
        parse(text.split())


def test_every_benchmark_and_target_that_is_printed_exists(repository: Path) -> None:
    makefile = (repository / "Makefile").read_text(encoding="utf-8")
    makefile += (repository / "tools.mk").read_text(encoding="utf-8")
    printed = "\n".join(pages(repository).values())
    modules = set(MODULES.findall(printed))
    targets = {inline or block for inline, block in TARGETS.findall(printed)}

    missing = {module for module in modules if find_spec(module) is None}
    unknown = {target for target in targets if not re.search(rf"^{target}:", makefile, re.MULTILINE)}

    assert (missing, unknown) == (set(), set())
    assert len(modules) >= LEAST_MODULES
    assert {"demo", "test"} <= targets
