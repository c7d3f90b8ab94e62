"""What docs/gateway.md tells a reader to type is accepted, and its numbers are those in force."""

import json
import re
import shlex
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from stream_peer.gateway.brokers import DELIVERY_SECONDS
from stream_peer.gateway.posts import MOST_LINES, LineResult
from stream_peer.gateway.server import MOST_BYTES, ROOM_BYTES
from stream_peer.settings.process.keys import MIN_KEY_BYTES
from tests.unit.gateway.gateways import FORECAST, TOKENS, Taking, files, gateway


@pytest.fixture
def page(repository: Path) -> str:
    return (repository / "docs" / "gateway.md").read_text(encoding="utf-8")


def typed(line: str) -> tuple[str, dict[str, str], str]:
    """Path, headers and body of a curl command."""
    words, headers, body, url = iter(shlex.split(line)[1:]), dict[str, str](), "", ""
    for word in words:
        if word == "-H":
            name, _, value = next(words).partition(": ")
            headers[name] = value
        elif word == "--oauth2-bearer":
            assert next(words) == "$TOKEN"
            headers["Authorization"] = f"Bearer {TOKENS['platform']}"
        elif word in ("-d", "--data-binary"):
            body = next(words)
        else:
            url = word
    assert urlsplit(url).netloc == "127.0.0.1:8081"
    return urlsplit(url).path, headers, body


async def test_every_command_of_the_page_is_accepted(page: str, tmp_path: Path) -> None:
    question = json.dumps({"type": "question", "question_id": "q", "feed": "econ", "at": "2026-03-01"})
    brokers = Taking()
    commands = [typed(line) for line in re.findall(r"^curl .*$", page, re.MULTILINE)]
    async with gateway(files(tmp_path), brokers) as client:
        answers = [
            await client.ask(path, "POST", headers=headers, data=f"{question}\n" if body == "@events.jsonl" else body)
            for path, headers, body in commands
        ]

    assert [answer.status for answer in answers] == [202, 202]
    assert len(brokers.records) == 2


async def test_the_answer_of_the_page_has_the_form_of_answers(page: str, tmp_path: Path) -> None:
    (shown,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    async with gateway(files(tmp_path), Taking()) as client:
        wrong = {**FORECAST, "probability": 40}
        answer = (await client.post(FORECAST, wrong, lines=True, Idempotency_Key="a")).json

    example = json.loads(shown)
    assert example.keys() == answer.keys()
    assert [line.keys() for line in example["lines"]] == [line.keys() for line in answer["lines"]]
    assert set(example["lines"][1]) <= set(LineResult.__struct_fields__)


def test_numbers_of_the_page_are_those_in_force(page: str) -> None:
    for number in (
        f"{MOST_BYTES:,} bytes",
        f"{MOST_LINES:,} lines",
        f"within {DELIVERY_SECONDS:.0f} seconds",
        f"{MIN_KEY_BYTES} bytes or more",
        f"{ROOM_BYTES // 10**6} MB of posts",
    ):
        assert number in page
