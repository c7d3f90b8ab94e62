"""The OpenAPI document of the routes: schemas come from the classes that are encoded, all else from the table."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import msgspec

from stream_peer import __version__
from stream_peer.serve.http.problems import PROBLEM_JSON, Problem
from stream_peer.serve.http.routes import LONGEST_ID, METRICS, OPEN, Parameter, Route

_REF = "#/components/schemas/{name}"
_ALWAYS = (401, 413, 421, 431, 500, 503)
_ABOUT = (
    "What a worker of stream-peer answers. Any worker answers for any feed. All routes answer GET and HEAD; faults are "
    "problem documents (RFC 9457)."
)


def openapi(routes: Sequence[Route]) -> dict[str, Any]:
    """The document (OpenAPI 3.1) of some routes."""
    classes = [route.answers for route in routes if not isinstance(route.answers, str)]
    _, schemas = msgspec.json.schema_components([*classes, Problem], ref_template=_REF)
    return {
        "openapi": "3.1.0",
        "info": {"title": "stream-peer", "version": __version__, "description": _ABOUT},
        "servers": [{"url": "/"}],
        "paths": {route.path: {"get": _operation(route)} for route in routes},
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "Asked for if http.token_file is set."}
            },
        },
        "security": [{}, {"token": []}],
    }


def _operation(route: Route) -> dict[str, Any]:
    open_to_all: dict[str, Any] = {"security": [{}]} if route.path.startswith(OPEN) else {}
    return {
        "operationId": route.name,
        "summary": route.about,
        "parameters": [*map(_id, route.ids), *map(_parameter, route.parameters), *([_KNOWN] if route.keeps else [])],
        "responses": dict(sorted({"200": _success(route), **_others(route)}.items())),
        **open_to_all,
    }


_KNOWN = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "description": "The ETag of an answer that is known: 304 if it is still that.",
    "schema": {"type": "string"},
}


def _id(name: str) -> dict[str, Any]:
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
    headers = {"ETag": _header("Changes whenever the answer does.")} if route.keeps else {}
    if any(parameter.name == "cursor" for parameter in route.parameters):
        headers["Link"] = _header("Leads to the next page (rel=next), if there is one.")
    return {"description": route.about, "content": content, **({"headers": headers} if headers else {})}


def _others(route: Route) -> dict[str, Any]:
    unasked = {401, 421} if route.path.startswith(OPEN) else {421} if route.path == METRICS else set[int]()
    statuses = {*route.others, *_ALWAYS} - unasked
    answers = {str(status): _problem(status) for status in statuses - {307}}
    if 503 in route.others and route.path.startswith(OPEN):
        answers["503"] = {**_success(route), "description": "Not so; the reason says why."}
    if route.keeps:
        answers["304"] = {"description": "The client has the newest answer."}
    if 307 in route.others:
        about = "Another worker owns the feed, and answers at this address."
        answers["307"] = {"description": about, "headers": {"Location": _header("URL of the answer.")}}
    return answers


def _problem(status: int) -> dict[str, Any]:
    content = {PROBLEM_JSON: {"schema": {"$ref": _REF.format(name=Problem.__name__)}}}
    told: dict[str, Any] = {"description": HTTPStatus(status).phrase, "content": content}
    if status in {429, 503}:
        told["headers"] = {"Retry-After": _header("Seconds after which it may be otherwise.")}
    return told


def _header(about: str) -> dict[str, Any]:
    return {"description": about, "schema": {"type": "string"}}
