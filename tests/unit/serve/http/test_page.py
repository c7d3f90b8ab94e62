"""What the page for people is filled with."""

from collections.abc import Iterable, Sequence

import pytest

from stream_peer.events.outputs import WeightedExpert, Weights
from stream_peer.serve.metrics import Metrics
from stream_peer.serve.pages.status import FEEDS_SHOWN, FeedStatus
from tests.feed_outputs import weights
from tests.unit.serve.http.serving import Client, Followed, Patient, serving, sources
from tests.unit.serve.metrics.scraping import FeedsOnly


async def text_of(client: Client) -> str:
    found = await client.get("/")
    assert (found.status, found.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    return found.body.decode()


async def test_it_shows_feeds_experts_lag_and_whether_the_worker_is_ready() -> None:
    metrics, patient = Metrics(), Patient()
    metrics.owned("question", 3, FeedsOnly({}))
    metrics.lag("question", 3, 4711, None)
    patient.answers["ready"] = (False, "recovers 2 of 4 partitions")
    async with serving(sources(metrics=metrics, health=patient)) as client:
        text = await text_of(client)

    for shown in ("econ", "sport", "worker-0", "recovers 2 of 4 partitions", "4,711", "0a1b2c3d"):
        assert shown in text, shown


async def test_without_feeds_it_says_how_there_will_be_some() -> None:
    async with serving(sources(following=Followed())) as client:
        assert "forecast-events" in await text_of(client)


async def test_names_cannot_break_out_of_it() -> None:
    async with serving(sources(following=Followed(weights(1, "<script>alert(1)</script>")))) as client:
        text = await text_of(client)

    assert "<script" not in text


async def test_it_runs_no_script_and_loads_nothing() -> None:
    async with serving() as client:
        policy = (await client.get("/")).headers["Content-Security-Policy"]

    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; ")
    assert "script-src" not in policy


async def test_of_many_feeds_a_bounded_number_is_shown_those_that_need_attention_first() -> None:
    def alarmed(number: int) -> Weights:
        return weights(1, "a", feed=f"feed-{number:04d}")

    async with serving(sources(following=Followed(*map(alarmed, range(FEEDS_SHOWN + 40))))) as client:
        text = await text_of(client)

    assert "feed-0000" in text
    assert f"feed-{FEEDS_SHOWN + 39:04d}" not in text
    assert str(FEEDS_SHOWN + 40) in text


async def test_experts_are_looked_through_once_a_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader who reloads the page of fifty feeds of 10,000 experts must not hold up the work."""
    looked: list[tuple[str, int]] = []
    of = FeedStatus.of

    def counted(newest: Weights, experts: Sequence[WeightedExpert] = ()) -> FeedStatus:
        looked.append((newest.feed, newest.revision))
        return of(newest, experts)

    monkeypatch.setattr(FeedStatus, "of", counted)
    followed = Followed(weights(7, *names(300)), weights(3, feed="sport"))
    async with serving(sources(following=followed)) as client:
        for _ in range(3):
            await text_of(client)
        followed.publish(weights(8, *names(300)))
        text = await text_of(client)

    assert looked == [("econ", 7), ("sport", 3), ("econ", 8)]
    assert "e299" not in text or "e000" not in text  # the rest of them is one row


def names(count: int) -> Iterable[str]:
    return (f"e{number:03d}" for number in range(count))
