"""Whoever posts is known, limits hold, and each answer says what became of the events."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trustme
from jsonschema import Draft202012Validator
from msgspec.structs import replace
from openapi_spec_validator import validate
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from stream_peer.errors import BrokerUnavailableError, RecordTooLargeError, SettingsError
from stream_peer.events.rejections import Reason
from stream_peer.gateway.posts import MOST_LINES
from stream_peer.gateway.server import MOST_BYTES, check_gateway
from stream_peer.serve.metrics.catalogue import GATEWAY
from stream_peer.settings.process import Settings, read_producers
from tests.unit.gateway.gateways import FORECAST, TOKENS, Taking, files, gateway, with_limits


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return files(tmp_path)


async def test_an_event_is_written_and_named(settings: Settings) -> None:
    brokers = Taking()
    async with gateway(settings, brokers) as client:
        first = await client.post(FORECAST, Idempotency_Key="a")
        again = await client.post(FORECAST, Idempotency_Key="a")

    assert (first.status, first.json["accepted"], first.json["refused"]) == (202, 1, 0)
    assert first.json == again.json
    assert brokers.records[0] == brokers.records[1]
    assert json.loads(brokers.records[0].value) == {**FORECAST, "event_id": first.json["lines"][0]["event_id"]}


async def test_each_line_has_its_result(settings: Settings) -> None:
    brokers = Taking()
    async with gateway(settings, brokers) as client:
        mixed = await client.post(FORECAST, "nonsense", "", {**FORECAST, "expert_id": "rival"}, lines=True)
        refused = await client.post("nonsense", {**FORECAST, "expert_id": "rival"}, lines=True)

    assert (mixed.status, mixed.json["accepted"], mixed.json["refused"]) == (202, 1, 2)
    assert [(line["line"], line["status"], line.get("reason")) for line in mixed.json["lines"]] == [
        (1, 202, None),
        (2, 400, "not-json"),
        (4, 403, "producer-forbidden"),
    ]
    assert (refused.status, len(refused.json["lines"]), len(brokers.records)) == (422, 2, 1)


async def test_a_refused_event_is_a_problem_with_the_reason_of_a_dead_letter(settings: Settings) -> None:
    async with gateway(settings, Taking()) as client:
        told = {
            Reason.PROBABILITY_RANGE: await client.post({**FORECAST, "probability": 40}),
            Reason.PRODUCER_FORBIDDEN: await client.post({**FORECAST, "feed": "sport"}),
        }
        told[Reason.NOT_JSON] = await client.post("{")

    assert {reason: answer.status for reason, answer in told.items()} == {
        Reason.PROBABILITY_RANGE: 422,
        Reason.PRODUCER_FORBIDDEN: 403,
        Reason.NOT_JSON: 400,
    }
    for reason, answer in told.items():
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert (answer.json["reason"], answer.json["status"]) == (reason, answer.status)


@pytest.mark.parametrize("token", [None, "x", TOKENS["house"] + "x", TOKENS["house"][:-1]])
async def test_who_has_no_token_posts_nothing(settings: Settings, token: str | None) -> None:
    brokers = Taking()
    async with gateway(settings, brokers) as client:
        answer = await client.post(FORECAST, token=token)

    assert (answer.status, answer.is_problem, brokers.records) == (401, True, [])
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="stream-peer"'


async def test_a_token_is_replaced_without_a_restart(settings: Settings) -> None:
    assert settings.gateway.tokens_file is not None
    newer = "house another-token-of-house\nplatform x\nnonsense\nnobody a-token-that-is-long\n"
    tokens = (TOKENS["house"], "another-token-of-house", "x", "a-token-that-is-long")
    async with gateway(settings, Taking()) as client:
        before = (await client.post(FORECAST)).status
        settings.gateway.tokens_file.write_text(newer, encoding="utf-8-sig")
        with capture_logs() as logged:
            after = [(await client.post(FORECAST, token=token)).status for token in tokens]

    assert (before, after) == (202, [401, 202, 401, 401])
    assert [(line["event"], line["lines"]) for line in logged] == [("http_tokens_wrong", 3)]
    assert logged[0]["reason"].startswith("line 2 has a token of less than 16 bytes")


async def test_a_client_certificate_names_the_producer(tmp_path: Path) -> None:
    authority, stranger = trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "server.pem"))
    settings = files(tmp_path, tokens_file=None, cert_file=tmp_path / "server.pem", client_ca_file=tmp_path / "ca.pem")
    statuses = {}
    for who, issuer, name in (
        ("house", authority, "house"),
        ("nobody", authority, "nobody"),
        ("without", None, ""),
        ("stranger", stranger, "house"),
    ):
        context = client_tls(authority, issuer, name, tmp_path)
        async with gateway(settings, Taking(), context) as client:
            try:
                statuses[who] = (await client.post(FORECAST, token=None)).status
            except OSError:
                statuses[who] = 0

    assert statuses == {"house": 202, "nobody": 401, "without": 401, "stranger": 0}


def client_tls(authority: trustme.CA, issuer: trustme.CA | None, name: str, directory: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority.cert_pem.bytes().decode())
    if issuer is not None:
        file = directory / "client.pem"
        issuer.issue_cert("client.example", common_name=name).private_key_and_cert_chain_pem.write_to_path(str(file))
        context.load_cert_chain(file)
    return context


async def test_what_is_too_large_is_refused_before_it_is_read(settings: Settings) -> None:
    async with gateway(settings, Taking()) as client:
        announced = await client.post(b"x" * (MOST_BYTES + 1))
        chunked = await client.ask(
            "/events",
            "POST",
            data=chunks(MOST_BYTES + 1),
            headers={"Authorization": f"Bearer {TOKENS['house']}", "Content-Type": "application/json"},
        )
        many = await client.post(*["{}"] * (MOST_LINES + 1), lines=True)
        assert client.posts.room.taken == 0

    assert [answer.status for answer in (announced, chunked, many)] == [413, 413, 413]


async def chunks(size: int) -> AsyncIterator[bytes]:
    for _ in range(0, size, 50_000):
        yield b" " * 50_000


async def test_forms_that_are_not_understood_are_named(settings: Settings) -> None:
    async with gateway(settings, Taking()) as client:
        found = [
            (await client.post(FORECAST, Content_Type="text/plain")).status,
            (await client.post(FORECAST, Content_Encoding="br")).status,
            (await client.post(FORECAST, Idempotency_Key="x" * 257)).status,
            (await client.post(FORECAST, Idempotency_Key="")).status,
            (await client.ask("/events")).status,
            (await client.ask("/nothing")).status,
            (await client.ask("/metrics", data=b"body")).status,
        ]

    assert found == [415, 415, 400, 400, 405, 404, 413]


@pytest.mark.parametrize("limit", [{"events_per_second": 1}, {"bytes_per_second": 100}])
async def test_who_sends_too_much_waits(settings: Settings, limit: dict[str, int]) -> None:
    async with gateway(with_limits(settings, **limit), Taking()) as client:
        first = await client.post(*[FORECAST] * 1_000, lines=True)
        second = await client.post(FORECAST)
        other = await client.post("{", token=TOKENS["platform"])

    assert (first.status, second.status, other.status) == (202, 429, 400)
    assert int(second.headers["Retry-After"]) > 1


async def test_another_post_is_answered_while_a_long_one_is_checked_and_sent(settings: Settings) -> None:
    brokers = Taking()
    events = [{**FORECAST, "expert_id": f"house-{number}"} for number in range(5_000)]
    async with gateway(settings, brokers) as client:
        long = asyncio.ensure_future(client.post(*events, lines=True))
        await brokers.asked.wait()
        other = await client.post("{", token=TOKENS["platform"])
        sent_before = len(brokers.records)
        answer = await long

    assert (other.status, answer.status, answer.json["accepted"]) == (400, 202, len(events))
    assert 0 < sent_before < len(events)
    assert [json.loads(record.value) for record in brokers.records] == events
    assert [line["line"] for line in answer.json["lines"]] == list(range(1, len(events) + 1))


async def test_there_is_room_for_so_many_posts_only(settings: Settings) -> None:
    brokers = Taking()
    async with gateway(settings, brokers) as client:
        brokers.held = asyncio.get_running_loop().create_future()
        assert client.posts.room.take(64_000_000 - 2 * len(json.dumps(FORECAST)) + 1)
        waiting = asyncio.ensure_future(client.post(FORECAST))
        await brokers.asked.wait()
        full = await client.post(FORECAST)
        brokers.held.set_result(None)
        answer = await waiting

    assert (full.status, full.headers["Retry-After"], answer.status) == (503, "1", 202)


async def test_a_client_that_goes_away_leaves_what_is_being_written_as_it_is(settings: Settings) -> None:
    brokers = Taking()
    async with gateway(settings, brokers) as client:
        brokers.held = asyncio.get_running_loop().create_future()
        gone = asyncio.ensure_future(client.post(FORECAST))
        await brokers.asked.wait()
        gone.cancel()
        other = await client.post("{")  # its answer comes after the end of that connection was seen
        held = client.posts.room.taken
        brokers.held.set_result(None)
        await asyncio.sleep(0)

        assert (other.status, held) == (400, len(json.dumps(FORECAST)))
        assert client.posts.room.taken == 0


async def test_brokers_that_are_away_are_told_to_clients_and_orchestrators(settings: Settings) -> None:
    async with gateway(settings, Taking(is_away=True)) as client:
        post, ready, live = [
            await client.post(FORECAST),
            await client.ask("/healthz/ready"),
            await client.ask("/healthz/live"),
        ]

    assert (post.status, ready.status, live.status) == (503, 503, 200)
    assert int(post.headers["Retry-After"]) > 0
    assert post.is_problem


@pytest.mark.parametrize(
    ("fault", "status"), [(BrokerUnavailableError("away"), 503), (RecordTooLargeError("too large"), 413)]
)
async def test_what_is_not_acknowledged_is_not_accepted(settings: Settings, fault: Exception, status: int) -> None:
    async with gateway(settings, Taking(fault)) as client:  # type: ignore[arg-type]
        answer = await client.post(*[FORECAST] * 100, lines=True)
        assert client.posts.room.taken == 0

    assert (answer.status, answer.is_problem) == (status, True)


async def test_the_document_is_valid_and_answers_are_as_it_says(settings: Settings) -> None:
    async with gateway(settings, Taking()) as client:
        document = (await client.ask("/openapi.json")).json
        accepted, refused = await client.post(FORECAST, Idempotency_Key="a"), await client.post("{")

    validate(document)
    answers = document["paths"]["/events"]["post"]["responses"]
    for answer in (accepted, refused):
        (content,) = answers[str(answer.status)]["content"].values()
        Draft202012Validator({**content["schema"], "components": document["components"]}).validate(answer.json)


async def test_the_metrics_are_those_of_the_catalogue(settings: Settings) -> None:
    async with gateway(settings, Taking()) as client:
        await client.post(FORECAST)
        await client.post("{")
        text = (await client.ask("/metrics")).body.decode()

    found = {family.name: family for family in text_string_to_metric_families(text)}
    for metric in GATEWAY:
        family = found[metric.full_name.removesuffix("_total")]
        assert (family.type, family.documentation) == (metric.kind, metric.help)
    events = {sample.labels["result"]: sample.value for sample in found["stream_peer_gateway_events"].samples}
    assert events == {"accepted": 1, "unacknowledged": 0, **{str(reason): 0 for reason in Reason}, "not-json": 1}


async def test_metrics_need_the_token_of_others_who_ask(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "asking").write_text("the-token-of-prometheus")
    guarded = replace(settings, http=replace(settings.http, token_file=tmp_path / "asking"))
    async with gateway(guarded, Taking()) as client:
        asked = [
            (await client.ask("/metrics")).status,
            (await client.ask("/metrics", headers={"Authorization": "Bearer the-token-of-prometheus"})).status,
            (await client.post(FORECAST)).status,
            (await client.post(FORECAST, token="the-token-of-prometheus")).status,
        ]

    assert asked == [401, 200, 202, 401]


def test_all_that_is_wrong_with_the_files_is_told_at_once(settings: Settings) -> None:
    assert settings.gateway.tokens_file is not None
    settings.gateway.tokens_file.write_text(
        "house\nhouse short\nnobody a-token-that-is-long\n\nhouse a-token-that-is-long\n"
    )

    with pytest.raises(SettingsError) as refused:
        check_gateway(settings, read_producers(settings))

    assert [fault.message.split(":")[0] for fault in refused.value.faults] == [
        "line 1 is not a producer's name, a blank and a token",
        "line 2 has a token of less than 16 bytes",
        "line 3 names a producer that producers_file does not name",
    ]
    assert "short" not in str(refused.value).replace("shorter", "")


def test_a_gateway_to_which_nobody_could_post_does_not_start() -> None:
    with pytest.raises(SettingsError) as refused:
        check_gateway(Settings(), None)

    assert [fault.path for fault in refused.value.faults] == ["producers_file", "gateway.tokens_file"]
