from stream_peer.log.clock import Agenda, Clock


def test_the_clock_hears_what_is_credible_and_never_goes_back() -> None:
    clock = Clock(skew=10)

    heard = [clock.hear(stated, record_time=100) for stated in (50, 111, 110, 20)]

    assert heard == [True, False, True, True]
    assert clock.now == 110


def test_due_questions_come_by_moment_and_then_by_name() -> None:
    agenda = Agenda()
    for question_id, moment in [("b", 5), ("a", 5), ("c", 3), ("d", 9)]:
        agenda.put(question_id, moment)

    due = list(agenda.due(now=5))

    assert due == ["c", "a", "b"]
    assert agenda.next == 9


def test_a_new_moment_replaces_the_old_one_and_none_removes_it() -> None:
    agenda = Agenda()
    agenda.put("a", 5)
    agenda.put("b", 6)
    agenda.put("a", 8)
    agenda.put("b", None)
    agenda.put("never", None)

    assert agenda.next == 8
    assert list(agenda.due(now=7)) == []
    assert list(agenda.due(now=8)) == ["a"]


def test_a_question_put_back_while_others_are_due_waits_for_its_new_moment() -> None:
    agenda = Agenda()
    agenda.put("a", 1)
    agenda.put("b", 2)

    seen = []
    for question_id in agenda.due(now=2):
        seen.append(question_id)
        agenda.put(question_id, 3)

    assert seen == ["a", "b"]
    assert list(agenda.due(now=3)) == ["a", "b"]


def test_replaced_moments_far_ahead_do_not_pile_up() -> None:
    agenda = Agenda()
    agenda.put("a", 1)
    for moment in range(1_000_000, 1_002_000):
        agenda.put("b", moment)

    assert len(agenda._heap) < 100
    assert list(agenda.due(now=1_001_998)) == ["a"]
    assert list(agenda.due(now=1_001_999)) == ["b"]


def test_of_a_cleared_agenda_nothing_is_due_but_what_is_put_in_afterwards() -> None:
    agenda = Agenda()
    agenda.put("a", 5)
    agenda.put("b", 6)

    agenda.clear()
    agenda.put("b", 7)

    assert agenda.next == 7
    assert list(agenda.due(now=8)) == ["b"]
