"""While a feed is rebuilt, the rest of its partition goes on; what comes of it is what comes of one record at a time.

So it is with looks for alarms in pieces, which sometimes come with every second question.

Hypothesis says what the log holds, and how far live records and the rebuild are at each moment.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from unittest import mock

from hypothesis import given
from hypothesis import settings as options
from hypothesis import strategies as st

from stream_peer.events import topics
from stream_peer.events.feed_log import FeedLogRecord, HandedOver, QuestionArrived, QuestionMoved, Source, Verdict
from stream_peer.feeds import alarm_checks
from stream_peer.feeds.alarm_checks import CHECK_EVERY
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.driver import Driver, NeedsLog, Write, fold_and_publish, pump
from stream_peer.log.stage import Effects, LogRecord, Output
from tests.feed_histories import changed, expert, log_of, outcome, provisional, round_of, settings, withdrawn
from tests.hypothesis_profiles import examples

EXPERTS = ("ann", "bob", "cyd", "dan")
FEEDS = st.sampled_from(("red", "green", "blue"))
QUESTIONS = st.sampled_from(("q0", "q1", "q2"))
SOURCE = Source(topics.FORECAST_EVENTS, 0, 0, 0, 0)
VERDICTS: st.SearchStrategy[Verdict] = st.sampled_from((0, 1, "annulled", "open"))
STEPS = st.lists(st.integers(0, 3), min_size=1, max_size=6)


class Never(NamedTuple):
    records: int = 10**9
    bytes: int = 10**9
    seconds: float = 1e9


@st.composite
def ordinary(draw: st.DrawFn) -> FeedLogRecord:
    """What concerns one feed."""
    feed, question, boundary = draw(FEEDS), f"{draw(FEEDS)}-{draw(QUESTIONS)}", draw(st.integers(1, 2))
    kind = draw(st.sampled_from(("round", "round", "round", "withdrawn", "outcome", "provisional")))
    if kind == "round":
        numbers = draw(st.lists(st.integers(1, 99), min_size=3, max_size=4))
        forecasts = dict(zip(EXPERTS, [number / 100 for number in numbers], strict=False))
        return round_of(question, forecasts, feed=feed, boundary=boundary, final=draw(st.booleans()))
    if kind == "withdrawn":
        return withdrawn(question, feed=feed, boundary=boundary)
    return (outcome if kind == "outcome" else provisional)(question, draw(VERDICTS), feed=feed)


@st.composite
def change(draw: st.DrawFn) -> FeedLogRecord:
    """What may call for a rebuild, or concern several feeds."""
    feed, other, question, move = draw(FEEDS), draw(FEEDS), f"{draw(FEEDS)}-{draw(QUESTIONS)}", draw(st.integers(1, 2))
    meaning = {"loss": draw(st.sampled_from(("log", "quadratic")))}
    return draw(
        st.sampled_from(
            (
                settings({"feeds": {feed: meaning}}),
                settings({"feeds": {feed: meaning}}),
                settings({"defaults": meaning}),
                expert(draw(st.sampled_from(EXPERTS)), feed=feed, forget=True),
                expert(draw(st.sampled_from(EXPERTS)), feed=feed, team="desk"),
                changed(feed, reset=True),
                changed(feed, delete=True),
                QuestionMoved(src=SOURCE, feed=feed, question_id=question, move=move, to=other),
                QuestionArrived(src=SOURCE, feed=other, question_id=question, move=move, origin=feed),
                HandedOver(src=SOURCE, feed=other, question_id=question, move=move),
            )
        )
    )


@st.composite
def logs(draw: st.DrawFn) -> Sequence[LogRecord]:
    before = draw(st.lists(ordinary(), min_size=5, max_size=20))
    due = settings({"feeds": {draw(FEEDS): {"loss": "log"}}})
    log = log_of([*before, due, *draw(st.lists(st.one_of(*[ordinary()] * 8, change()), min_size=5, max_size=30))])
    if draw(st.booleans()):
        log[draw(st.integers(0, len(log) - 1))] = log[0]._replace(value=b"nothing that can be read")
    return [record._replace(offset=offset) for offset, record in enumerate(log)]


def feed_stage() -> FeedStage:
    return FeedStage(topic="feed-log", partition=0, secret=b"secret")


class Owner:
    """The owner of a partition, whose rebuilds and live records go on in turns."""

    def __init__(self, log: Sequence[LogRecord], steps: Sequence[int]) -> None:
        self.log, self.stage = log, feed_stage()
        self.driver = Driver(self.stage, -1, Never(), lambda: 0.0)
        self.outputs: list[Output] = []
        self.pieces = 0
        self._steps, self._turn = steps, 0

    def live(self) -> Sequence[LogRecord]:
        """Fold some records; return those that are left."""
        effects = Effects()
        self.driver.catch_up(effects, 1.0)
        left = self.log[self.driver.applied + 1 :]
        if self.driver.may_step:
            self.driver.take(left[: self._step()], effects, 1.0)
        while self.driver.go_on():
            self.pieces += 1
        self.driver.publish_due(effects)
        self.outputs += effects.outputs
        return left

    def run(self) -> None:
        while self.live() or self.driver.needs_rebuild or not self.driver.may_step:
            if self.driver.needs_rebuild:
                self._rebuild()

    def _rebuild(self) -> None:
        work = self.driver.rebuild()
        item: NeedsLog | Write | None = next(work, None)
        while item is not None:
            if isinstance(item, NeedsLog):
                for record in self.log[: item.up_to + 1]:
                    work.send((record,))
                    self.live()
                item = work.send(())
            else:
                self.outputs += item.outputs
                item = next(work, None)

    def _step(self) -> int:
        self._turn += 1
        return self._steps[self._turn % len(self._steps)]


def newest_of_feeds(outputs: Sequence[Output]) -> Mapping[tuple[str, bytes | None], Output]:
    return {(output.topic, output.key): output for output in outputs if output.topic in topics.KEYED_BY_FEED}


def of_records(outputs: Sequence[Output]) -> Mapping[Output, int]:
    """What is written whenever a record says so, not now and then."""
    return Counter(output for output in outputs if output.topic not in topics.KEYED_BY_FEED)


@given(logs(), STEPS.filter(any), st.sampled_from((CHECK_EVERY, 2)))
@options(max_examples=examples(100))
def test_what_comes_of_records_that_are_folded_during_a_rebuild_is_what_comes_of_them_one_at_a_time(
    log: Sequence[LogRecord], steps: Sequence[int], check_every: int
) -> None:
    one_at_a_time, effects = feed_stage(), Effects()
    owner = Owner(log, steps)
    with mock.patch.multiple(alarm_checks, CHECK_EVERY=check_every, AT_ONCE=0):
        for record in log:
            pump(fold_and_publish(one_at_a_time, record, effects, always=True), lambda up_to: log[: up_to + 1])

        owner.run()

    looked = [feed.path_state.checked > 0 for feed in owner.stage.feeds.by_name.values()]
    assert not any(looked) or owner.pieces > 0

    said = [output for output in effects.outputs if output.topic != topics.FEED_LOG]
    owner.stage.publish(last := Effects())
    found = owner.outputs + last.outputs
    assert set(found) <= set(said)
    assert of_records(found) == of_records(said)
    assert newest_of_feeds(found) == newest_of_feeds(said)
    owner.stage.hand_overs.written()
    assert owner.stage.snapshot() == one_at_a_time.snapshot()
