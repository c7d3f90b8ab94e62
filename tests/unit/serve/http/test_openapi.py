"""The OpenAPI document says what is served, and what is served is as it says."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from stream_peer.log.owners import Elsewhere
from stream_peer.serve.http import HttpServer
from stream_peer.serve.http.explain import ExplainAnswers
from stream_peer.serve.http.routes import ROUTES, openapi
from stream_peer.settings.process import Http
from tests.unit.serve.http.season_process import tool
from tests.unit.serve.http.serving import Answer, Client, Group, serving, sources

DOCUMENT = openapi(ROUTES)


def conform(path: str, found: Answer) -> None:
    """Whether an answer is one that the document knows of, with a body of its schema."""
    described = DOCUMENT["paths"][path]["get"]["responses"]
    assert str(found.status) in described, (path, found.status)
    content = described[str(found.status)].get("content")
    if content is None:
        assert found.body == b""
        return
    kind = found.headers["Content-Type"].partition(";")[0]
    assert list(content) == [kind]
    if "json" in kind:
        schema = {**content[kind]["schema"], "components": DOCUMENT["components"]}
        Draft202012Validator(schema).validate(found.json)


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    owners = Group(moved=Elsewhere("http://worker-1:8080"))
    async with serving(sources(owners=owners, answers=ExplainAnswers(tool()))) as client:
        yield client


def test_the_document_is_valid() -> None:
    validate(DOCUMENT)


async def test_the_document_is_served(client: Client) -> None:
    assert (await client.get("/openapi.json")).json == DOCUMENT


def test_the_routes_of_the_router_are_those_of_the_document() -> None:
    application = HttpServer(Http(port=0), sources()).application()
    served = {
        resource.canonical: {route.method for route in resource}
        for resource in application.router.resources()
        if isinstance(resource, web.Resource)
    }

    assert served == {path: {"GET", "HEAD"} for path in DOCUMENT["paths"]}


def test_every_route_has_a_handler_and_every_handler_a_route() -> None:
    assert list(sources().handlers()) == [route.name for route in ROUTES]


@pytest.mark.parametrize(
    ("path", "asked", "status"),
    [
        ("/", "/", 200),
        ("/metrics", "/metrics", 200),
        ("/healthz/live", "/healthz/live", 200),
        ("/healthz/ready", "/healthz/ready", 200),
        ("/healthz/startup", "/healthz/startup", 200),
        ("/version", "/version", 200),
        ("/openapi.json", "/openapi.json", 200),
        ("/senders", "/senders", 200),
        ("/senders", "/senders?limit=0", 400),
        ("/feeds", "/feeds?limit=1", 200),
        ("/feeds", "/feeds?limit=x", 400),
        ("/feeds/{feed}", "/feeds/econ", 200),
        ("/feeds/{feed}", "/feeds/none", 404),
        ("/feeds/{feed}/experts/{expert}", "/feeds/econ/experts/b", 200),
        ("/feeds/{feed}/experts/{expert}", "/feeds/econ/experts/none", 404),
        ("/feeds/{feed}/experts/{expert}/explain", "/feeds/econ/experts/e1/explain", 200),
        ("/feeds/{feed}/experts/{expert}/explain", "/feeds/econ/experts/e1/explain?from=soon", 400),
        ("/feeds/{feed}/questions/{question}", "/feeds/econ/questions/will%20it%3F", 200),
        ("/feeds/{feed}/questions/{question}", "/feeds/econ/questions/none", 404),
        ("/feeds/{feed}/questions/{question}", "/feeds/moved/questions/q", 307),
        ("/feeds/{feed}/questions/{question}", "/feeds/moved/questions/q?redirected=yes", 503),
        ("/feeds/{feed}/groups", "/feeds/econ/groups?limit=1", 200),
        ("/feeds/{feed}/groups", "/feeds/moved/groups", 307),
        ("/feeds/{feed}/groups/{group}", "/feeds/econ/groups/chair", 200),
        ("/feeds/{feed}/groups/{group}", "/feeds/econ/groups/cpi", 200),
        ("/feeds/{feed}/groups/{group}", "/feeds/econ/groups/none", 404),
    ],
)
async def test_real_answers_are_as_the_document_says(client: Client, path: str, asked: str, status: int) -> None:
    found = await client.get(asked)

    assert found.status == status, found
    conform(path, found)


@pytest.mark.parametrize("path", [route.path for route in ROUTES if route.keeps])
async def test_answers_with_a_tag_are_those_of_which_the_document_says_so(client: Client, path: str) -> None:
    names: dict[str, Any] = {"{feed}": "econ", "{expert}": "b", "{question}": "will%20it%3F", "{group}": "chair"}
    asked = path
    for name, value in names.items():
        asked = asked.replace(name, value)
    tag = (await client.get(asked)).headers["ETag"]

    again = await client.get(asked, headers={"If-None-Match": tag})

    assert again.status == 304
    conform(path, again)


def test_a_wrong_answer_would_be_noticed() -> None:
    with pytest.raises(Exception, match="is a required property"):
        conform("/version", Answer(200, {"Content-Type": "application/json"}, b"{}"))
