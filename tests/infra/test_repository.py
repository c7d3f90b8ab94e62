"""What must be true of the repository itself."""

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

TOP_LEVEL = [
    ".ci/run",
    ".dockerignore",
    ".editorconfig",
    ".github/workflows/ci.yml",
    ".pre-commit-config.yaml",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Dockerfile",
    "LICENSE",
    "Makefile",
    "README.md",
    "SECURITY.md",
    "benchmarks/README.md",
    "docker-compose.yml",
    "docs/index.md",
    "examples/read_weights.py",
    "helm/stream-peer/Chart.yaml",
    "pyproject.toml",
]
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|home/[a-z]\w*|Users|root|tmp/plan)/[\w.]")
REGISTRY = re.compile(r"pypi\.org|pythonhosted|registry\.npmjs|repo1?\.maven|deb\.debian|--(extra-)?index-url")
REFERENCE = re.compile(r"\b[Ss]ee\s+``([\w.]+)``")
DEFINED = re.compile(r"^ *(?:(?:async )?(?:def|class) |self\.)?(\w+)(?=[(:]| = )", re.MULTILINE)
IMPORTED = re.compile(r"^from [\w.]+\.(\w+) import", re.MULTILINE)
LONGEST_FUNCTION = 60


def files(repository: Path) -> list[Path]:
    """What is committed or about to be."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    run = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    if run.returncode:
        pytest.skip("not a git work tree")
    return [path for line in run.stdout.splitlines() if (path := repository / line).is_file()]


def texts(repository: Path) -> dict[str, str]:
    found = {}
    for path in files(repository):
        try:
            found[str(path.relative_to(repository))] = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
    return found


@pytest.mark.parametrize("name", TOP_LEVEL)
def test_what_a_newcomer_looks_for_is_there(repository: Path, name: str) -> None:
    assert (repository / name).is_file()


@pytest.mark.parametrize("pattern", [MACHINE_PATH, REGISTRY], ids=["machine paths", "registries"])
def test_nothing_names_one_machine_or_one_registry(repository: Path, pattern: re.Pattern[str]) -> None:
    found = {
        f"{name}:{number}": line.strip()[:100]
        for name, text in texts(repository).items()
        if name not in {"LICENSE", "tests/infra/test_repository.py"}
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    }

    assert found == {}


@pytest.mark.parametrize("word", ["TODO", "FIXME", "XXX"])
def test_nothing_is_left_for_later_in_a_comment(repository: Path, word: str) -> None:
    marked = [n for n, text in texts(repository).items() if n.endswith(".py") and re.search(rf"#.*\b{word}\b", text)]

    assert marked == []


def test_no_function_is_longer_than_sixty_lines(repository: Path) -> None:
    too_long = {
        f"{name}:{node.lineno} {node.name}": length
        for name, text in texts(repository).items()
        if name.endswith(".py")
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if (length := _code_lines(node)) > LONGEST_FUNCTION
    }

    assert too_long == {}


def _code_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from ``def`` to the end without the docstring: a good one is no fault."""
    assert node.end_lineno
    first = node.body[0]
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    docstring = (first.end_lineno or 0) - first.lineno + 1 if is_docstring else 0
    return node.end_lineno - node.lineno + 1 - docstring


def test_every_command_in_the_first_lines_of_the_readme_is_a_target(repository: Path) -> None:
    head = "\n".join((repository / "README.md").read_text().splitlines()[:30])
    targets = set(re.findall(r"^([a-z-]+):", (repository / "Makefile").read_text(), re.MULTILINE))

    commands = re.findall(r"^ {4}make ([a-z-]+)", head, re.MULTILINE)

    assert {"demo", "test"} <= set(commands) <= targets


def test_every_file_that_a_page_links_to_exists(repository: Path) -> None:
    missing = [
        f"{name}: {target}"
        for name, text in texts(repository).items()
        if name.endswith(".md")
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
        if not ((repository / name).parent / target).exists()
    ]

    assert missing == []


def test_every_promise_of_the_semantics_has_a_number_and_tests_that_prove_it(repository: Path) -> None:
    page = repository / "docs" / "semantics.md"
    promises = re.findall(r"^- \*\*([A-Z])(\d+)\*\* (.*?)(?=^\S|^$)", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    numbers: dict[str, list[int]] = {}
    for section, number, _ in promises:
        numbers.setdefault(section, []).append(int(number))
    proofs = {
        f"{section}{number}": re.findall(r"\[([\w-]+)\]\((\.\./[^\s)]+)\)", text) for section, number, text in promises
    }

    assert len(promises) > 50
    assert [section for section, found in numbers.items() if found != [*range(1, len(found) + 1)]] == []
    assert [name for name, links in proofs.items() if not links] == []
    for name, link in {proof for links in proofs.values() for proof in links}:
        assert "def test_" in (page.parent / link).read_text("utf-8"), link
        assert Path(link).name == f"test_{name.replace('-', '_')}.py"


def test_every_fault_of_the_table_has_tests_that_prove_what_happens(repository: Path) -> None:
    page = repository / "docs" / "faults.md"
    _, _, table = page.read_text("utf-8").partition("| fault | what happens | within | proof |\n")
    rows = [line.split(" | ") for line in table.partition("\n\n")[0].splitlines()[1:]]
    proofs = {row[0]: re.findall(r"\]\((\.\./tests/[^\s)]+)\)", row[-1]) for row in rows}

    assert len(proofs) == len(rows) > 20
    assert [fault for fault, links in proofs.items() if not links] == []
    for link in {link for links in proofs.values() for link in links}:
        assert "def test_" in (page.parent / link).read_text("utf-8"), link


FENCE = re.compile(r"^ *(?:```|~~~)(?:[\w-]*|\{[\w-]+\}.*)$")


def test_every_fence_of_a_page_stands_on_a_line_of_its_own_and_ends(repository: Path) -> None:
    pages = {page: page.read_text("utf-8").splitlines() for page in sorted(repository.glob("docs/**/*.md"))}
    marks = {page: [line for line in lines if "```" in line or "~~~" in line] for page, lines in pages.items()}

    assert len(pages) > 20
    assert [line for lines in marks.values() for line in lines if not FENCE.match(line)] == []
    assert [page.name for page, lines in marks.items() if len(lines) % 2] == []


def test_what_the_pages_for_developers_point_to_is_there(repository: Path) -> None:
    text = (repository / "docs" / "development.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[\w-]+/)+[\w.-]*)`", text))

    missing = [name for name in named if not any((repository / root / name).exists() for root in ("", "stream_peer"))]

    assert len(named) > 15
    assert missing == []


PLACE = re.compile(r"`([\w/-]+\.py):([\w.]+)`")


def definitions(tree: ast.AST, before: str = "") -> set[str]:
    """Names of classes and functions, those of methods behind the name of their class."""
    found = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found |= {before + node.name, *definitions(node, f"{before}{node.name}.")}
    return found


def test_every_function_that_a_page_names_with_its_file_is_there(repository: Path) -> None:
    named = {
        (name, path, function)
        for name, text in texts(repository).items()
        if name.endswith(".md")
        for path, function in PLACE.findall(text)
    }

    missing = []
    for name, path, function in sorted(named):
        file = next((at for root in ("stream_peer", "") if (at := repository / root / path).is_file()), None)
        if file is None or function not in definitions(ast.parse(file.read_text(encoding="utf-8"))):
            missing.append(f"{name}: {path}:{function}")
    assert len([found for found in named if found[0] == "docs/development.md"]) > 25
    assert missing == []


def test_the_pins_of_one_environment_are_those_of_the_other(repository: Path) -> None:
    runtime, demo, dev = (_pins(repository / f"requirements/{name}.txt") for name in ("runtime", "demo", "dev"))

    assert runtime.items() <= demo.items() <= dev.items()


def test_every_dependency_is_pinned_with_hashes(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    named = {re.split(r"[\[<>=!~ ]", wanted)[0].lower() for wanted in project["dependencies"]}

    assert named <= set(_pins(repository / "requirements/runtime.txt"))
    for file in (repository / "requirements").glob("*.txt"):
        blocks = re.split(r"\n(?=[A-Za-z0-9])", "\n".join(_statements(file)))
        assert [block.split()[0] for block in blocks if "--hash=" not in block] == []


def _pins(file: Path) -> dict[str, str]:
    return {name.lower(): version for name, version in re.findall(r"^([\w.-]+)==(\S+)", file.read_text(), re.MULTILINE)}


def _statements(file: Path) -> list[str]:
    return [line for line in file.read_text().splitlines() if line and not line.lstrip().startswith("#")]


def test_the_version_is_said_once(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]

    assert "version" not in project
    assert project["dynamic"] == ["version"]


def test_what_a_docstring_says_to_see_is_in_its_package_or_imported_or_named_with_its_package(repository: Path) -> None:
    sources = {name: text for name, text in texts(repository).items() if name.endswith(".py")}
    known: dict[tuple[str, ...], set[str]] = {}
    for name, text in sources.items():
        path = Path(name)
        known.setdefault(path.parts[:2], set()).update((path.stem, path.parent.name), DEFINED.findall(text))
    anywhere = set().union(*known.values())
    dangling = [
        (name, reference)
        for name, text in sources.items()
        for here in [{*known[Path(name).parts[:2]], *IMPORTED.findall(text)}]
        for reference in REFERENCE.findall(text)
        if not (anywhere if "." in reference else here).issuperset(reference.split("."))
    ]

    assert not dangling
