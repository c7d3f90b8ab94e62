"""Logs: one line an event on stderr, JSON for machines or text for a terminal; libraries' records look the same."""

import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from contextlib import contextmanager
from itertools import takewhile
from typing import Any, NamedTuple, TextIO

import structlog

from stream_peer.events.spelling import spelt, spelt_lines
from stream_peer.serve.terminal import below
from stream_peer.settings.process import Log, Secret

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
# What these libraries say at "info" (every join, every partition) is for their own developers.
_QUIETER = ("aiokafka", "kafka", "faust", "mode", "aiohttp.access", "asyncio")

# What a record of ours is about.
_ABOUT = ("event", "code", "stage", "topic", "partition", "feed", "question")
# Services of mode, Faust's foundation, say "[^-Name]: Starting..." through our own loggers.
_CHATTER = "[^"
# What clients call errors while a fresh broker makes its group coordinator; they retry.
_HARMLESS = ("GroupCoordinatorNotAvailable", "CoordinatorLoadInProgress", "Coordinator load in progress")

BURST = 3
WINDOW_SECONDS = 10.0
_FORGET_AFTER = 1000


class _Kind(NamedTuple):
    """What makes two records repeats of each other."""

    logger: str
    level: int
    about: str


class _Window:
    def __init__(self, began: float) -> None:
        self.began = began
        self.seen = 0


class Repeats:
    """Lets ``burst`` records of one kind through in each window, and counts those that are kept back.

    A dead broker makes clients write tens of equal lines a second. A kind is a logger, a level and a message before
    its arguments are filled in; of our own records also what they are about, and those below a warning always pass.
    """

    def __init__(
        self, burst: int = BURST, window: float = WINDOW_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.window = window
        self._burst = burst
        self._clock = clock
        self._kinds: dict[_Kind, _Window] = {}

    def admits(self, record: logging.LogRecord) -> bool:
        """Whether to log the record."""
        if record.levelno < logging.WARNING and record.name.startswith("stream_peer"):
            return True
        window = self._kinds.setdefault(_kind(record), _Window(self._clock()))
        window.seen += 1
        return window.seen <= self._burst

    @property
    def keeps_back(self) -> bool:
        """Whether something was kept back that is not told yet."""
        return any(window.seen > self._burst for window in self._kinds.values())

    def take_over(self, *, all_of_them: bool = False) -> list[logging.LogRecord]:
        """Forget the windows that are over, or all; a record for each in which something was kept back."""
        ends = self._clock() - self.window
        all_of_them = all_of_them or len(self._kinds) > _FORGET_AFTER
        over = list(takewhile(lambda each: all_of_them or each[1].began <= ends, self._kinds.items()))  # oldest first
        for kind, _ in over:
            del self._kinds[kind]
        return [self._left_out(kind, window) for kind, window in over if window.seen > self._burst]

    def _left_out(self, kind: _Kind, window: _Window) -> logging.LogRecord:
        record = logging.LogRecord(kind.logger, kind.level, "", 0, "repeats_left_out", (), None)
        record.left_out = {"of": kind.about, "count": window.seen - self._burst, "seconds": self.window}
        return record


class LimitedHandler(logging.StreamHandler[TextIO]):
    """Writes records without their repeats, and ``repeats_left_out`` with their number.

    That line comes when the window is over, however quiet the log is then, and at the end of the process.
    """

    def __init__(self, out: TextIO, repeats: Repeats) -> None:
        super().__init__(out)
        self._repeats = repeats
        self._timer: threading.Timer | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record, unless it is one too many. The lock is held."""
        self._tell()
        if self._repeats.admits(record):
            super().emit(record)
        elif self._timer is None:
            self._wake_up()

    def close(self) -> None:
        """Say what was kept back, to the last."""
        with self._locked():
            if self._timer is not None:
                self._timer.cancel()
            self._tell(all_of_them=True)
            self.flush()
        super().close()

    def _wake_up(self) -> None:
        """Look again when the window is over that keeps something back now, in a thread: the log may be quiet then."""
        self._timer = threading.Timer(self._repeats.window, self._look_again)
        self._timer.daemon = True
        self._timer.start()

    def _look_again(self) -> None:
        with self._locked():
            self._timer = None
            self._tell()
            if self._repeats.keeps_back:
                self._wake_up()

    def _tell(self, *, all_of_them: bool = False) -> None:
        for record in self._repeats.take_over(all_of_them=all_of_them):
            super().emit(record)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.acquire()
        try:
            yield
        finally:
            self.release()


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
    out = below(sys.stderr if stream is None else stream)
    console = log.format == "console" or (log.format == "auto" and out.isatty())
    handler = LimitedHandler(out, Repeats())
    if log.level != "debug":
        handler.addFilter(ChatterFilter())
    handler.setFormatter(_formatter(out, tuple(secret.reveal() for secret in secrets), console=console))
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
        if isinstance(old, LimitedHandler):
            old.close()
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
    """What happens to every record, of this package or of a library."""
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
            _spelt_out,
            structlog.dev.ConsoleRenderer(colors=out.isatty(), exception_formatter=structlog.dev.plain_traceback),
        ]
    else:
        last = [structlog.processors.format_exc_info, _name_first, structlog.processors.JSONRenderer(default=str)]
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*_common(), structlog.stdlib.ExtraAdder(allow=())],
        processors=[
            _with_left_out,
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            *last,
            _without(secrets),
        ],
    )


def _spelt_out(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Texts of others as a terminal may see them; JSON lines spell them out by themselves."""
    for name, value in event.items():
        if isinstance(value, str):
            event[name] = spelt_lines(value) if name in ("exception", "stack") else spelt(value)
    return event


def _with_left_out(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    event.update(getattr(event.get("_record"), "left_out", {}))
    return event


def _name_first(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """What happened at the beginning of the line: people read logs as well."""
    return {**{name: event[name] for name in ("event", "level") if name in event}, **event}


def _without(secrets: tuple[str, ...]) -> structlog.typing.Processor:
    """The rendered line with each secret replaced, should a library have logged its options."""
    spelled = {form for text in secrets if text for form in (text, json.dumps(text)[1:-1], repr(text)[1:-1])}

    def masked(_: Any, __: str, line: Any) -> str:
        text = str(line)
        for form in spelled:
            text = text.replace(form, "***")
        return text

    return masked


def _kind(record: logging.LogRecord) -> _Kind:
    if isinstance(record.msg, dict):
        about = " ".join(str(record.msg[name]) for name in _ABOUT if name in record.msg)
    else:
        about = str(record.msg)[:120]
    return _Kind(record.name, record.levelno, about)
