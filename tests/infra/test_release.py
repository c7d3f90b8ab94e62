"""What a release consists of holds what it should, and says nothing of the machine that made it."""

import filecmp
import json
import re
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import stream_peer
from docs.site import add
from docs.upgrade_notes import NUMBERS, TABLES, notes, tree_of
from tests.infra.support.tools import ROOT, run, said, tool

PACKAGES = ("stream_peer", "stream_peer_client")
IMAGE_VALUE = f"image: stream-peer:{stream_peer.__version__}\n"


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
    (wheel,) = release.glob("stream_peer-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())

    source = ROOT / "stream_peer"
    kept = {path.relative_to(ROOT).as_posix() for path in source.rglob("*") if path.is_file()}
    wanted = {path for path in kept if "__pycache__" not in path and not path.startswith("stream_peer/.")}
    assert {path for path in wanted if path not in packed} == set()


def test_there_are_a_wheel_and_sources_of_service_and_client(release: Path) -> None:
    version = stream_peer.__version__
    names = [f"{name}-{version}{end}" for name in PACKAGES for end in ("-py3-none-any.whl", ".tar.gz")]

    assert sorted(path.name for path in release.iterdir()) == sorted(
        [*names, f"stream-peer-{version}.tgz", "sbom.cdx.json"]
    )
    with zipfile.ZipFile(release / f"stream_peer_client-{version}-py3-none-any.whl") as archive:
        assert {"stream_peer_client/outputs.py", "stream_peer_client/py.typed"} <= set(archive.namelist())


def test_the_chart_is_that_of_the_repository_and_renders(release: Path, tmp_path: Path) -> None:
    archive = release / f"stream-peer-{stream_peer.__version__}.tgz"
    with tarfile.open(archive) as packed:
        packed.extraction_filter = getattr(tarfile, "data_filter", None)  # from Python 3.11.4 on
        packed.extractall(tmp_path)  # noqa: S202 - an archive of our own release
    chart = ROOT / "helm" / "stream-peer"
    compared = filecmp.dircmp(chart, tmp_path / "stream-peer", ignore=["__pycache__"])
    values = ["--set", "kafka.bootstrapServers=kafka:9092"]

    rendered = [run(tool("helm"), "template", "r", str(path), *values) for path in (archive, chart)]

    assert rendered[0].returncode == 0, said(rendered[0])
    assert IMAGE_VALUE in rendered[0].stdout
    assert [found for found in different(compared) if found != "Chart.yaml"] == []
    assert bare(rendered[0].stdout) == bare(rendered[1].stdout)


def different(compared: "filecmp.dircmp[str]") -> list[str]:
    found = [*compared.left_only, *compared.right_only, *compared.diff_files]
    return found + [name for below in compared.subdirs.values() for name in different(below)]


def bare(manifests: str) -> str:
    """Without the generated key, which is another each time."""
    return re.sub(r"(signing-key: ).*", r"\1", manifests)


def test_upgrade_notes_say_what_differs_from_the_former_release_and_where_there_is_none() -> None:
    after = {
        "stream_peer/events/schemas/weights.v1.json": schema(feed="string", experts="array"),
        "docs/generated/settings.md": table("setting | default", "`grace` | `2m`", "`quorum` | `null`"),
        "stream_peer/feeds/store.py": "SCHEMA = 8\n",
    }
    before = {
        "stream_peer/events/schemas/weights.v1.json": schema(feed="integer", old="string"),
        "docs/generated/settings.md": table("setting | default", "`grace` | `1m`"),
        "stream_peer/feeds/store.py": "SCHEMA = 7\n",
    }

    page = notes("0.2.0", "v0.1.0", below(before), below(after))

    assert page.splitlines()[2:] == [
        "- message `weights.v1`: field `old` is gone",
        "- message `weights.v1`: field `experts` is new",
        "- message `weights.v1`: field `feed` was integer, required, is string, required",
        "- setting of a process `quorum` is new",
        "- setting of a process `grace`: default was `1m`, is `2m`",
        "- Feeds are rebuilt from the feed-log: their state has another form.",
    ]
    assert notes("0.2.0", "v0.1.0", below(after), below(after)).count("\n- ") == 0
    assert "There is no former release" in notes("0.1.0", "", below({}), below(after))


def schema(**fields: str) -> str:
    properties = {name: {"type": kind} for name, kind in fields.items()}
    return json.dumps({"properties": properties, "required": sorted(fields)})


def table(header: str, *rows: str) -> str:
    return "\n".join(f"| {line} |" for line in (header, "--- | ---", *rows))


def below(files: Mapping[str, str]) -> Callable[[str], Mapping[str, str]]:
    return lambda start: {path: text for path, text in files.items() if path.startswith(start)}


def test_upgrade_notes_read_what_is_committed() -> None:
    committed = tree_of("HEAD")

    assert "stream_peer/events/schemas/weights.v1.json" in committed("stream_peer/events/schemas/")
    assert [path for path in TABLES if "| `" not in committed(path)[path]] == []
    assert [path for path, name in NUMBERS if not re.search(rf"^{name}\b", committed(path)[path], re.MULTILINE)] == []


def test_documentation_of_all_releases_lies_side_by_side_the_newest_first(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("pages")
    with tarfile.open(tmp_path / "docs.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "index.html", "index.html")
    tree = tmp_path / "pages"
    tree.mkdir()

    for version in ("0.9.0", "0.10.0", "0.9.0"):
        add(tmp_path / "docs.tar.gz", version, tree)

    assert re.findall(r'href="(.+?)/"', (tree / "index.html").read_text()) == ["0.10.0", "0.9.0"]
    assert (tree / "0.9.0" / "index.html").read_text() == "pages"
