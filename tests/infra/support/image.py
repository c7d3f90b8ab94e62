"""Builds the image and runs it as a cluster would: buildah and podman on a store of their own, without a registry.

The base is made by debootstrap once and kept in the user's cache: the first run takes some minutes, the next ones less
than one. Images of earlier runs are removed a day later.

``python -m tests.infra.support.image FILE [BASE]`` writes an OCI archive, unless it is of this tree already: the image
of a release, on another base if one is named. The same commit on the same base gives the same digest.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from stream_peer import __version__
from tests.infra.support.tools import ROOT, missing
from tests.integration.support.waiting import wait_until

NEEDED = ("buildah", "podman", "runc", "debootstrap", "git")
RELEASE = "bookworm"
BASE = f"localhost/stream-peer-base:{RELEASE}-plain"
IMAGE = f"docker.io/library/stream-peer:{__version__}"
"""What `stream-peer:VERSION`, the default of chart and compose file, stands for."""
ARCHIVE = ROOT / "build" / f"stream-peer-image-{__version__}.tar"
"""Where `make release` takes the image from, which tests and the stack run."""
USER = "10001:10001"

# What restricted pods have, and what runc needs here: it may not raise limits.
_CONFINED = (
    *("--read-only", "--read-only-tmpfs=false", "--tmpfs", "/tmp:rw,noexec,nosuid,size=16m"),  # noqa: S108
    *("--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--network", "host"),
    *("--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096"),
)
_HARMLESS = "unable to get systemd connection"  # podman would have systemd call the health check
_MADE_FOR_PIP = ("/etc/ssl/certs", "/etc/pip.conf")
_BEGUN = time.monotonic()


class Ended(NamedTuple):
    """A command in a container that has ended."""

    code: int
    out: str
    err: str


def obstacle() -> str:
    """Why this machine cannot build images; empty if it can."""
    if os.geteuid() != 0:
        return "images are built by root"
    absent = [name for name in NEEDED if shutil.which(name) is None]
    return f"install {' '.join(absent)} to build images" if absent else ""


def say(text: str) -> None:
    """A line of the log of the run, which `make image` shows."""
    sys.stdout.write(f"image: {time.monotonic() - _BEGUN:5.1f} s  {text}\n")
    sys.stdout.flush()


class Store:
    """Images and containers in a directory of their own. Made by ``opened``, for one user at a time."""

    def __init__(self, home: Path) -> None:
        self.home = home

    @cached_property
    def driver(self) -> str:
        """overlay, which shares layers; vfs where the kernel (or a container around us) does not allow it."""
        overlay = self._tool("buildah", "overlay", "info")
        return "overlay" if subprocess.run(overlay, capture_output=True, check=False).returncode == 0 else "vfs"

    def _tool(self, name: str, driver: str, *arguments: str) -> list[str]:
        home = self.home / driver
        own = ["--runtime", "runc", "--cgroup-manager", "cgroupfs"] if name == "podman" else []
        roots = ["--root", str(home / "store"), "--runroot", str(home / "run")]
        return [name, *roots, "--storage-driver", driver, *own, *arguments]

    def buildah(self, *arguments: str, seconds: float = 600) -> str:
        """Run buildah, which must succeed; what it printed."""
        return _succeeded(_run(self._tool("buildah", self.driver, *arguments), seconds))

    def podman(self, *arguments: str, seconds: float = 120) -> Ended:
        """Run podman, and keep what it says."""
        return _run(self._tool("podman", self.driver, *arguments), seconds)

    # --- building ---

    def make_base(self) -> None:
        """A base with Python, as small as Debian's own tools make it, unless the cache has it."""
        if self.podman("image", "exists", BASE).code == 0:
            say(f"the base {BASE} is in the cache")
            return
        root = self.home / "root"
        shutil.rmtree(root, ignore_errors=True)
        say(f"making the base {BASE} by debootstrap, once")
        include = "--include=python3,python3-venv,ca-certificates"
        _succeeded(_run(["debootstrap", "--variant=minbase", include, RELEASE, str(root)], 900))
        for left in ("var/cache", "var/lib/apt/lists", "var/log"):
            shutil.rmtree(root / left)
            (root / left).mkdir()
        for of_this_machine in ("etc/hostname", "etc/machine-id", "etc/resolv.conf"):
            (root / of_this_machine).unlink(missing_ok=True)
        container = self.buildah("from", "scratch").strip()
        self.buildah("add", "--quiet", container, str(root), "/")
        self.buildah("commit", "--quiet", "--timestamp", "0", container, BASE)
        self.buildah("rm", container)
        shutil.rmtree(root)

    def build(self, context: Path, *, base: str = BASE, **arguments: str) -> None:
        """Build the image from a directory, anew: layers of another commit would bear its date."""
        mounts = [f"--volume={path}:{path}:ro" for path in _MADE_FOR_PIP if Path(path).exists()]
        given = [f"--build-arg={name}={value}" for name, value in {"BASE": base, **arguments}.items()]
        pulled = ["--pull-never"] if base == BASE else []
        # Only Docker's format has the health check; ``archive`` hands it on.
        how = ["--isolation", "chroot", "--network", "host", "--format", "docker", "--timestamp", _date()]
        say(f"building {IMAGE} ({self.driver})")
        self.buildah("build", "--no-cache", *how, *pulled, *mounts, *given, "--tag", IMAGE, str(context))
        self.podman("image", "prune", "--force", "--filter", "until=24h")
        say("built")

    def archive(self, target: Path) -> None:
        """Write the image as an OCI archive, to the byte the same for the same image."""
        health = json.loads(self.buildah("inspect", "--type", "image", IMAGE))["Docker"]["config"]["Healthcheck"]
        with tempfile.TemporaryDirectory(prefix="stream-peer-image-") as directory:
            layout = Path(directory)
            self.buildah("push", "--quiet", "--format", "oci", IMAGE, f"oci:{layout}:{__version__}")
            digest = _finish(layout, health)
            _pack(layout, target)
        say(f"{target.name}: {digest}")

    def load(self, archive: Path) -> None:
        """Take the image from an archive, as its users do, in place of the one that was built."""
        self.podman("image", "rm", "--force", IMAGE)
        _succeeded(self.podman("load", "--input", str(archive)))

    # --- looking at it ---

    def inspect(self, image: str = IMAGE) -> Any:
        """What is known of an image."""
        return json.loads(_succeeded(self.podman("image", "inspect", image)))[0]

    def history(self) -> str:
        """How each layer above the base came about, as anybody can read who has the image."""
        return _succeeded(self.podman("history", "--no-trunc", "--format", "{{.CreatedBy}}", IMAGE))

    def added_bytes(self) -> int:
        """Size of the layers above the base."""
        return int(self.inspect()["Size"]) - int(self.inspect(BASE)["Size"])

    # --- running it ---

    def run(self, *command: str, **more: Any) -> Ended:
        """Run a container to its end; ``more`` as in ``container``."""
        return self.podman("run", "--rm", *_options(**more), IMAGE, *command)

    def attached(self, name: str, *command: str, variables: str, **more: Any) -> list[str]:
        """What runs a container in the foreground, with the variables of its environment that begin so."""
        return self._tool(
            "podman",
            self.driver,
            "run",
            "--rm",
            "--name",
            name,
            f"--env={variables}*",
            *_options(**more),
            IMAGE,
            *command,
        )

    @contextmanager
    def container(self, *command: str, **more: Any) -> Iterator["Container"]:
        """A container that runs while the block does, with ``entrypoint``, ``mounts`` of files, …: see ``_options``."""
        name = f"stream-peer-{uuid.uuid4().hex[:8]}"
        started = self.podman("run", "--detach", "--name", name, *_options(**more), IMAGE, *command)
        try:
            _succeeded(started)
            yield Container(self, name)
        finally:
            self.podman("rm", "--force", "--time", "0", name)


def _options(
    *,
    entrypoint: Sequence[str] = (),
    mounts: Mapping[Path, str] | None = None,
    environment: Mapping[str, str] | None = None,
    volumes: Sequence[str] = (),
    user: str = USER,
) -> list[str]:
    """Options of a container, confined."""
    other = ["--entrypoint", json.dumps(entrypoint)] if entrypoint else []
    given = [f"--env={name}={value}" for name, value in (environment or {}).items()]
    files = [f"--volume={outside}:{inside}:ro" for outside, inside in (mounts or {}).items()]
    named = [f"--volume={volume}" for volume in volumes]
    return [*_CONFINED, "--user", user, *other, *given, *files, *named]


class Container(NamedTuple):
    """A container that was started."""

    store: Store
    name: str

    def logs(self) -> str:
        """All that it said."""
        ended = self.store.podman("logs", self.name)
        return ended.out + ended.err

    def shell(self, script: str) -> Ended:
        """Run a line of shell in it."""
        return self.store.podman("exec", self.name, "/bin/sh", "-c", script)

    def health(self) -> Ended:
        """Run the command of its HEALTHCHECK, which podman does not take from an OCI archive."""
        return self.shell("stream-peer health")

    def wait_healthy(self) -> None:
        """Until its HEALTHCHECK succeeds."""

        def healthy() -> bool:
            assert self.state()["Running"], f"it ended:\n{self.logs()}"
            return self.health().code == 0

        wait_until(healthy, 90.0, lambda: f"never healthy: {self.health()}\n{self.logs()}", every=0.5)

    def state(self) -> Any:
        """Whether it runs, and with which code it ended."""
        return json.loads(_succeeded(self.store.podman("inspect", self.name)))[0]["State"]

    def signal(self, name: str) -> None:
        """Send a signal to its first process."""
        _succeeded(self.store.podman("kill", "--signal", name, self.name))

    def wait(self, deadline: float) -> int:
        """Wait for its end; the exit code."""
        wait_until(lambda: not self.state()["Running"], deadline, lambda: f"it never ended:\n{self.logs()}", every=0.1)
        return int(self.state()["ExitCode"])


@contextmanager
def opened() -> Iterator[Store]:
    """The store in the user's cache; who comes second waits. A test is skipped where images cannot be built."""
    if reason := obstacle():
        missing(reason)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "stream-peer" / "images"
    home.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        lock = stack.enter_context((home / "lock").open("w"))
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield Store(home)


def export(target: Path) -> Path:
    """What git has and what it would take, without what it ignores: the tree that a clone would be built from."""
    listed = _succeeded(_run(["git", "-C", str(ROOT), "ls-files", "-z", "-co", "--exclude-standard"], 60))
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    return target


def build_release(store: Store, target: Path, *, base: str = BASE) -> None:
    """Build this commit's image and write its archive, unless that is there."""
    revision = _succeeded(_run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], 60)).strip()
    if base == BASE:
        store.make_base()
    with tempfile.TemporaryDirectory(prefix="stream-peer-tree-") as directory:
        tree = export(Path(directory))
        made_of, note = f"{revision} {_date()} {base} {_fingerprint(tree)}", target.with_suffix(".made-of")
        if target.exists() and note.exists() and note.read_text(encoding="utf-8") == made_of:
            say(f"{target.name} is of this tree")
            return
        note.unlink(missing_ok=True)
        store.build(tree, base=base, VERSION=__version__, REVISION=revision)
    target.parent.mkdir(exist_ok=True)
    store.archive(target)
    note.write_text(made_of, encoding="utf-8")


def _fingerprint(tree: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(path for path in tree.rglob("*") if path.is_file()):
        content = path.read_bytes()
        found.update(f"{path.relative_to(tree)} {path.stat().st_mode} {len(content)}\0".encode() + content)
    return found.hexdigest()


def _date() -> str:
    """Of everything in the image: that of the commit."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    return given or _succeeded(_run(["git", "-C", str(ROOT), "log", "-1", "--format=%ct"], 60)).strip()


def _finish(layout: Path, health: Any) -> str:
    """Give the image of a layout its health check, and its name as Docker, containerd and podman read it."""
    index = json.loads((layout / "index.json").read_bytes())
    (entry,) = index["manifests"]
    manifest = json.loads(_blob(layout, entry["digest"]).read_bytes())
    config = json.loads(_blob(layout, manifest["config"]["digest"]).read_bytes())
    config["config"]["Healthcheck"] = health
    for step in config["history"]:
        step.pop("comment", None)  # names what the step began with, which has another id at each build
    _replace(layout, manifest["config"], config)
    _replace(layout, entry, manifest)
    entry["annotations"] = {"io.containerd.image.name": IMAGE, "org.opencontainers.image.ref.name": IMAGE}
    (layout / "index.json").write_bytes(json.dumps(index, sort_keys=True).encode())
    return str(entry["digest"])


def _replace(layout: Path, descriptor: dict[str, Any], content: Any) -> None:
    _blob(layout, descriptor["digest"]).unlink()
    data = json.dumps(content, sort_keys=True).encode()
    descriptor.update(digest=f"sha256:{hashlib.sha256(data).hexdigest()}", size=len(data))
    _blob(layout, descriptor["digest"]).write_bytes(data)


def _blob(layout: Path, digest: str) -> Path:
    return layout / "blobs" / digest.replace(":", "/")


def _pack(directory: Path, target: Path) -> None:
    with tarfile.open(target, "w", format=tarfile.USTAR_FORMAT) as archive:
        for file in sorted(path for path in directory.rglob("*") if path.is_file()):
            member = tarfile.TarInfo(file.relative_to(directory).as_posix())
            member.size = file.stat().st_size
            with file.open("rb") as content:
                archive.addfile(member, content)


def _run(command: Sequence[str], seconds: float) -> Ended:
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    heard = [line for line in done.stderr.splitlines(keepends=True) if _HARMLESS not in line]
    return Ended(done.returncode, done.stdout, "".join(heard))


def _succeeded(ended: Ended) -> str:
    assert ended.code == 0, f"exit {ended.code}\n{ended.out[-4000:]}\n{ended.err[-4000:]}"
    return ended.out


if __name__ == "__main__":
    if cannot := obstacle():
        sys.exit(f"{cannot}.")
    with opened() as images:
        build_release(images, Path(sys.argv[1]), base=(sys.argv[2:] or [BASE])[0])
