"""Accounts of weights between two ends of a feed's log."""

import math
from collections.abc import Sequence

import pytest

from stream_peer.events.feed_log import FeedLogRecord
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.stage import Effects, LogRecord
from stream_peer.serve.explanation import Bound
from stream_peer.tools.explain.weight_account import Account
from stream_peer.tools.explain.weight_follower import WeightFollower
from tests.feed_histories import START, changed, expert, log_of, outcome, refold, round_of, stage
from tests.feed_transfers import import_log, lines_of
from tests.feed_variants import crowd

CROWD = crowd(30)
FULL = {"ann": 0.9, "bob": 0.8, "cleo": 0.2}


def kept(events: Sequence[FeedLogRecord], *accounts: Account) -> FeedStage:
    """Fold events for accounts."""
    return kept_of(log_of(events), *accounts)


def kept_of(log: Sequence[LogRecord], *accounts: Account) -> FeedStage:
    """Fold a log for accounts."""
    feed_stage, follower = stage(), WeightFollower("f", accounts)
    for number, record in enumerate(log):
        follower.before(record, feed_stage)
        feed_stage.step(record, Effects())
        refold(feed_stage, log[: number + 1])
        follower.after(record, feed_stage)
    follower.finish(feed_stage)
    return feed_stage


def of(events: Sequence[FeedLogRecord], since: Bound | None = None, until: Bound | None = None) -> Account:
    account = Account("e3", since, until)
    kept(events, account)
    assert account.start is not None
    assert account.end is not None
    for side, moved in enumerate((account.end.mix - account.start.mix, account.end.select - account.start.select)):
        assert math.fsum(both[side] for both in account.terms.values()) == pytest.approx(moved, abs=1e-9)
    return account


def published(events: Sequence[FeedLogRecord], upto: int) -> float:
    """The weight that a feed would publish after so many records."""
    account = Account("e3")
    kept(events[: upto + 1], account)
    return account.end.mix if account.end else 0.0


def test_without_ends_the_whole_life_is_told_from_where_it_was_listed_first() -> None:
    events = [round_of("other", FULL), *CROWD]

    account = of(events)

    first = next(n for n in range(len(events)) if published(events, n))
    assert (account.start and account.start.revision, account.end and account.end.revision) == (first, len(events) - 1)


@pytest.mark.parametrize(("first", "last"), [(10, 30), (0, 44), (12, 12), (20, 21)])
def test_revisions_and_moments_name_the_same_ends(first: int, last: int) -> None:
    by_revision = of(CROWD, Bound(revision=first), Bound(revision=last))
    by_moment = of(CROWD, Bound(at=START + first * 1000 + 999), Bound(at=START + last * 1000 + 1))

    assert (by_revision.start, by_revision.end) == (by_moment.start, by_moment.end)
    assert by_revision.terms == by_moment.terms
    assert by_revision.start is not None
    assert by_revision.end is not None
    assert (by_revision.start.revision, by_revision.end.revision) == (first, last)
    assert by_revision.start.mix == published(CROWD, first)
    assert by_revision.end.mix == published(CROWD, last)


def test_before_the_first_record_there_is_no_weight_and_after_the_last_nothing_moves() -> None:
    early, late = of(CROWD, Bound(at=0)), of(CROWD, Bound(at=START * 2))

    assert early.start == (-1, 0, 0.0, 0.0, False, 0)
    assert late.start == late.end
    assert not late.terms


def test_who_never_had_a_weight_has_no_account() -> None:
    account = Account("nobody")

    kept(CROWD, account)

    assert (account.start, account.end, account.terms) == (None, None, {})


def test_what_was_said_last_stands_beside_what_the_others_think_and_the_outcome() -> None:
    events = [round_of("q", {**FULL, "e3": 0.3}), round_of("q", {**FULL, "e3": 0.4}, boundary=2), outcome("q", 0)]

    account = of(events)

    assert account.said == {"q": (0.4, 1, 0)}


def test_accounts_go_on_through_exclusion_forgetting_and_the_end_of_a_feed() -> None:
    events = [
        *CROWD,
        expert("e1", forget=True),
        expert("e3", excluded=True),
        expert("e3", excluded=False),
        changed(delete=True),
        *CROWD[:9],
    ]

    account = of(events)

    assert account.end is not None
    assert account.end.listed
    assert {key.cause for key in account.terms} >= {"listing", "operator"}


def test_an_imported_feed_goes_on_under_the_revisions_that_it_had() -> None:
    moved = import_log(lines_of(kept(CROWD), len(CROWD) - 1))
    log = [*moved, *log_of(crowd(40)[len(CROWD) :], len(moved))]
    whole, from_nothing = Account("e3"), Account("e3", Bound(at=0))

    feed_stage = kept_of(log, whole, from_nothing)

    assert whole.start is not None
    assert whole.end is not None
    assert whole.start.revision == len(CROWD) - 1
    assert whole.start.mix == published(CROWD, len(CROWD))
    assert whole.end.revision == feed_stage.feeds.by_name["f"].standing.revision == len(crowd(40)) - 1
    assert from_nothing.end == whole.end
    operator, later = (
        math.fsum(mix for key, (mix, _) in from_nothing.terms.items() if (key.cause == "operator") is arrived)
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
    account = Account("e1", since, until)
    others = [] if stops else [Account("e2")]  # whose span goes on, so that the log is read to its end
    feed_stage, follower = stage(), WeightFollower("f", [account, *others])
    for record in log_of([round_of(f"q{number}", {"e1": 0.7, "e2": 0.4, "e3": 0.6}) for number in range(9)]):
        if follower.is_over(record):
            break
        follower.before(record, feed_stage)
        feed_stage.step(record, Effects())
        follower.after(record, feed_stage)
    follower.finish(feed_stage)

    assert account.is_backwards is backwards
