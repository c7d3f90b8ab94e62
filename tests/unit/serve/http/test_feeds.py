"""Feeds and their experts, as they were published."""

from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from stream_peer.events.outputs import (
    DriftedExpert,
    Drifting,
    ExpertGroup,
    Weights,
    encode_output,
)
from stream_peer.serve.feed_records import FeedRecords
from tests.feed_outputs import part, rates_of, weights
from tests.unit.serve.http.serving import Client, Followed, serving, sources

NAMES = [f"e{number:03d}" for number in range(25)]


def plain(record: msgspec.Struct) -> Any:
    return msgspec.json.decode(encode_output(record))


async def walk(client: Client, path: str) -> list[Any]:
    """All pages of a list, by its links."""
    pages = []
    following: str | None = path
    while following is not None:
        found = await client.get(following)
        assert found.status == 200, found
        pages.append(found.json)
        link = found.headers.get("Link")
        following = None if link is None else path.partition("?")[0] + link[link.index("<") + 1 : link.index(">")]
        assert (pages[-1]["next"] is None) == (following is None)
    return pages


async def test_feeds_are_listed_by_name_with_their_trust() -> None:
    async with serving() as client:
        found = await client.get("/feeds")

    assert [(feed["feed"], feed["status"], feed["revision"]) for feed in found.json["feeds"]] == [
        ("econ", "ok", 7),
        ("sport", "ok", 3),
    ]
    assert found.json["feeds"][0]["at"] == "2026-03-01T12:00:00Z"


async def test_a_feed_is_what_its_topics_say() -> None:
    async with serving() as client:
        found = await client.get("/feeds/econ")

    newest = weights(7, "a", "b", "c")
    assert found.json == {
        "feed": "econ",
        "experts": 3,
        "next": None,
        "weights": plain(newest),
        "error_rates": plain(rates_of(newest)),
    }


async def test_a_feed_that_was_published_in_parts_is_one() -> None:
    followed = Followed()
    for number, expert in enumerate("ab"):
        followed.records.add_weights(f"econ/{number}".encode(), part(weights(5), number, 2, expert))
    async with serving(sources(following=followed)) as client:
        found = await client.get("/feeds/econ")

    assert found.json["weights"] == plain(weights(5, "a", "b"))
    assert found.json["error_rates"] is None


@pytest.mark.parametrize("limit", [1, 7, 24, 25])
async def test_pages_hold_every_expert_once(limit: int) -> None:
    async with serving(sources(following=Followed(weights(1, *NAMES)))) as client:
        pages = await walk(client, f"/feeds/econ?limit={limit}")

    assert [expert["id"] for page in pages for expert in page["weights"]["experts"]] == NAMES
    assert {page["experts"] for page in pages} == {25}
    assert max(len(page["weights"]["experts"]) for page in pages) == limit


async def test_pages_hold_every_feed_once_whatever_it_is_called() -> None:
    names = ["a", "a.b", "A-", "z_z", "0"]
    async with serving(sources(following=Followed(*(weights(1, feed=name) for name in names)))) as client:
        pages = await walk(client, "/feeds?limit=2")

    assert [feed["feed"] for page in pages for feed in page["feeds"]] == sorted(names)


async def test_a_cursor_may_name_who_has_left() -> None:
    async with serving(sources(following=Followed(weights(1, "a", "c", "d")))) as client:
        found = await client.get("/feeds/econ?cursor=b&limit=1")

    assert [expert["id"] for expert in found.json["weights"]["experts"]] == ["c"]


@pytest.mark.parametrize(
    ("path", "detail"),
    [
        ("/feeds?limit=0", "limit is '0', no number within 1..1000"),
        ("/feeds?limit=1001", "within 1..1000"),
        ("/feeds?limit=-1", "limit is '-1'"),
        ("/feeds?limit=%D9%A3", "limit is '٣'"),
        ("/feeds?limit=", "limit is ''"),
        ("/feeds/econ?limit=2001", "within 1..2000"),
        ("/feeds/econ?limit=1&limit=2", "limit can be given once"),
        ("/feeds?lmit=5", "no parameter 'lmit'; there are limit, cursor"),
        ("/feeds/econ/experts/a?limit=5", "no parameter 'limit'; there are none here"),
    ],
)
async def test_parameters_that_cannot_be_understood_are_told(path: str, detail: str) -> None:
    async with serving() as client:
        found = await client.get(path)

    assert (found.status, found.is_problem) == (400, True)
    assert detail in found.json["detail"]


async def test_an_expert_is_told_with_what_is_known_of_it_beside_the_others() -> None:
    group = ExpertGroup(experts=["a", "b"], kind="copies", agreement=0.9, expected=0.2, questions=80)
    drifted = DriftedExpert(id="a", before=0.8, now=0.5, since_questions=60, z=-4.0)
    newest = msgspec.structs.replace(
        weights(7, "a", "b", "c"),
        groups=[group],
        drift=Drifting(error_rate=None, n_experts=1, experts=[drifted]),
    )
    async with serving(sources(following=Followed(newest))) as client:
        marked, plainly = [(await client.get(f"/feeds/econ/experts/{name}")).json for name in ("a", "c")]

    assert marked["expert"] == plain(newest.experts[0])
    assert (marked["status"], marked["revision"], marked["settings"]) == ("ok", 7, "9f3c")
    assert (marked["groups"], marked["drift"]) == ([plain(group)], plain(drifted))
    assert (plainly["groups"], plainly["drift"]) == ([], None)


@pytest.mark.parametrize("name", ["a/b", "a b", "ü", "{x}", "..", "a?b#c", "%41", "\u202e", "x" * 256])
async def test_whatever_an_expert_is_called_it_is_found(name: str) -> None:
    async with serving(sources(following=Followed(weights(7, name)))) as client:
        found = await client.get(f"/feeds/econ/experts/{quote(name, safe='')}")

    assert found.status == 200, found
    assert found.json["expert"]["id"] == name


@pytest.mark.parametrize(
    ("path", "detail"),
    [
        ("/feeds/eco", "there is no feed 'eco'; did you mean econ?"),
        ("/feeds/econ/experts/B", "there is no expert 'B' with a weight in feed econ; did you mean b?"),
        ("/feeds/none/experts/a", "there is no feed 'none'"),
    ],
)
async def test_what_there_is_not_is_told_with_what_may_be_meant(path: str, detail: str) -> None:
    async with serving() as client:
        found = await client.get(path)

    assert (found.status, found.is_problem) == (404, True)
    assert detail in found.json["detail"]


@pytest.mark.parametrize("path", ["/feeds", "/feeds/econ", "/feeds/econ/experts/a"])
async def test_before_all_was_read_whoever_asks_is_told_to_come_again(path: str) -> None:
    async with serving(sources(following=Followed(not_ready_reason="no broker answers"))) as client:
        found = await client.get(path)
        page = await client.get("/")

    assert (found.status, found.is_problem, found.headers["Retry-After"]) == (503, True, "5")
    assert "no broker answers" in found.json["detail"]
    assert page.status == 200
    assert b"no broker answers" in page.body


async def test_a_feed_that_is_not_kept_is_listed_and_says_where_it_is() -> None:
    followed = Followed()
    followed.records = FeedRecords(most_bytes=1)
    followed.publish(weights(1, "a"))
    followed.publish(weights(1, "a", feed="sport"))
    async with serving(sources(following=followed)) as client:
        listed, asked = await client.get("/feeds"), await client.get("/feeds/econ")

    assert [feed["feed"] for feed in listed.json["feeds"]] == ["econ", "sport"]
    assert (asked.status, asked.is_problem) == (503, True)
    assert "topic weights" in asked.json["detail"]


PATHS = ["/feeds", "/feeds?limit=1", "/feeds/econ", "/feeds/econ?limit=1", "/feeds/econ/experts/a"]


@pytest.mark.parametrize("path", PATHS)
async def test_what_a_client_has_is_not_sent_again_until_it_changes(path: str) -> None:
    followed = Followed(weights(7, "a", "b"), weights(3, feed="sport"))
    async with serving(sources(following=followed)) as client:
        first = await client.get(path)
        tag = first.headers["ETag"]
        again = await client.get(path, headers={"If-None-Match": f'"other", W/{tag}'})
        any_at_all = await client.get(path, headers={"If-None-Match": "*"})
        followed.publish(_later())
        changed = await client.get(path, headers={"If-None-Match": tag})

    assert not tag.startswith("W/")
    assert "no-cache" in first.headers["Cache-Control"]
    for known in (again, any_at_all):
        assert (known.status, known.body, known.headers["ETag"]) == (304, b"", tag)
    assert changed.status == 200
    assert changed.headers["ETag"] != tag


def _later() -> Weights:
    return weights(8, "a", "b")


async def test_new_error_rates_alone_are_a_change_of_the_feed() -> None:
    followed = Followed(weights(7, "a"))
    async with serving(sources(following=followed)) as client:
        tag = (await client.get("/feeds/econ")).headers["ETag"]
        followed.records.add_error_rates(b"econ", encode_output(rates_of(weights(8))))
        changed = await client.get("/feeds/econ", headers={"If-None-Match": tag})

    assert changed.status == 200


async def test_an_odd_tag_is_no_tag() -> None:
    async with serving() as client:
        assert (await client.get("/feeds", headers={"If-None-Match": "🦝, \x80"})).status == 200
