from stream_peer.serve.metrics.senders import LATELY, MOST_EXPERTS, FrequentSender, Newcomers, Senders, SimilarId

NOW = 1_800_000_000_000


def test_experts_met_within_a_week_are_listed_by_feed_newest_first() -> None:
    senders = Senders()
    senders.meet(
        [("econ", "old", NOW - LATELY), ("econ", "ann", NOW - 2), ("sport", "zoe", NOW - 1), ("econ", "bob", NOW)]
    )

    assert senders.new(NOW, 9) == [Newcomers("econ", ["bob", "ann"]), Newcomers("sport", ["zoe"])]
    assert senders.new(NOW, 1) == [Newcomers("econ", ["bob", "ann"])]


def test_no_more_are_remembered_than_there_is_room_for() -> None:
    senders = Senders()
    senders.meet([("f", f"e{number}", NOW) for number in range(MOST_EXPERTS + 7)])
    senders.count({("f", f"e{number}"): 1 for number in range(MOST_EXPERTS + 7)})

    senders.compare(("f", f"E{number}", f"e{number}") for number in range(MOST_EXPERTS + 7))

    (found,) = senders.new(NOW, 9)
    assert len(senders.look_alikes(2 * MOST_EXPERTS)) == MOST_EXPERTS
    assert len(found.experts) == MOST_EXPERTS
    assert len(senders.busiest(2 * MOST_EXPERTS)) == MOST_EXPERTS


def test_the_busiest_experts_come_first() -> None:
    senders = Senders()
    senders.count({("f", "ann"): 3, ("f", "bob"): 2})
    senders.count({("f", "bob"): 5})

    assert senders.busiest(1) == [FrequentSender("f", "bob", 7)]


def test_the_newest_look_alikes_come_first() -> None:
    senders = Senders()
    senders.compare([("f", "ANN", "ann"), ("f", "b ob", "bob"), ("g", "Z", "z")])

    assert senders.look_alikes(2) == [SimilarId("g", "Z", "z"), SimilarId("f", "b ob", "bob")]
