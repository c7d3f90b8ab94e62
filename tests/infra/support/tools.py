"""The checking tools of `make tools`, run as a user would run them; a test is skipped where its tool is missing."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TOOLS = ROOT / ".tools" / "bin"


def tool(name: str) -> str:
    """Where the tool lies; skips the test if `make tools` has not been run."""
    path = TOOLS / name
    if not path.exists():
        pytest.skip(f"{name} is missing: run `make tools`")
    return str(path)


def run(*command: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command in the root of the repository and keep what it says."""
    return subprocess.run(command, cwd=ROOT, input=stdin, capture_output=True, text=True, timeout=60, check=False)


def said(result: subprocess.CompletedProcess[str]) -> str:
    """All that a command said, for the message of a failed assertion."""
    return f"exit {result.returncode}\n{result.stdout}\n{result.stderr}"
