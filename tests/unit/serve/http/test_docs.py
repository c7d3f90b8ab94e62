"""What docs/http.md tells a reader to type is answered, and what it says of limits is so."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from stream_peer.log.owners import Here
from stream_peer.serve.feed_records import MOST_BYTES
from stream_peer.serve.http.feeds import EXPERTS, FEEDS, GROUPS
from stream_peer.settings.process import Http
from tests.feed_histories import folded, log_of, round_of
from tests.feed_outputs import weights
from tests.unit.serve.http.serving import Followed, Group, serving, sources

TOKEN = "of-the-page"
HARMLESS = {"-L", "--location-trusted"}


@pytest.fixture
def page(repository: Path) -> str:
    return (repository / "docs" / "http.md").read_text(encoding="utf-8")


def typed(page: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Path and headers of every curl command."""
    for line in re.findall(r"^curl .*$", page, re.MULTILINE):
        words, headers, paths = iter(shlex.split(line)[1:]), {}, []
        for word in words:
            if word == "-H":
                name, _, value = next(words).partition(": ")
                headers[name] = value
            elif word == "--oauth2-bearer":
                assert next(words) == "$TOKEN"
                headers["Authorization"] = f"Bearer {TOKEN}"
            elif word not in HARMLESS:
                place = urlsplit(word)
                assert place.netloc == "127.0.0.1:8080"
                paths.append(word.partition(place.netloc)[2])
        (path,) = paths
        yield path, headers


async def test_every_command_of_the_page_is_answered(page: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    said = {"ann": 0.9, "bob": 0.4, "eve": 0.7}
    stage, _ = folded(log_of([round_of(asked, said, feed="econ") for asked in ("fed-cut-june", "chair::=Ada")]))
    found = sources(following=Followed(weights(48211, "ann", "bob", "desk/ann")), owners=Group(econ=Here(stage)))
    commands = list(typed(page))
    async with serving(found) as client, serving(found, Http(port=0, token_file=tmp_path / "token")) as closed:
        answers = {
            path: await (closed if "Authorization" in headers else client).get(path, headers=headers)
            for path, headers in commands
        }
        slashed = await client.get("/feeds/econ/experts/desk%2Fann")

    assert len(commands) >= 8
    assert {path: answer.status for path, answer in answers.items() if answer.status not in (200, 304)} == {}
    assert slashed.json["expert"]["id"] == "desk/ann"


async def test_the_tag_of_the_page_is_one(page: str) -> None:
    (tag,) = re.findall(r'If-None-Match: ("[^"]+")', page)
    async with serving(sources(following=Followed(weights(48211, "ann")))) as client:
        assert (await client.get("/feeds/econ")).headers["ETag"] == tag


def test_numbers_of_the_page_are_those_in_force(page: str) -> None:
    for bounds in (FEEDS, GROUPS, EXPERTS):
        assert f"({bounds.usual:,}, at most {bounds.most:,})" in page
    assert f"{MOST_BYTES // 1_000_000} MB" in page


@pytest.mark.parametrize(
    ("typed_path", "written"),
    [
        ("/feeds/econ/experts/desk/ann", "/feeds/econ/experts/desk%2Fann"),
        ("/feeds/econ/experts/desk/ann/explain", "/feeds/econ/experts/desk%2Fann/explain"),
        ("/feeds/econ/questions/2026/fed%20cut/june", "/feeds/econ/questions/2026%2Ffed%20cut%2Fjune"),
    ],
)
async def test_who_leaves_a_slash_of_a_name_as_it_is_reads_how_to_write_it(typed_path: str, written: str) -> None:
    async with serving(sources()) as client:
        answer = await client.get(typed_path)
        elsewhere = await client.get("/feeds/econ/nothing/here")

    assert answer.status == 404
    assert answer.json["detail"].endswith(f"; a / within an id is written %2F: {written}")
    assert "%2F" not in elsewhere.json["detail"]
