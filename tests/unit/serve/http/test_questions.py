"""Questions and groups of them: answered by the owner of the feed, to whom all others point."""

from urllib.parse import quote

import msgspec
import pytest

from stream_peer.log.owners import Elsewhere, Here, Unknown
from tests.unit.serve.http.serving import FEED, QUESTION, Group, home, serving, sources

PATH = f"/feeds/{FEED}/questions/{quote(QUESTION, safe='')}"


async def test_the_owner_tells_the_latest_reference_answer_and_mix() -> None:
    async with serving() as client:
        found = await client.get(PATH)

    records = home().question_records(FEED, QUESTION)
    assert records is not None
    assert found.status == 200
    assert (found.json["feed"], found.json["question"]) == (FEED, QUESTION)
    assert found.json["revision"] == records.reference_answer.revision
    assert found.json["reference_answer"]["reference_answer"] == records.reference_answer.reference_answer
    assert found.json["reference_answer"]["state"] == "scored"
    assert found.json["mixed_forecast"]["mix"] == records.mixed_forecast.mix


async def test_an_answer_that_is_known_is_not_sent_again() -> None:
    async with serving() as client:
        tag = (await client.get(PATH)).headers["ETag"]
        again = await client.get(PATH, headers={"If-None-Match": tag})

    assert (again.status, again.body) == (304, b"")


async def test_others_point_to_the_owner_and_an_id_stays_what_it_is() -> None:
    async with serving(sources(owners=Group(econ=Elsewhere("http://worker-1:8080/peer")))) as client:
        found = await client.get(PATH)
        strange = await client.get(f"/feeds/econ/questions/{quote('//evil.example/ü?#', safe='')}")

    assert (found.status, found.body) == (307, b"")
    assert found.headers["Location"] == f"http://worker-1:8080/peer{PATH}?redirected=yes"
    start = "http://worker-1:8080/peer/feeds/econ/questions/%2F%2Fevil.example%2F%C3%BC%3F%23?"
    assert strange.headers["Location"].startswith(start)
    assert found.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(("name", "segment"), [("..", "%2E%2E"), (".", "%2E"), ("a..", "a.."), ("%2e", "%252e")])
async def test_a_name_of_dots_is_no_step_in_the_path_of_a_redirect(name: str, segment: str) -> None:
    async with serving(sources(owners=Group(econ=Elsewhere("http://worker-1:8080")))) as client:
        found = await client.get(f"/feeds/econ/questions/{name.replace('%', '%25')}")

    assert found.headers["Location"] == f"http://worker-1:8080/feeds/econ/questions/{segment}?redirected=yes"


async def test_a_redirect_works_and_never_leads_to_another() -> None:
    """Two workers that each take the other for the owner, as in a rebalance."""
    async with serving() as owner, serving(sources(owners=Group(econ=Elsewhere(owner.server.url)))) as other:
        target = (await other.get(PATH)).headers["Location"]
        followed = await owner.get(target.removeprefix(owner.server.url))
    async with serving(sources(owners=Group(econ=Elsewhere("http://worker-1:8080")))) as mistaken:
        sent_on = await mistaken.get(f"{PATH}?redirected=yes")

    assert (followed.status, followed.json["question"]) == (200, QUESTION)
    assert (sent_on.status, sent_on.is_problem, sent_on.headers["Retry-After"]) == (503, True, "2")


async def test_an_owner_that_nobody_knows_is_not_guessed() -> None:
    async with serving(sources(owners=Group(econ=Unknown("partitions are being assigned anew")))) as client:
        found = await client.get(PATH)

    assert (found.status, found.is_problem, found.headers["Retry-After"]) == (503, True, "2")
    assert found.json["detail"] == "partitions are being assigned anew"


@pytest.mark.parametrize(
    ("path", "detail"),
    [
        (f"/feeds/{FEED}/questions/never", "no round of a question 'never' counts in feed econ"),
        ("/feeds/none/questions/q", "there is no feed 'none'"),
    ],
)
async def test_the_owner_says_what_there_is_not(path: str, detail: str) -> None:
    async with serving(sources(owners=Group(econ=Here(home()), none=Here(home())))) as client:
        found = await client.get(path)

    assert (found.status, found.is_problem) == (404, True)
    assert detail in found.json["detail"]


async def test_questions_have_no_parameters_of_their_own() -> None:
    async with serving() as client:
        assert (await client.get(f"{PATH}?round=1")).status == 400


async def test_the_owner_lists_groups_and_tells_the_forecast_of_one() -> None:
    async with serving() as client:
        first = await client.get(f"/feeds/{FEED}/groups?limit=1")
        second = await client.get(f"/feeds/{FEED}/groups?limit=1&cursor=chair")
        chair, cpi = await client.get(f"/feeds/{FEED}/groups/chair"), await client.get(f"/feeds/{FEED}/groups/cpi")
        again = await client.get(f"/feeds/{FEED}/groups/chair", headers={"If-None-Match": chair.headers["ETag"]})
        unknown = await client.get(f"/feeds/{FEED}/groups/never")

    assert [(page.json["groups"], page.json["next"]) for page in (first, second)] == [
        (["chair"], "chair"),
        (["cpi"], None),
    ]
    assert chair.json == msgspec.to_builtins(home().group_record(FEED, "chair"))
    assert sum(option["mix"] for option in chair.json["options"]) == pytest.approx(1.0)
    assert ([part["name"] for part in cpi.json["cdf"]], "options" in cpi.json) == (["2"], False)
    assert again.status == 304
    assert (unknown.status, unknown.is_problem) == (404, True)


async def test_of_groups_others_point_to_the_owner_with_the_page_that_is_asked_for() -> None:
    async with serving(sources(owners=Group(econ=Elsewhere("http://worker-1:8080")))) as client:
        listed, one = await client.get(f"/feeds/{FEED}/groups?limit=2"), await client.get(f"/feeds/{FEED}/groups/a%2Fb")

    assert listed.headers["Location"] == f"http://worker-1:8080/feeds/{FEED}/groups?limit=2&redirected=yes"
    assert one.headers["Location"] == f"http://worker-1:8080/feeds/{FEED}/groups/a%2Fb?redirected=yes"
