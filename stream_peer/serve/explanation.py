"""Why an expert's weight moved: what is asked and what is answered, the same for the command line, HTTP and the report.

``tools.explain`` computes the answers. A worker's HTTP server has it done by another process, which reads an
`ExplainTask` and writes a `WeightExplanation` or an `ExplainFault`.
"""

import re
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from stream_peer.events.feed_log import Verdict
from stream_peer.events.times import Milliseconds, from_iso, to_milliseconds
from stream_peer.settings.process import Secret, Settings

WeightKind: TypeAlias = Literal["mix", "select"]
CauseKind: TypeAlias = Literal[
    "listing",  # experts came or left: the weight is shared among more of them, or fewer
    "peer-loss",  # how its own forecasts compare with the others' answers
    "truth",  # how its own forecasts compare with an outcome, which became known or changed
    "ageing",  # its older questions count less, where the feed forgets
    "others",  # the others' own records moved
    "re-pricing",  # the estimate of how often the others' answers are wrong changed: the past counts otherwise
    "mixers",  # outcomes favour another way of mixing
    "guard",  # experts who say the same share one weight
    "shrinkage",  # trust in the feed asks for selection weights that are more alike, or does so no longer
    "safety-net",  # the mix goes nearer to the plain mean, or away from it
    "settings",
    "operator",  # a reset, an import, a deletion
]

# --- what is asked ---

_REVISION = re.compile(r"[0-9]{1,18}")


class Bound(NamedTuple):
    """The end of a span of a feed's log: the last record up to a moment, or that of a revision."""

    at: Milliseconds | None = None
    revision: int | None = None


def bound_of(text: str) -> Bound:
    """A revision, or a moment; without a zone it is UTC.

    Raises
    ------
    ValueError
        If it is neither.

    Examples
    --------
    >>> bound_of("4711"), bound_of("2026-03-01")
    (Bound(at=None, revision=4711), Bound(at=1772323200000, revision=None))
    """
    if _REVISION.fullmatch(text):
        return Bound(revision=int(text))
    try:
        at = from_iso(text)
    except (ValueError, OverflowError):
        msg = f"{text!r} is neither a moment, such as 2026-03-01 or 2026-03-01T12:00Z, nor a revision, such as 4711"
        raise ValueError(msg) from None
    return Bound(at=to_milliseconds(at))


class ExplainRequest(NamedTuple):
    """The expert, which of its weights, between which ends, how many questions to list, and whether its inputs."""

    feed: str
    expert: str
    since: Bound | None = None
    until: Bound | None = None
    weight: WeightKind = "mix"
    questions: int = 10
    inputs: bool = False

    @property
    def is_backwards(self) -> bool:
        """Whether it ends before it begins."""
        since, until = self.since, self.until
        if since is None or until is None:
            return False
        ends = (since.at, until.at), (since.revision, until.revision)
        return any(one is not None and other is not None and one > other for one, other in ends)


class ExplainTask(NamedTuple):
    """A request, and where its log is: the worker's settings, and the deployment's secret."""

    request: ExplainRequest
    settings: Settings
    secret: bytes


def encode_task(task: ExplainTask) -> bytes:
    """A task on one line. It holds the deployment's secrets: for a pipe, never for a command line or a file."""
    # Feed settings are left out: the log has those that count.
    settings = msgspec.structs.replace(task.settings, document={})
    return msgspec.json.encode(task._replace(settings=settings), enc_hook=_text_of) + b"\n"


def decode_task(line: bytes) -> ExplainTask:
    """A task, as `encode_task` wrote it."""
    return msgspec.json.decode(line, type=ExplainTask, dec_hook=lambda kind, text: kind(text))


def _text_of(value: Any) -> str:
    return value.reveal() if isinstance(value, Secret) else str(Path(value))


# --- what is answered ---


class SpanEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The weight at one end of the span; ``experts``: how many had weights, ``listed``: whether this one had.

    ``revision`` and ``at`` are those of the last record up to there; ``asked``: the moment that was asked for.
    """

    revision: int
    at: str
    asked: str | None
    weight: float
    listed: bool
    experts: int


class CauseOfMove(msgspec.Struct, frozen=True, kw_only=True):
    """What a cause did over the whole span: on how many ``questions``; on ``raised`` of them it raised the weight."""

    cause: CauseKind
    name: str
    meaning: str
    change: float
    questions: int
    raised: int


class TermOfMove(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """By how much one cause moved the weight; ``boundary``: that of the round, if it is of one."""

    cause: CauseKind
    change: float
    boundary: str | None = None


class QuestionOfMove(msgspec.Struct, frozen=True, kw_only=True):
    """What the records of a question did.

    ``own``: the part of ``change`` that comes from the expert's own forecast of it, whose latest ``probability`` stands
    beside the others' ``reference_answer`` and what is known of the outcome.
    """

    question: str
    change: float
    own: float
    probability: float | None
    reference_answer: int | None
    outcome: Verdict | None
    terms: list[TermOfMove]


class RestOfMove(msgspec.Struct, frozen=True, kw_only=True):
    """The questions that are not listed, so many, and what is of no question."""

    questions: int
    own_questions: int
    change: float
    own: float
    terms: list[TermOfMove]


class OwnMove(msgspec.Struct, frozen=True, kw_only=True):
    """What the expert's own forecasts did, on how many questions, and on how many of them they raised the weight."""

    change: float
    questions: int
    raised: int


class InputOfWeight(msgspec.Struct, frozen=True, kw_only=True):
    """A number that the weight at the end is read from: a column of the expert's sums, or what all experts share."""

    name: str
    value: float
    meaning: str


class WeightExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why the weight of an expert moved. ``causes`` add up to ``difference``; so do ``questions`` and ``rest``.

    ``inputs``: if they were asked for.
    """

    feed: str
    expert: str
    weight: WeightKind
    since: SpanEnd
    until: SpanEnd
    difference: float
    sentences: list[str]
    own: OwnMove
    causes: list[CauseOfMove]
    questions: list[QuestionOfMove]
    rest: RestOfMove
    inputs: list[InputOfWeight] | msgspec.UnsetType = msgspec.UNSET


class ExplainFault(msgspec.Struct, frozen=True):
    """Why there is no explanation, and a sentence about it.

    There is no such feed or expert; the span ends before it begins; the log cannot be read; it takes too much memory;
    or the code failed.
    """

    what: Literal["feed", "expert", "span", "log", "memory", "code"]
    message: str


encode_explanation = msgspec.json.Encoder().encode
EXIT_FAULT = 3
"""Exit code of the process that explains, if what it wrote is an `ExplainFault`."""
