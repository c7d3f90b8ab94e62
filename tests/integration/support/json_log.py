"""What a worker with ``log.format: json`` said."""

import json
from typing import Any

from tests.integration.support.service import Worker

LOUD = ("warning", "error", "critical")


def log_of(worker: Worker) -> list[dict[str, Any]]:
    """Every line since its start. All of them must be JSON that says what, who, when and how bad."""
    lines: list[dict[str, Any]] = [json.loads(line) for line in worker.said().splitlines()]
    assert all({"event", "logger", "timestamp", "level"} <= line.keys() for line in lines), lines
    return lines


def loud(worker: Worker) -> list[dict[str, Any]]:
    """The warnings and errors."""
    return [line for line in log_of(worker) if line["level"] in LOUD]
