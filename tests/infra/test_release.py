"""What a release consists of holds what it should, and says nothing of the machine that made it."""

import json
import re
import zipfile
from pathlib import Path

import pytest

import stream_peer
from tests.infra.support.tools import ROOT, run, said, tool


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a release consists of, built once."""
    directory = tmp_path_factory.mktemp("release") / "dist"
    tool("cyclonedx-py")
    result = run("make", "--silent", "sbom", f"DIST={directory}", seconds=240)
    assert result.returncode == 0, said(result)
    return directory


def test_the_bill_of_materials_is_that_of_the_pinned_versions(release: Path) -> None:
    text = (release / "sbom.cdx.json").read_text(encoding="utf-8")
    bill = json.loads(text)
    pins = re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "requirements" / "runtime.txt").read_text("utf-8"), re.MULTILINE)

    assert bill["bomFormat"] == "CycloneDX"
    assert bill["metadata"]["component"]["name"] == "stream-peer"
    assert bill["metadata"]["component"]["version"] == stream_peer.__version__
    assert {plain(found["name"]): found["version"] for found in bill["components"]} == {
        plain(name): version for name, version in pins
    }
    assert [found["name"] for found in bill["components"] if not found.get("licenses")] == []
    assert [place for place in ("file:", str(ROOT), str(release)) if place in text] == []


def plain(name: str) -> str:
    """A project's name as registries compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_wheel_has_what_the_package_reads(release: Path) -> None:
    (wheel,) = release.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())

    source = ROOT / "stream_peer"
    kept = {path.relative_to(ROOT).as_posix() for path in source.rglob("*") if path.is_file()}
    wanted = {path for path in kept if "__pycache__" not in path and not path.startswith("stream_peer/.")}
    assert {path for path in wanted if path not in packed} == set()
    assert f"stream-peer-{stream_peer.__version__}.tgz" in {path.name for path in (release / "chart").iterdir()}
