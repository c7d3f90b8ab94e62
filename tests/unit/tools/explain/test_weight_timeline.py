"""Timelines of weights between two ends of a feed's log."""

import math
from collections.abc import Sequence

import pytest

from stream_peer.events.feed_log import FeedLogRecord
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.stage import Effects, LogRecord
from stream_peer.serve.explanation import Bound
from stream_peer.tools.explain.causes import Cause
from stream_peer.tools.explain.weight_timeline import WeightProbe, WeightTimeline
from tests.feed_histories import START, carry_out_rebuilds, changed, expert, log_of, outcome, round_of, stage
from tests.feed_variants import crowd
from tests.former_release import former_import, former_lines

CROWD = crowd(30)
FULL = {"ann": 0.9, "bob": 0.8, "cleo": 0.2}


def kept(events: Sequence[FeedLogRecord], *timelines: WeightTimeline) -> FeedStage:
    """Fold events for timelines."""
    return kept_of(log_of(events), *timelines)


def kept_of(log: Sequence[LogRecord], *timelines: WeightTimeline) -> FeedStage:
    """Fold a log for timelines."""
    feed_stage, probe = stage(), WeightProbe("f", timelines)
    for number, record in enumerate(log):
        probe.before_record(record, feed_stage)
        feed_stage.step(record, Effects())
        carry_out_rebuilds(feed_stage, log[: number + 1])
        probe.after_record(Effects(), feed_stage)
    probe.finish()
    return feed_stage


def of(events: Sequence[FeedLogRecord], since: Bound | None = None, until: Bound | None = None) -> WeightTimeline:
    timeline = WeightTimeline("e3", since, until)
    kept(events, timeline)
    assert timeline.start is not None
    assert timeline.end is not None
    for side, moved in enumerate((timeline.end.mix - timeline.start.mix, timeline.end.select - timeline.start.select)):
        assert math.fsum((cause.mix, cause.select)[side] for cause in causes(timeline)) == pytest.approx(
            moved, abs=1e-9
        )
    return timeline


def causes(timeline: WeightTimeline) -> list[Cause]:
    return [cause for step in timeline.steps for cause in step.causes]


def published(events: Sequence[FeedLogRecord], upto: int) -> float:
    """The weight that a feed would publish after so many records."""
    timeline = WeightTimeline("e3")
    kept(events[: upto + 1], timeline)
    return timeline.end.mix if timeline.end else 0.0


def test_without_ends_the_whole_life_is_told_from_where_it_was_listed_first() -> None:
    events = [round_of("other", FULL), *CROWD]

    timeline = of(events)

    first = next(n for n in range(len(events)) if published(events, n))
    assert (timeline.start and timeline.start.revision, timeline.end and timeline.end.revision) == (
        first,
        len(events) - 1,
    )


@pytest.mark.parametrize(("first", "last"), [(10, 30), (0, 44), (12, 12), (20, 21)])
def test_revisions_and_moments_name_the_same_ends(first: int, last: int) -> None:
    by_revision = of(CROWD, Bound(revision=first), Bound(revision=last))
    by_moment = of(CROWD, Bound(at=START + first * 1000 + 999), Bound(at=START + last * 1000 + 1))

    assert (by_revision.start, by_revision.end) == (by_moment.start, by_moment.end)
    assert by_revision.steps == by_moment.steps
    assert by_revision.start is not None
    assert by_revision.end is not None
    assert (by_revision.start.revision, by_revision.end.revision) == (first, last)
    assert by_revision.start.mix == published(CROWD, first)
    assert by_revision.end.mix == published(CROWD, last)


def test_before_the_first_record_there_is_no_weight_and_after_the_last_nothing_moves() -> None:
    early, late = of(CROWD, Bound(at=0)), of(CROWD, Bound(at=START * 2))

    assert early.start == (-1, 0, 0.0, 0.0, False, 0)
    assert late.start == late.end
    assert not late.steps


def test_an_expert_who_never_had_a_weight_has_no_steps() -> None:
    timeline = WeightTimeline("nobody")

    kept(CROWD, timeline)

    assert (timeline.start, timeline.end, timeline.steps) == (None, None, [])


def test_what_was_said_last_stands_beside_what_the_others_think_and_the_outcome() -> None:
    events = [round_of("q", {**FULL, "e3": 0.3}), round_of("q", {**FULL, "e3": 0.4}, boundary=2), outcome("q", 0)]

    timeline = of(events)

    assert timeline.forecasts == {"q": (0.4, 1, 0)}


def test_timelines_go_on_through_exclusion_forgetting_and_the_end_of_a_feed() -> None:
    events = [
        *CROWD,
        expert("e1", forget=True),
        expert("e3", excluded=True),
        expert("e3", excluded=False),
        changed(delete=True),
        *CROWD[:9],
    ]

    timeline = of(events)

    assert timeline.end is not None
    assert timeline.end.listed
    assert {cause.kind for cause in causes(timeline)} >= {"listing", "operator"}


def test_a_feed_that_an_earlier_release_moved_goes_on_under_the_revisions_that_it_had() -> None:
    moved = former_import(former_lines(kept(CROWD), len(CROWD) - 1))
    log = [*moved, *log_of(crowd(40)[len(CROWD) :], len(moved))]
    whole, from_nothing = WeightTimeline("e3"), WeightTimeline("e3", Bound(at=0))

    feed_stage = kept_of(log, whole, from_nothing)

    assert whole.start is not None
    assert whole.end is not None
    assert whole.start.revision == len(CROWD) - 1
    assert whole.start.mix == published(CROWD, len(CROWD))
    assert whole.end.revision == feed_stage.feeds.by_name["f"].path_state.revision == len(crowd(40)) - 1
    assert from_nothing.end == whole.end
    operator, later = (
        math.fsum(cause.mix for cause in causes(from_nothing) if (cause.kind == "operator") is arrived)
        for arrived in (True, False)
    )
    assert operator == pytest.approx(whole.start.mix, abs=1e-12)
    assert later == pytest.approx(whole.end.mix - whole.start.mix, abs=1e-9)


SPANS = [
    (Bound(revision=6), Bound(at=START + 4000), True),
    (Bound(revision=99), Bound(at=START + 4000), True),
    (Bound(at=START + 6000), Bound(revision=4), True),
    (Bound(at=START + 99_000), Bound(revision=4), True),
    (Bound(at=START + 4000), Bound(revision=4), False),
    (Bound(at=START + 4500), Bound(revision=4), False),
    (Bound(revision=4), Bound(at=START + 4500), False),
    (Bound(revision=2), Bound(at=START + 4000), False),
    (Bound(revision=99), Bound(at=START + 99_000), False),
]


@pytest.mark.parametrize("stops", [True, False])
@pytest.mark.parametrize(("since", "until", "backwards"), SPANS)
def test_a_revision_and_a_moment_can_be_the_wrong_way_round(
    since: Bound, until: Bound, backwards: bool, stops: bool
) -> None:
    timeline = WeightTimeline("e1", since, until)
    others = [] if stops else [WeightTimeline("e2")]  # whose span goes on, so that the log is read to its end
    feed_stage, probe = stage(), WeightProbe("f", [timeline, *others])
    for record in log_of([round_of(f"q{number}", {"e1": 0.7, "e2": 0.4, "e3": 0.6}) for number in range(9)]):
        if probe.is_over(record):
            break
        probe.before_record(record, feed_stage)
        feed_stage.step(record, Effects())
        probe.after_record(Effects(), feed_stage)
    probe.finish()

    assert timeline.is_backwards is backwards
