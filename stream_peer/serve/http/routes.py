"""The table of routes: what the server serves, and what its OpenAPI document says, both read from here."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from stream_peer.events.incoming import MAX_ID_BYTES
from stream_peer.serve.explanation import WeightExplanation
from stream_peer.serve.http.answers import (
    ExpertAnswer,
    FeedAnswer,
    FeedList,
    Probe,
    QuestionAnswer,
    SendersAnswer,
    Version,
)
from stream_peer.serve.http.explain import PATIENCE_SECONDS, QUESTIONS
from stream_peer.serve.http.feeds import EXPERTS, FEEDS, SENDERS
from stream_peer.serve.http.problems import Bounds
from stream_peer.serve.http.questions import REDIRECTED

_SECONDS = 15.0
METRICS = "/metrics"
OPEN = "/healthz/"
"""Paths that begin so need no token: orchestrators have none."""


class Parameter(NamedTuple):
    """A parameter behind the question mark."""

    name: str
    about: str
    schema: dict[str, Any]


class Route(NamedTuple):
    """A route: all answer GET and HEAD, and none takes a body.

    Attributes
    ----------
    path : str
    name : str
        Of the operation, and of its handler.
    about : str
        What it answers, in a sentence.
    answers : type or str
        The class of the JSON, or another media type.
    parameters : sequence of Parameter
    keeps : bool
        Whether answers have an ETag, and 304 is one of them.
    others : sequence of int
        What it may answer instead of 200, besides what all may.
    seconds : float
        How long an answer may take.
    """

    path: str
    name: str
    about: str
    answers: type[msgspec.Struct] | str
    parameters: Sequence[Parameter] = ()
    keeps: bool = False
    others: Sequence[int] = ()
    seconds: float = _SECONDS

    @property
    def ids(self) -> list[str]:
        """Names that stand in the path."""
        return [part[1:-1] for part in self.path.split("/") if part.startswith("{")]

    @property
    def pattern(self) -> str:
        """The path as the router wants it: an id is whatever stands between two slashes, braces and all."""
        return "/".join(f"{part[:-1]}:[^/]+}}" if part.startswith("{") else part for part in self.path.split("/"))


def _limit(bounds: Bounds, about: str) -> Parameter:
    limit = {"type": "integer", "minimum": 1, "maximum": bounds.most, "default": bounds.usual}
    return Parameter("limit", about, limit)


def _pages(bounds: Bounds, what: str) -> tuple[Parameter, Parameter]:
    return (
        _limit(bounds, f"How many {what} a page has at most."),
        Parameter("cursor", "Where the page begins: `next` of the page before.", {"type": "string"}),
    )


_MOMENT = {"type": "string", "examples": ["2026-03-01", "4711"]}
_EXPLAIN = (
    Parameter("from", "Where the span begins: a moment or a revision; default: with the feed.", _MOMENT),
    Parameter("to", "Where it ends: a moment or a revision; default: now.", _MOMENT),
    Parameter("weight", "Which weight.", {"type": "string", "enum": ["mix", "select"], "default": "mix"}),
    Parameter(
        "questions",
        "How many questions to list.",
        {"type": "integer", "minimum": 0, "maximum": QUESTIONS.most, "default": QUESTIONS.usual},
    ),
)
_WAS_REDIRECTED = Parameter(
    REDIRECTED, "Set by a redirect: a redirected request is not redirected again.", {"type": "string"}
)

ROUTES: Sequence[Route] = (
    Route("/", "statusPage", "The status page: weights and trust of feeds, lag.", "text/html"),
    Route(METRICS, "metrics", "Metrics in the text format of Prometheus.", "text/plain"),
    Route("/healthz/live", "live", "Whether the worker makes progress; if not, restart it.", Probe, others=[503]),
    Route("/healthz/ready", "ready", "Whether its partitions are assigned and recovered.", Probe, others=[503]),
    Route("/healthz/startup", "startup", "Whether it was ready once.", Probe, others=[503]),
    Route("/version", "version", "Which release runs.", Version),
    Route("/openapi.json", "openapi", "This document.", "application/json"),
    Route(
        "/senders",
        "senders",
        "Experts to look at, of this worker: new ones, those that send very often, and those whose ids look alike.",
        SendersAnswer,
        [_limit(SENDERS, "How many entries each list has at most.")],
        others=[400],
    ),
    Route(
        "/feeds",
        "feeds",
        "All feeds by name, of all workers.",
        FeedList,
        _pages(FEEDS, "feeds"),
        keeps=True,
        others=[400, 503],
    ),
    Route(
        "/feeds/{feed}",
        "feed",
        "Weights, error rates, trust and certificate of a feed, as published last.",
        FeedAnswer,
        _pages(EXPERTS, "experts"),
        keeps=True,
        others=[400, 404, 503],
    ),
    Route(
        "/feeds/{feed}/experts/{expert}",
        "expert",
        "An expert's weights and record in a feed, as published last.",
        ExpertAnswer,
        keeps=True,
        others=[400, 404, 503],
    ),
    Route(
        "/feeds/{feed}/experts/{expert}/explain",
        "explain",
        "Why an expert's weight moved, from the feed's log. One is computed at a time; 429 meanwhile.",
        WeightExplanation,
        _EXPLAIN,
        others=[400, 404, 429, 503],
        seconds=PATIENCE_SECONDS + _SECONDS,  # it has a patience of its own
    ),
    Route(
        "/feeds/{feed}/questions/{question}",
        "question",
        "The latest reference answer and mixed forecast of a question, from the worker that owns the feed.",
        QuestionAnswer,
        [_WAS_REDIRECTED],
        keeps=True,
        others=[307, 400, 404, 503],
    ),
)
"""Every route there is."""

LONGEST_ID = MAX_ID_BYTES
"""Bytes of an id in a path, decoded: there are no longer ones."""
