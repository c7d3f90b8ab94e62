from typing import Any

from stream_peer.events.times import NEVER
from stream_peer.questions.dating import BEGINNING, Dating, Rules
from stream_peer.questions.history import MAX_ENTRIES, History
from stream_peer.settings.feed.model import FeedSettings
from tests.unit.questions.question_log import all_said, said


def rules(**settings: Any) -> Rules:
    return Rules((BEGINNING, Dating.of(FeedSettings(**settings))))


def history(*entries: tuple[str, int, float | None]) -> History:
    made = History()
    for expert_id, at, probability in entries:
        said(made, expert_id, at, probability)
    return made


def test_who_stands_is_the_last_entry_at_or_before_the_moment() -> None:
    made = history(("bob", 5, 0.5), ("ann", 3, 0.3), ("ann", 7, 0.7), ("ann", 6, 0.6))

    standing = made.standing_at([2, 3, 6, 9])

    assert [dict(zip(*one, strict=True)) for one in standing] == [
        {},
        {"ann": 0.3},
        {"ann": 0.6, "bob": 0.5},
        {"ann": 0.7, "bob": 0.5},
    ]
    assert standing[2].experts == ["ann", "bob"]


def test_of_two_entries_of_one_moment_the_later_arrival_stands() -> None:
    made = history(("ann", 3, 0.9), ("ann", 3, 0.1), ("bob", 3, 0.2), ("bob", 3, None))

    assert made.standing_at([3])[0] == (["ann"], [0.1])


def test_twenty_eight_bytes_hold_an_entry() -> None:
    made = history(*(("ann", at, 0.5) for at in range(50)))

    assert len(made.log) == 50 * 28


def test_the_quorum_stands_at_the_first_moment_with_enough_experts() -> None:
    made = history(("ann", 1, 0.5), ("bob", 2, 0.5), ("bob", 4, None), ("cyd", 6, 0.5), ("bob", 8, 0.5))

    assert made.quorum_moment(0, 100, 2) == 2
    assert made.quorum_moment(3, 100, 2) == 3
    assert made.quorum_moment(5, 100, 2) == 6
    assert made.quorum_moment(5, 100, 3) == 8
    assert made.quorum_moment(5, 7, 3) is None
    assert made.quorum_moment(5, 100, 4) is None
    assert made.quorum_moment(200, 300, 3) == 200
    assert made.quorum_moment(9, 8, 2) is None


def test_a_quorum_that_is_lost_within_the_same_moment_does_not_stand() -> None:
    made = history(("ann", 1, 0.5), ("bob", 2, 0.5), ("bob", 2, None), ("bob", 7, 0.1))

    assert made.quorum_moment(0, 100, 2) == 7


def test_trimming_drops_the_oldest_entries_that_stand_nowhere() -> None:
    made = history(("bob", 0, 0.5), *(("ann", at, 0.5) for at in range(1, MAX_ENTRIES + 4)))

    dropped = made.trim("ann", [1, 3])

    assert dropped == 3
    assert made.surplus(["ann", "bob"]) == []
    assert made.standing_at([1, 2, 3, 6, 7])[1].experts == ["ann", "bob"]
    kept = [at for at, _, who in made._by_moment() if who == made.experts["ann"]]
    assert kept == [1, 3, *range(6, MAX_ENTRIES + 4)]


def test_both_moments_of_an_entry_are_kept_and_go_with_it() -> None:
    made = History()
    made.rules = rules(backdate_limit=1)
    for at in range(5, 5 + MAX_ENTRIES + 1):
        made.add("ann", 0.5, at - 5, at, at - 1)
    made.add("bob", 0.5, 1, 4, 3)

    made.trim("ann", [])

    assert made.stated("bob") == [(1, 3)]
    assert made.stated("ann")[0] == (1, 5)
    assert made.stated("nobody") == []


def test_a_history_taken_apart_by_expert_can_be_put_together_again() -> None:
    made = history(("ann", 3, 0.3), ("bob", 5, 0.5), ("cyd", 4, None), ("ann", 3, 0.4), ("bob", 2, 0.1))
    made.is_resolved = True
    made.add("ann", 0.6, 1, 3, 3)

    whole = History()
    whole.rules = made.rules = rules(backdate_limit=1)
    whole.merge(*made.part({1}))
    whole.merge(*made.part({0, 2}))

    assert whole.standing_at([2, 3, 5]) == made.standing_at([2, 3, 5])
    assert whole.stated("ann") == made.stated("ann") == []
    assert len(whole) == len(made)


def test_adding_many_is_adding_each() -> None:
    one_by_one, together = History(), History()
    panel = {"ann": 0.3, "bob": None, "cyd": 0.9}

    surplus = [all_said(together, panel, 7) for _ in range(MAX_ENTRIES + 1)]
    for _ in range(MAX_ENTRIES + 1):
        for expert_id, probability in panel.items():
            said(one_by_one, expert_id, 7, probability)

    assert surplus == [False] * MAX_ENTRIES + [True]
    assert together.log == one_by_one.log
    assert together.first == one_by_one.first == 7


def test_an_entry_stands_before_the_moment_at_which_it_is_as_old_as_its_lifetime() -> None:
    history = History()
    said(history, "ann", 10, 0.5)
    said(history, "bob", 12, 0.25)

    standing = history.standing_at([10, 14, 15, 17], lifetime=5)

    assert [one.experts for one in standing] == [["ann"], ["ann", "bob"], ["bob"], []]


def test_a_quorum_is_of_those_whose_entries_are_not_too_old() -> None:
    history = History()
    for at, expert in ((0, "ann"), (10, "bob"), (11, "ann")):
        said(history, expert, at, 0.5)

    assert history.quorum_moment(0, 100, quorum=2, lifetime=10) == 11
    assert history.quorum_moment(0, 100, quorum=2, lifetime=11) == 10
    assert history.quorum_moment(12, 100, quorum=2, lifetime=2) is None


def test_experts_who_are_let_go_of_leave_nothing_and_the_others_stand_as_they_did() -> None:
    history = History()
    for at in range(3):
        for expert in ("zoe", "ann", "bob"):
            said(history, expert, at, at / 10)

    history.drop({"zoe"})
    said(history, "cyd", 2, 0.7)

    assert history.experts == {"ann": 0, "bob": 1, "cyd": 2}
    assert history.standing_at([2])[0] == (["ann", "bob", "cyd"], [0.2, 0.2, 0.7])
    assert (len(history), history.first, history.gone, history.id_bytes) == (7, 0, 0, 9)


def test_of_a_surplus_entries_that_are_not_used_go_first() -> None:
    history = History()
    history.rules = rules(backdate_limit=1)
    for number in range(MAX_ENTRIES):
        said(history, "ann", 100 + number, number / 100)
    history.add("ann", 0.5, 50, 200, NEVER)

    assert history.trim("ann", []) == 1
    assert history.standing_at([100])[0] == (["ann"], [0.0])
