"""What is committed of the tapes: running digests, a few values, and on which kind of machine they were made."""

import json
import platform
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from tests.golden.comparing import OrderFree, ends, some_values
from tests.golden.records import Life, Tape

FILE = Path(__file__).parent / "recorded.json"
_VALUES, _VALUES_OF_VARIANTS = 4, 1


def machine() -> dict[str, Any]:
    """What the last bits of a float depend on: vectors of the processor, and libraries."""
    features = import_module("numpy._core._multiarray_umath").__cpu_features__
    return {
        "numpy": np.__version__,
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()),
        "vectors": sorted(name for name, there in features.items() if there and name.startswith(_WIDE)),
    }


_WIDE = ("X86_V", "AVX", "FMA", "NEON", "ASIMD", "SVE", "VSX", "VX", "RVV", "LSX", "LASX")


def record_of(life: Life, tape: Tape, order_free: OrderFree) -> dict[str, Any]:
    """Of one life."""
    common = {"life": life.digest, "sent": len(life.sent)}
    if life.ends:
        return {**common, "ends": ends(tape, order_free)}
    return {
        **common,
        "written": dict(sorted(Counter(record.topic for record in tape.written).items())),
        "digests": {kind: " ".join(digests) for kind, digests in tape.digests.items()},
        "values": some_values(tape, _VALUES_OF_VARIANTS if life.name.startswith("variant-") else _VALUES),
    }


def write(records: dict[str, Any]) -> None:
    """One line a life."""
    lines = [f"{json.dumps(name)}: {json.dumps(record)}" for name, record in sorted(records.items())]
    FILE.write_text("{\n" + ",\n".join([f'"machine": {json.dumps(machine())}', *lines]) + "\n}\n")


def read() -> dict[str, Any]:
    """The machine, and the record of each life."""
    found: dict[str, Any] = json.loads(FILE.read_text())
    return found
