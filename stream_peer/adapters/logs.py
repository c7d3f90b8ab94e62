"""Logs: one line an event on stderr, JSON for machines or text for a terminal; libraries' records look the same."""

import json
import logging
import sys
import time
from collections.abc import Callable, Iterable, MutableMapping
from typing import Any, TextIO

import structlog

from stream_peer.settings import Log, Secret

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
# What these libraries say at "info" (every join, every partition) is for their own developers.
_QUIETER = ("aiokafka", "kafka", "faust", "mode", "aiohttp.access", "asyncio")

# What a record of ours is about.
_ABOUT = ("event", "stage", "topic", "partition", "feed", "question")
# Services of mode, Faust's foundation, say "[^-Name]: Starting..." through our own loggers.
_CHATTER = "[^"
# What clients call errors while a fresh broker makes its group coordinator; they retry.
_HARMLESS = ("GroupCoordinatorNotAvailable", "CoordinatorLoadInProgress", "Coordinator load in progress")

BURST = 3
WINDOW_SECONDS = 10.0
_FORGET_AFTER = 1000


class RepeatFilter(logging.Filter):
    """Lets ``burst`` records of one kind through in each window; the next window's first says how many were kept back.

    A dead broker makes clients write tens of equal lines a second. A kind is a logger, a level and a message before
    its arguments are filled in; of our own records also what they are about, and those below a warning always pass.
    """

    def __init__(
        self, burst: int = BURST, window: float = WINDOW_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._burst = burst
        self._window = window
        self._clock = clock
        self._kinds: dict[tuple[str, int, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to log the record; the first of a window bears ``repeats`` if some were kept back before it."""
        if record.levelno < logging.WARNING and record.name.startswith("stream_peer"):
            return True
        kind, now = _kind(record), self._clock()
        began, seen = self._kinds.get(kind, (now, 0))
        if now - began >= self._window:
            if seen > self._burst:
                record.repeats = seen - self._burst
            began, seen = now, 0
        if len(self._kinds) >= _FORGET_AFTER and kind not in self._kinds:
            self._kinds.clear()
        self._kinds[kind] = (began, seen + 1)
        return seen < self._burst


class ChatterFilter(logging.Filter):
    """Keeps back what no operator can act on: starts and stops of inner services, and retries that always work."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to log the record."""
        if record.levelno < logging.WARNING:
            return not str(record.msg).startswith(_CHATTER)
        if record.levelno > logging.ERROR or not record.name.startswith("aiokafka"):
            return True
        message = record.getMessage()
        return not any(harmless in message for harmless in _HARMLESS)


def configure(log: Log, *, secrets: Iterable[Secret] = (), stream: TextIO | None = None) -> None:
    """Send the records of structlog and of the standard library to ``stream`` (stderr unless told).

    Parameters
    ----------
    log : Log
        Format and level.
    secrets : iterable of Secret
        Texts that never appear, whatever a library logs.
    stream : text file or None
        Where to write.
    """
    out = sys.stderr if stream is None else stream
    console = log.format == "console" or (log.format == "auto" and out.isatty())
    handler = logging.StreamHandler(out)
    if log.level != "debug":
        handler.addFilter(ChatterFilter())
    handler.addFilter(RepeatFilter())
    handler.setFormatter(_formatter(out, tuple(secret.reveal() for secret in secrets), console=console))
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(_LEVELS[log.level])
    for name in _QUIETER:
        logging.getLogger(name).setLevel(max(_LEVELS[log.level], logging.WARNING) if log.level != "debug" else 0)
    logging.captureWarnings(capture=True)
    structlog.configure(
        processors=[*_common(), structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )


def _common() -> list[structlog.typing.Processor]:
    """What happens to every record, whoever wrote it."""
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.StackInfoRenderer(),
    ]


def _formatter(out: TextIO, secrets: tuple[str, ...], *, console: bool) -> logging.Formatter:
    if console:
        last: list[structlog.typing.Processor] = [
            structlog.dev.ConsoleRenderer(colors=out.isatty(), exception_formatter=structlog.dev.plain_traceback)
        ]
    else:
        last = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(default=str)]
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*_common(), structlog.stdlib.ExtraAdder(allow=())],
        processors=[
            _with_repeats,
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            *last,
            _without(secrets),
        ],
    )


def _with_repeats(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    repeats = getattr(event.get("_record"), "repeats", 0)
    if repeats:
        event["repeats_not_shown"] = repeats
    return event


def _without(secrets: tuple[str, ...]) -> structlog.typing.Processor:
    """The rendered line with each secret replaced, should a library have logged its options."""
    spelled = {form for text in secrets if text for form in (text, json.dumps(text)[1:-1], repr(text)[1:-1])}

    def masked(_: Any, __: str, line: Any) -> str:
        text = str(line)
        for form in spelled:
            text = text.replace(form, "***")
        return text

    return masked


def _kind(record: logging.LogRecord) -> tuple[str, int, str]:
    if isinstance(record.msg, dict):
        about = " ".join(str(record.msg.get(name, "")) for name in _ABOUT)
    else:
        about = str(record.msg)[:120]
    return record.name, record.levelno, about
