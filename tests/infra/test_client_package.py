"""The client is installed from a clone into an empty environment, alone, and is what the repository says."""

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from docs.generator import client_outputs
from docs.generator.client_outputs import COPY
from stream_peer.events import outputs
from stream_peer_client import outputs as copied
from tests.infra.support.tools import ROOT, said

INSTALLED = {"stream-peer-client", "kafka-python", "msgspec", "zstandard"}
LOADED = """
import sys, stream_peer_client
print(*sorted(name for name in ("faust", "numpy", "stream_peer", "aiokafka") if name in sys.modules))
print(stream_peer_client.Weights, stream_peer_client.outputs.SCHEMA)
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that has the client."""
    directory = tmp_path_factory.mktemp("client") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(directory)], check=True, timeout=120)
    python = directory / "bin" / "python"
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "./client"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, said(result)
    return python


def said_by(python: Path, *arguments: str, directory: Path) -> str:
    command = [str(python), *arguments]
    result = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, said(result)
    return result.stdout


def test_nothing_is_installed_but_the_client_and_what_it_needs(python: Path, tmp_path: Path) -> None:
    listed = json.loads(said_by(python, "-m", "pip", "list", "--format=json", directory=tmp_path))
    names = {each["name"].replace("_", "-") for each in listed} - {"pip", "setuptools"}

    assert names == INSTALLED
    assert said_by(python, "-c", LOADED, directory=tmp_path) == "\n<class 'stream_peer_client.weights.Weights'> 1\n"


def test_the_copy_of_the_outputs_is_fresh_and_has_every_class_and_field() -> None:
    assert {COPY: (ROOT / COPY).read_text("utf-8")} == client_outputs.files(ROOT)
    assert fields(copied) == fields(outputs)
    assert len(fields(outputs)) > 15


def fields(module: ModuleType) -> dict[str, tuple[str, ...]]:
    return {
        name: kind.__struct_fields__
        for name, kind in vars(module).items()
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct)
    }
