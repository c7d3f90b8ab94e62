"""Logs when a worker begins to serve."""

from collections.abc import Callable

import mode
import structlog

log = structlog.get_logger(__name__)

_POLL_SECONDS = 0.2


class Announcer(mode.Service):  # type: ignore[misc] # mode is skipped by the type checker
    """Logs ``worker_ready`` once, with where metrics and health are.

    Parameters
    ----------
    ready : callable
        Whether the worker is ready, and if not, why.
    address : callable
        Where the HTTP server listens, asked when the worker is ready.
    """

    def __init__(self, ready: Callable[[], tuple[bool, str]], address: Callable[[], str]) -> None:
        super().__init__()
        self._ready = ready
        self._address = address

    async def on_started(self) -> None:
        """Watch from the moment that everything was started."""
        self.add_future(self._announce())

    async def _announce(self) -> None:
        async for _ in self.itertimer(_POLL_SECONDS):
            if self._ready()[0]:
                log.info("worker_ready", http=self._address())
                return
