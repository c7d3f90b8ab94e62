import logging
import os
from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("STREAM_PEER_"):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """Commands set up logging for their process; here they share one."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    levels = {
        name: log.level for name, log in logging.Logger.manager.loggerDict.items() if isinstance(log, logging.Logger)
    }
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, was in levels.items():
        logging.getLogger(name).setLevel(was)
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()
