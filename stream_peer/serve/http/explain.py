"""``/feeds/{feed}/experts/{expert}/explain``: why an expert's weight moved, from the feed's log in Kafka.

Another process computes it, so that neither its memory nor its time are the worker's. One request at a time is
computed; the others get 429. The process is killed when the client closes the connection, when its time is over, and
when the worker stops; when the worker dies, it ends by itself, because its standard input ends.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec
import structlog
from aiohttp import web

from stream_peer.serve.explanation import (
    EXIT_FAULT,
    ExplainFault,
    ExplainRequest,
    ExplainTask,
    WeightKind,
    bound_of,
    encode_task,
)
from stream_peer.serve.http.problems import NOT_UNDERSTOOD, RETRY_SECONDS, Bounds, ProblemError, check_names, number
from stream_peer.settings.process import Settings

log = structlog.get_logger(__name__)

PATIENCE_SECONDS = 60.0
MOST_BYTES = 64_000_000
"""Of an answer: 10,000 questions take about 10 MB."""
QUESTIONS = Bounds(usual=10, most=10_000)
_NAMES = ("from", "to", "weight", "questions")


class ExplainTool(NamedTuple):
    """The command of the process that explains, and what it needs to read the log."""

    command: Sequence[str]
    settings: Settings
    secret: bytes


class ExplainAnswers:
    """Answers requests about weights, one at a time.

    Parameters
    ----------
    tool : ExplainTool
    patience_seconds : float
        How long a request may take.
    most_bytes : int
        How long an answer may be.
    """

    def __init__(
        self, tool: ExplainTool, patience_seconds: float = PATIENCE_SECONDS, most_bytes: int = MOST_BYTES
    ) -> None:
        self._tool = tool
        self._patience = patience_seconds
        self._most_bytes = most_bytes
        self._busy = self._stopping = False
        self._process: asyncio.subprocess.Process | None = None

    async def explain(self, request: web.Request) -> web.Response:
        """Answer one request.

        Raises
        ------
        ProblemError
            400, 404; 429 while another is computed; 503 if the log cannot be read, or is too long.
        """
        asked = _asked(request)
        if self._busy:
            detail = "another explanation is being computed, and only one is at a time"
            raise ProblemError(429, detail, "Busy", RETRY_SECONDS)
        self._busy = True
        try:
            async with asyncio.timeout(self._patience):
                code, output = await self._run(asked)
        except TimeoutError:
            raise _too_much(f"the feed's log is too long to be read within {self._patience:g} seconds") from None
        finally:
            self._busy = False
        if code == EXIT_FAULT:
            raise _problem(msgspec.json.decode(output, type=ExplainFault))
        if code:
            raise self._ended_early(code)
        return web.Response(body=output, content_type="application/json", headers={"Cache-Control": "no-store"})

    async def end(self, _application: web.Application) -> None:
        """Kill the process: the worker stops."""
        self._stopping = True
        if self._process is not None:
            _kill(self._process)

    async def _run(self, asked: ExplainRequest) -> tuple[int, bytes]:
        """Exit code and output of the process; it has ended, or is killed, when this returns."""
        pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        self._process = process = await asyncio.create_subprocess_exec(
            *self._tool.command,
            stdin=pipe,
            stdout=pipe,
            stderr=null,
            start_new_session=True,  # Ctrl-C in a terminal is for the worker, which kills it
        )
        assert process.stdin is not None  # noqa: S101 - both are pipes
        assert process.stdout is not None  # noqa: S101
        try:
            if self._stopping:
                _kill(process)
            # Standard input stays open: its end tells the process that the worker is gone.
            process.stdin.write(encode_task(ExplainTask(asked, self._tool.settings, self._tool.secret)))
            with suppress(ConnectionError):  # it ended at once: its exit code says why
                await process.stdin.drain()
            output = bytearray()
            while part := await process.stdout.read(1 << 16):
                output += part
                if len(output) > self._most_bytes:
                    raise _too_much(f"the answer is longer than {self._most_bytes / 1e6:g} MB")
            return await process.wait(), bytes(output)
        finally:
            self._process = None
            _kill(process)
            process.stdin.close()
            await process.wait()

    def _ended_early(self, code: int) -> ProblemError:
        if self._stopping:
            return ProblemError(503, "the worker that was asked is stopping; ask again", "Stopping", RETRY_SECONDS)
        log.error("explanation_failed", code=code, reason="its process ended without an answer")
        return _too_much("the process that computes it was killed, most likely because memory ran out")


def _kill(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()


def _too_much(reason: str) -> ProblemError:
    detail = f"{reason}; `stream-peer explain` has no such limit"
    return ProblemError(503, detail, "Too much to read", RETRY_SECONDS)


def _problem(fault: ExplainFault) -> ProblemError:
    """What the client gets instead of an explanation."""
    match fault.what:
        case "span":
            return _backwards()
        case "feed" | "expert":
            return ProblemError(404, fault.message, f"No such {fault.what}")
        case "log":
            return ProblemError(503, fault.message, "The log cannot be read", RETRY_SECONDS)
        case "memory":
            return _too_much(fault.message)
        case "code":
            log.error("explanation_failed", code=EXIT_FAULT, reason=fault.message)
            return ProblemError(500, "the worker failed to answer; its log says why")


def _asked(request: web.Request) -> ExplainRequest:
    """What is asked for.

    Raises
    ------
    ProblemError
        400, if it cannot be understood.
    """
    check_names(request, _NAMES)
    query = request.query
    weight = query.get("weight", "mix")
    if weight not in {"mix", "select"}:
        raise ProblemError(400, f"weight is {weight[:100]!r}, neither mix nor select", NOT_UNDERSTOOD)
    questions = number(request, "questions", QUESTIONS, least=0)
    try:
        since, until = (bound_of(query[name]) if name in query else None for name in ("from", "to"))
    except ValueError as error:
        raise ProblemError(400, str(error), NOT_UNDERSTOOD) from None
    feed, expert = request.match_info["feed"], request.match_info["expert"]
    kind: WeightKind = "mix" if weight == "mix" else "select"
    asked = ExplainRequest(feed, expert, since, until, kind, questions)
    if asked.is_backwards:
        raise _backwards()
    return asked


def _backwards() -> ProblemError:
    return ProblemError(400, "from is after to", NOT_UNDERSTOOD)
