"""What a worker loads: nothing of the tools, so that it starts fast and stays small."""

import ast
import subprocess
import sys
from pathlib import Path

from stream_peer.cli import worker


def loaded_by_the_worker() -> set[str]:
    """All modules that a new process has once it imported what the command imports, wherever in its file."""
    tree = ast.parse(Path(worker.__file__).read_text(encoding="utf-8"))
    lines = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)}
    code = "\n".join([*sorted(lines), "import sys", "print(*sys.modules)"])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_a_worker_loads_neither_lab_nor_tools() -> None:
    loaded = loaded_by_the_worker()

    assert "stream_peer.kafka.worker.worker" in loaded
    assert {name for name in loaded if name.startswith(("stream_peer.lab", "stream_peer.tools"))} == set()
    assert not {"matplotlib", "scipy", "pandas", "rich.progress"} & loaded
