"""What the server answers to any request, where it listens, and when it says that it is ready."""

import asyncio
import socket

import pytest
from structlog.testing import capture_logs

from stream_peer import __version__
from stream_peer.errors import SettingsError
from stream_peer.log.owners import Here
from stream_peer.serve.http import HttpServer, bind, port_of, server
from stream_peer.serve.http.feeds import FeedAnswers
from stream_peer.serve.http.routes import ROUTES
from stream_peer.serve.http.server import Announcer
from stream_peer.settings.process import Http
from tests.unit.serve.http.serving import Broken, Group, Patient, serving, sources


@pytest.mark.parametrize("probe", ["live", "ready", "startup"])
async def test_a_probe_answers_200_or_503_with_the_reason(probe: str) -> None:
    patient = Patient()
    async with serving(sources(health=patient)) as client:
        fine = await client.get(f"/healthz/{probe}")
        patient.answers[probe] = (False, "recovers 2 of 4 partitions")
        ill = await client.get(f"/healthz/{probe}")

    assert (fine.status, fine.json) == (200, {"status": "ok"})
    assert (ill.status, ill.json) == (503, {"status": "unavailable", "reason": "recovers 2 of 4 partitions"})
    assert ill.headers["Content-Type"].startswith("application/json")


async def test_metrics_are_served_in_the_text_format() -> None:
    async with serving() as client:
        found = await client.get("/metrics")

    assert (found.status, found.headers["Content-Type"].partition(";")[0]) == (200, "text/plain")
    assert b"stream_peer_build_info{" in found.body


@pytest.mark.parametrize("version", ["zz", '"1.0.0"', "1..", "999999.0.0", ""])
async def test_metrics_are_served_whatever_version_is_asked_for(version: str) -> None:
    async with serving() as client:
        found = await client.get("/metrics", headers={"Accept": f"application/openmetrics-text;version={version}"})

    assert found.status == 200
    assert b"stream_peer_build_info{" in found.body


async def test_the_version_is_told() -> None:
    async with serving() as client:
        assert (await client.get("/version")).json["version"] == __version__


async def test_only_the_loopback_address_is_bound_by_default() -> None:
    async with serving() as client:
        assert client.server.url.startswith("http://127.0.0.1:")
        assert not client.server.url.endswith(":0")


async def test_an_address_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        serving_one = HttpServer(Http(port=port), sources())
        with pytest.raises(SettingsError, match=f"cannot listen on 127.0.0.1:{port}"):
            await serving_one.on_start()
        await serving_one.on_stop()


@pytest.mark.parametrize("host", ["\udcff", "a\0b", "a..b"])
def test_a_host_that_is_no_name_is_told_as_an_address_that_is_not_there(host: str) -> None:
    with pytest.raises(OSError, match=r"not known|No address"):
        bind(Http(host=host, port=0))


async def test_a_port_that_was_bound_before_is_known_before_and_listens_only_then() -> None:
    bound = bind(Http(port=0))
    serving_one = HttpServer(Http(port=0), sources(), bound)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port_of(bound)), timeout=5)

    await serving_one.on_start()

    assert serving_one.url == f"http://127.0.0.1:{port_of(bound)}"
    socket.create_connection(("127.0.0.1", port_of(bound)), timeout=5).close()
    await serving_one.on_stop()


async def test_an_ipv6_address_has_brackets_in_its_url() -> None:
    assert HttpServer(Http(host="::1", port=80), sources()).url == "http://[::1]:80"


async def test_an_error_of_ours_shows_a_client_nothing_of_the_code() -> None:
    async with serving(sources(owners=Group(econ=Here(Broken())))) as client:
        found = await client.get("/feeds/econ/questions/secret-of-4711")

    assert (found.status, found.is_problem) == (500, True)
    assert b"4711" not in found.body
    assert b"RuntimeError" not in found.body


async def test_every_answer_has_headers_that_keep_browsers_from_mischief() -> None:
    async with serving() as client:
        answers = [await client.get(path) for path in ("/", "/feeds", "/metrics", "/nothing", "/healthz/live")]
        answers.append(await client.raw(b"no request\r\n\r\n"))

    for found in answers:
        assert found.headers["X-Content-Type-Options"] == "nosniff"
        assert found.headers["Content-Security-Policy"].startswith("default-src 'none'; ")
        assert "frame-ancestors 'none'" in found.headers["Content-Security-Policy"]
        assert "aiohttp" not in found.headers["Server"]


async def test_head_answers_as_get_does_without_the_body() -> None:
    async with serving() as client:
        for path in ("/", "/feeds/econ", "/version", "/feeds/none"):
            whole, head = await client.get(path), await client.get(path, "HEAD")
            assert (head.status, head.headers.get("ETag")) == (whole.status, whole.headers.get("ETag"))
            assert head.headers["Content-Length"] == str(len(whole.body))
            assert head.body == b""


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"GET /feeds/../../etc/passwd HTTP/1.1", 404),
        (b"GET /feeds/%2e%2e%2f%2e%2e%2fetc%2fpasswd HTTP/1.1", 404),
        (b"GET /feeds/%00 HTTP/1.1", 404),
        (b"GET /feeds/%ff%fe HTTP/1.1", 404),
        (b"GET /feeds/\xe9 HTTP/1.1", 400),
        (b"GET /healthz/\xe9 HTTP/1.1", 400),
        (b"GET /feeds/%E2%80%AE/experts/%F0%9F%A6%9D HTTP/1.1", 404),
        (b"GET /feeds/econ/experts/%00a HTTP/1.1", 404),
        (b"GET /feeds/econ/experts/" + b"x" * 300 + b" HTTP/1.1", 404),
        (b"GET /feeds/econ/questions/" + b"%78" * 257 + b" HTTP/1.1", 404),
        (b"GET /feeds/econ/experts/" + b"x" * 10_000 + b" HTTP/1.1", 431),
        (b"GET /feeds/econ?limit=" + b"9" * 4000 + b" HTTP/1.1", 400),
        (b"GET /feeds/econ?cursor=%zz&cursor=b HTTP/1.1", 400),
        (b"GET //econ HTTP/1.1", 404),
        (b"GET http://evil.example/feeds/none HTTP/1.1", 404),
        (b"DELETE /feeds/econ HTTP/1.1", 405),
        (b"BREW /feeds HTTP/1.1", 400),
        (b"GET /feeds HTTP/9.9", 400),
    ],
)
async def test_whatever_is_asked_for_the_answer_is_a_problem_document(request_line: bytes, status: int) -> None:
    async with serving() as client:
        found = await client.raw(request_line + b"\r\nHost: localhost\r\n\r\n")

    assert (found.status, found.is_problem) == (status, True), found
    assert b"Traceback" not in found.body
    assert b"Set-Cookie" not in found.body


@pytest.mark.parametrize("header", [b"X: " + b"y" * 10_000, b"\r\n".join(b"X%d: y" % n for n in range(200)), b": z"])
async def test_headers_that_are_too_long_too_many_or_none_are_refused(header: bytes) -> None:
    async with serving() as client:
        found = await client.raw(b"GET /feeds HTTP/1.1\r\nHost: localhost\r\n" + header + b"\r\n\r\n")

    assert found.status in (400, 431)
    assert found.is_problem


@pytest.mark.parametrize(
    "rest",
    [
        b"Content-Length: 999999999\r\n\r\n",
        b"Content-Length: 4\r\n\r\nbody",
        b"Transfer-Encoding: chunked\r\n\r\nffffff\r\n",
        b"Content-Length: 4\r\nExpect: 100-continue\r\n\r\n",
    ],
)
async def test_no_request_takes_a_body_and_nobody_reads_it(rest: bytes) -> None:
    async with serving() as client:
        found = await client.raw(b"GET /feeds HTTP/1.1\r\nHost: localhost\r\n" + rest)

    assert (found.status, found.is_problem) == (413, True)
    assert found.headers["Connection"] == "close"


async def test_an_odd_expectation_is_a_problem_too() -> None:
    async with serving() as client:
        found = await client.raw(b"GET /feeds HTTP/1.1\r\nHost: localhost\r\nExpect: miracles\r\n\r\n")

    assert (found.status, found.is_problem) == (417, True)


async def test_what_may_be_asked_instead_is_told() -> None:
    async with serving() as client:
        found = await client.get("/feeds", "POST")

    assert (found.status, found.is_problem, found.headers["Allow"]) == (405, True, "GET,HEAD")


async def test_an_answer_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(FeedAnswers, "feed", never)
    monkeypatch.setattr(server, "ROUTES", [route._replace(seconds=0.01) for route in ROUTES])
    async with serving() as client:
        found = await client.get("/feeds/econ")

    assert (found.status, found.is_problem, found.headers["Retry-After"]) == (503, True, "5")


def test_a_worker_that_becomes_ready_says_so_once_with_its_address() -> None:
    answers = iter([(False, "starting"), (False, "recovers"), *[(True, "")] * 5])
    asked: list[bool] = []
    became_ready = asyncio.Event()

    def ready() -> tuple[bool, str]:
        answer = next(answers)
        asked.append(answer[0])
        if answer[0]:
            became_ready.set()
        return answer

    async def watch() -> None:
        async with Announcer(ready, lambda: "http://127.0.0.1:1"):
            async with asyncio.timeout(20):
                await became_ready.wait()

    with capture_logs() as logs:
        asyncio.run(watch())

    assert [(entry["event"], entry.get("http")) for entry in logs] == [("worker_ready", "http://127.0.0.1:1")]
    assert asked == [False, False, True]
