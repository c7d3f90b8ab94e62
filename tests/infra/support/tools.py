"""The checking tools of `make tools`, run as a user would run them; a test is skipped where its tool is missing."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).parents[3]
TOOLS = ROOT / ".tools" / "bin"
NODE = ROOT / "tests" / "infra" / "node"


def tool(name: str) -> str:
    """Where the tool lies; skips the test if `make tools` has not been run."""
    path = TOOLS / name
    if not path.exists():
        missing(f"{name} is missing: run `make tools`")
    return str(path)


def program(name: str, package: str = "") -> str:
    """Where a program of the machine lies, of Debian's package of that name; skips the test if it is not there."""
    path = shutil.which(name)
    if path is None:
        missing(f"{name} is missing: install {package or name}")
    return path


def needed(*names: str) -> None:
    """Skip the test where a program of the machine is missing."""
    for name in names:
        program(name)


def node_modules() -> Path:
    """Where Node's packages lie; skips the test if there are none."""
    if not (NODE / "node_modules" / ".complete").exists():
        missing("Node's packages are missing: install nodejs and npm, run `make tools`")
    return NODE / "node_modules"


def missing(reason: str) -> NoReturn:
    """Skip the test; where everything is demanded, as in CI, fail it: what is skipped there is checked nowhere."""
    if os.environ.get("STREAM_PEER_TEST_REQUIRE"):
        pytest.fail(reason)
    pytest.skip(reason)


def run(*command: str, stdin: str | None = None, seconds: float = 60) -> subprocess.CompletedProcess[str]:
    """Run a command in the root of the repository and keep what it says."""
    return subprocess.run(command, cwd=ROOT, input=stdin, capture_output=True, text=True, timeout=seconds, check=False)


def said(result: subprocess.CompletedProcess[str]) -> str:
    """All that a command said, for the message of a failed assertion."""
    return f"exit {result.returncode}\n{result.stdout}\n{result.stderr}"
