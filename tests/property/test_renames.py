"""A rename in the middle of a log changes what an expert is called, and no number."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_peer.events.feed_log import FeedLogRecord
from stream_peer.feeds.stage import FeedStage
from tests.feed_histories import expert, folded, log_of
from tests.unit.questions.question_log import DAY, GRACE, HOUR, T0, Partition, event, forecast, question, resolution

EXPERTS = ("ann", "bob", "cyd", "dan")
QUESTIONS = ("q0", "q1", "q2")
CLOSE = T0 + 2 * DAY

saying = st.tuples(
    st.sampled_from(QUESTIONS), st.sampled_from(EXPERTS), st.sampled_from([None, 0.1, 0.4, 0.7, 0.9]), st.booleans()
)


def said(sayings: Sequence[tuple[str, str, float | None, bool]], renames: int | None, who: str) -> Partition:
    """A partition that was told all this; from a place on, the forecasts of one expert may name another id."""
    partition = Partition(round_every="1d", history=True, backdate_limit=None, horizon="99d")
    partition.send(*(question(name, feed="f", opens_at=T0, closes_at=CLOSE) for name in QUESTIONS))
    for number, (name, teller, probability, by_new_id) in enumerate(sayings):
        at, named = T0 + number * HOUR, teller
        if renames is not None and number >= renames:
            if number == renames:
                partition.control(event("expert", feed="f", expert_id=who, at=at, rename=f"zz-{who}"))
            named = f"zz-{who}" if teller == who and by_new_id else teller
        partition.send(forecast(named, probability, at, name), now=at)
    partition.pass_to(CLOSE + GRACE)
    partition.send(*(resolution(number % 2, CLOSE + DAY, name) for number, name in enumerate(QUESTIONS)))
    return partition


def shown(feed_stage: FeedStage) -> list[dict[str, Any]]:
    view = feed_stage.views().get("f")
    return [msgspec.structs.asdict(one) for one in view.weights.experts] if view else []


@settings(deadline=None)
@given(sayings=st.lists(saying, min_size=4, max_size=40), data=st.data())
def test_a_log_with_a_rename_gives_the_weights_that_it_gives_without(
    sayings: list[tuple[str, str, float | None, bool]], data: st.DataObject
) -> None:
    who = data.draw(st.sampled_from(EXPERTS))
    renames = data.draw(st.integers(0, len(sayings) - 1))
    plain, renamed = said(sayings, None, who), said(sayings, renames, who)
    log: list[FeedLogRecord] = list(plain.records)
    assert plain.told.rounds == renamed.told.rounds

    place = data.draw(st.integers(0, len(log)))
    without, _ = folded(log_of(log))
    with_it, _ = folded(log_of([*log[:place], expert(who, rename=f"zz-{who}"), *log[place:]]))

    assert with_it.feeds.feed("f").roster.experts == without.feeds.feed("f").roster.experts
    expected = [{**row, "id": f"zz-{who}" if row["id"] == who else row["id"]} for row in shown(without)]
    for row, found in zip(sorted(expected, key=lambda one: str(one["id"])), shown(with_it), strict=True):
        assert found == pytest.approx(row)
    assert with_it.agrees()
