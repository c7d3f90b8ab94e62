"""Where an altered worker waits for the tests that open and close its gates."""

from pathlib import Path

from tests.integration.support.service import Service
from tests.integration.support.waiting import wait_until

GATED = "has_gates"


class Gates:
    """Where the worker waits for the test."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self.directory = directory

    def close(self, place: str) -> None:
        """Let the worker wait there from now on."""
        (self.directory / f"{place}.reached").unlink(missing_ok=True)
        (self.directory / place).touch()

    def open(self, place: str) -> None:
        """Let it go on."""
        (self.directory / place).unlink()

    def wait_reached(self, place: str, service: Service) -> None:
        """Until the worker waits there."""
        reached = self.directory / f"{place}.reached"
        wait_until(reached.exists, 60, lambda: f"the worker never came to the {place}\n{service.logs()}")
