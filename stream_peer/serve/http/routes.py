"""The table of routes, from which both the router and the OpenAPI document are made.

Schemas of the document come from the classes that are encoded, all else from the table.
"""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec

from stream_peer import __version__
from stream_peer.events.incoming import MAX_ID_BYTES
from stream_peer.events.outputs import MixedGroup
from stream_peer.serve.explanation import WeightExplanation
from stream_peer.serve.http.explain import PATIENCE_SECONDS, QUESTIONS
from stream_peer.serve.http.feeds import (
    EXPERTS,
    FEEDS,
    GROUPS,
    REDIRECTED,
    SENDERS,
    ExpertAnswer,
    FeedAnswer,
    FeedList,
    GroupList,
    QuestionAnswer,
    SendersAnswer,
)
from stream_peer.serve.http.probes import Probe, Version
from stream_peer.serve.http.problems import PROBLEM_JSON, Bounds, Problem

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
    """A route. A worker's all answer GET and HEAD, and none takes a body.

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
    body : mapping or None
        Of a POST, which it then is: what it takes, a schema by media type.
    success : int
        The status of an answer as it should be.
    headers : sequence of Parameter
        Of the request.
    problem : type
        The class of its problem documents.
    """

    path: str
    name: str
    about: str
    answers: type[msgspec.Struct] | str
    parameters: Sequence[Parameter] = ()
    keeps: bool = False
    others: Sequence[int] = ()
    seconds: float = _SECONDS
    body: Mapping[str, Any] | None = None
    success: int = 200
    headers: Sequence[Parameter] = ()
    problem: type[Problem] = Problem

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
    Route(
        "/healthz/ready",
        "ready",
        "Whether partitions are assigned and recovered, none is being rebuilt, brokers answer, topics are as planned.",
        Probe,
        others=[503],
    ),
    Route(
        "/healthz/startup",
        "startup",
        "Whether it has recovered its first assignment, or still waits for its first brokers.",
        Probe,
        others=[503],
    ),
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
    Route(
        "/feeds/{feed}/groups",
        "groups",
        "Questions of a feed with options or thresholds, by name, from the worker that owns the feed.",
        GroupList,
        [*_pages(GROUPS, "groups"), _WAS_REDIRECTED],
        keeps=True,
        others=[307, 400, 404, 503],
    ),
    Route(
        "/feeds/{feed}/groups/{group}",
        "group",
        "The mixed forecast of a question with options or thresholds, as `mixed-groups` has it, from that worker.",
        MixedGroup,
        [_WAS_REDIRECTED],
        keeps=True,
        others=[307, 400, 404, 503],
    ),
)
"""Every route there is."""

LONGEST_ID = MAX_ID_BYTES
"""Bytes of an id in a path, decoded: there are no longer ones."""


_REF = "#/components/schemas/{name}"
_ALWAYS = (401, 413, 421, 431, 500, 503)
_ABOUT = (
    "What a worker of stream-peer answers. Any worker answers for any feed. All routes answer GET and HEAD; faults are "
    "problem documents (RFC 9457)."
)


def openapi(routes: Sequence[Route], about: str = _ABOUT, setting: str = "http.token_file") -> dict[str, Any]:
    """The document (OpenAPI 3.1) of some routes; ``setting`` is the one by which they ask for one."""
    classes = [route.answers for route in routes if not isinstance(route.answers, str)]
    _, schemas = msgspec.json.schema_components([*classes, *{route.problem for route in routes}], ref_template=_REF)
    return {
        "openapi": "3.1.0",
        "info": {"title": "stream-peer", "version": __version__, "description": about},
        "servers": [{"url": "/"}],
        "paths": {route.path: {"get" if route.body is None else "post": _operation(route)} for route in routes},
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": f"Asked for if {setting} is set."}
            },
        },
        "security": [{}, {"token": []}],
    }


def _operation(route: Route) -> dict[str, Any]:
    open_to_all: dict[str, Any] = {"security": [{}]} if route.path.startswith(OPEN) else {}
    return {
        "operationId": route.name,
        "summary": route.about,
        "parameters": [
            *map(_id_in_path, route.ids),
            *map(_parameter, route.parameters),
            *({**_parameter(header), "in": "header"} for header in route.headers),
            *([_KNOWN] if route.keeps else []),
        ],
        **({} if route.body is None else {"requestBody": {"required": True, "content": route.body}}),
        "responses": dict(sorted({str(route.success): _success(route), **_others(route)}.items())),
        **open_to_all,
    }


_KNOWN = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "description": "The ETag of an answer that is known: 304 if it is still that.",
    "schema": {"type": "string"},
}


def _id_in_path(name: str) -> dict[str, Any]:
    about = f"Name of the {name}, percent-encoded, slashes as well."
    schema = {"type": "string", "minLength": 1, "maxLength": LONGEST_ID}
    return {"name": name, "in": "path", "required": True, "description": about, "schema": schema}


def _parameter(parameter: Parameter) -> dict[str, Any]:
    name, about, schema = parameter
    return {"name": name, "in": "query", "required": False, "description": about, "schema": schema}


def _success(route: Route) -> dict[str, Any]:
    if not isinstance(route.answers, str):
        content = {"application/json": {"schema": {"$ref": _REF.format(name=route.answers.__name__)}}}
    elif route.answers == "application/json":
        content = {route.answers: {"schema": {"type": "object"}}}
    else:
        content = {route.answers: {"schema": {"type": "string"}}}
    headers = {"ETag": _header_schema("Changes whenever the answer does.")} if route.keeps else {}
    if any(parameter.name == "cursor" for parameter in route.parameters):
        headers["Link"] = _header_schema("Leads to the next page (rel=next), if there is one.")
    return {"description": route.about, "content": content, **({"headers": headers} if headers else {})}


def _others(route: Route) -> dict[str, Any]:
    unasked = {401, 421} if route.path.startswith(OPEN) else {421} if route.path == METRICS else set[int]()
    statuses = {*route.others, *_ALWAYS} - unasked
    answers = {str(status): _problem_response(status, route.problem) for status in statuses - {307}}
    if 503 in route.others and route.path.startswith(OPEN):
        answers["503"] = {**_success(route), "description": "Not so; the reason says why."}
    if route.keeps:
        answers["304"] = {"description": "The client has the newest answer."}
    if 307 in route.others:
        about = "Another worker owns the feed, and answers at this address."
        answers["307"] = {"description": about, "headers": {"Location": _header_schema("URL of the answer.")}}
    return answers


def _problem_response(status: int, problem: type[Problem]) -> dict[str, Any]:
    content = {PROBLEM_JSON: {"schema": {"$ref": _REF.format(name=problem.__name__)}}}
    told: dict[str, Any] = {"description": HTTPStatus(status).phrase, "content": content}
    if status in {429, 503}:
        told["headers"] = {"Retry-After": _header_schema("Seconds after which it may be otherwise.")}
    return told


def _header_schema(about: str) -> dict[str, Any]:
    return {"description": about, "schema": {"type": "string"}}
