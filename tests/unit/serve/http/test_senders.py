"""Experts to look at: what a worker met, counted and named, and as JSON."""

from collections.abc import Iterable
from datetime import UTC, datetime

from stream_peer.events.times import to_milliseconds
from stream_peer.log.stage import Effects
from stream_peer.serve.metrics import Metrics
from stream_peer.serve.metrics.senders import LATELY, MOST_EXPERTS, BusyExpert, LookAlike, NewExperts, Senders
from tests.feed_histories import folded, log_of, round_of
from tests.unit.serve.http.serving import serving, sources

NOW = 1_800_000_000_000


def test_experts_met_within_a_week_are_listed_by_feed_newest_first() -> None:
    senders = Senders()
    senders.meet(
        [("econ", "old", NOW - LATELY), ("econ", "ann", NOW - 2), ("sport", "zoe", NOW - 1), ("econ", "bob", NOW)]
    )

    assert senders.new(NOW, 9) == [NewExperts("econ", 2, ["bob", "ann"]), NewExperts("sport", 1, ["zoe"])]
    assert senders.new(NOW, 1) == [NewExperts("econ", 2, ["bob"])]


def test_no_more_are_remembered_than_there_is_room_for() -> None:
    senders = Senders()
    senders.meet([("f", f"e{number}", NOW) for number in range(MOST_EXPERTS + 7)])
    senders.count({("f", f"e{number}"): 1 for number in range(MOST_EXPERTS + 7)})

    senders.compare(("f", f"E{number}", f"e{number}") for number in range(MOST_EXPERTS + 7))

    (found,) = senders.new(NOW, 9)
    assert len(senders.look_alikes(2 * MOST_EXPERTS)) == MOST_EXPERTS
    assert found.count == MOST_EXPERTS
    assert len(senders.busiest(2 * MOST_EXPERTS)) == MOST_EXPERTS


def test_the_busiest_experts_come_first() -> None:
    senders = Senders()
    senders.count({("f", "ann"): 3, ("f", "bob"): 2})
    senders.count({("f", "bob"): 5})

    assert senders.busiest(1) == [BusyExpert("f", "bob", 7)]


def test_the_newest_look_alikes_come_first() -> None:
    senders = Senders()
    senders.compare([("f", "ANN", "ann"), ("f", "b ob", "bob"), ("g", "Z", "z")])

    assert senders.look_alikes(2) == [LookAlike("g", "Z", "z"), LookAlike("f", "b ob", "bob")]


def after(*effects: Effects) -> Metrics:
    """Metrics of a worker whose stages caused all this."""
    metrics = Metrics()
    for each in effects:
        metrics.folded("feed", 0, 1, 0.0, each)
    return metrics


def met(experts: Iterable[str]) -> Effects:
    effects = Effects()
    effects.new_experts += [("econ", expert, to_milliseconds(datetime.now(UTC))) for expert in experts]
    return effects


async def test_new_busy_and_look_alike_experts_are_counted_and_named() -> None:
    _, alike = folded(log_of([round_of("q", {"ann": 0.9, "ann ": 0.2}, feed="sport")]))  # both met long ago
    busy = Effects()
    busy.busy_experts.update({("econ", "robot"): 136})
    async with serving(sources(metrics=after(met(["ann", "bob"]), busy, alike))) as client:
        found = await client.get("/senders")

    assert found.json == {
        "new_experts": [{"feed": "econ", "count": 2, "experts": ["bob", "ann"]}],
        "busy_experts": [{"feed": "econ", "expert": "robot", "forecasts": 136}],
        "look_alikes": [{"feed": "sport", "expert": "ann ", "earlier": "ann"}],
    }


async def test_names_are_bounded_by_the_limit_and_the_count_is_whole() -> None:
    async with serving(sources(metrics=after(met(f"e{number}" for number in range(250))))) as client:
        usual, few, refused = [await client.get(f"/senders{more}") for more in ("", "?limit=2", "?limit=1001")]

    assert [len(usual.json["new_experts"][0]["experts"]), usual.json["new_experts"][0]["count"]] == [100, 250]
    assert few.json["new_experts"] == [{"feed": "econ", "count": 250, "experts": ["e249", "e248"]}]
    assert refused.status == 400
    assert refused.is_problem
