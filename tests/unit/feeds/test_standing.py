import msgspec

from stream_peer.feeds.feed import Imported, PathState


def test_a_feed_made_another_way_goes_on_under_its_revisions_and_keeps_its_own_trust() -> None:
    before, after = PathState(5, 77, "ok", base=3, lost=2), PathState(4, 70, "dependent", outcomes=6)

    after.go_on_from(before)

    assert after == PathState(5, 77, "dependent", outcomes=6, base=3, lost=2)


def test_an_acknowledgement_ends_when_trust_is_in_another_state() -> None:
    same, other = (PathState(trust="dependent", acknowledged="dependent") for _ in range(2))

    same.trusted("dependent", same.acknowledged)
    other.trusted("ok", other.acknowledged)

    assert same == PathState(trust="dependent", acknowledged="dependent")
    assert other == PathState(trust="ok")


def test_a_feed_made_another_way_keeps_the_acknowledgement_of_a_state_that_it_is_in_again() -> None:
    before = PathState(trust="dependent", acknowledged="dependent")
    same, other = PathState(trust="dependent"), PathState(trust="contradicted")

    same.go_on_from(before)
    other.go_on_from(before)

    assert (same.acknowledged, other.acknowledged) == ("dependent", None)


def test_a_standing_that_an_earlier_release_stored_of_an_imported_feed_is_read() -> None:
    stored = list(msgspec.msgpack.decode(msgspec.msgpack.encode(PathState(revision=7, imported=Imported("moved")))))
    place = PathState.__struct_fields__.index("imported")
    stored[place] = ["moved", 3, 4, -1_000, 77]  # with revisions and a clock, which this release keeps no more

    found = msgspec.msgpack.decode(msgspec.msgpack.encode(stored), type=PathState)

    assert (found.revision, found.imported) == (7, Imported("moved"))
