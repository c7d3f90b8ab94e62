from stream_peer.feeds.standing import Imported, Standing


def test_the_record_behind_an_import_gets_the_revision_that_was_to_come_next() -> None:
    imported = Imported("moved", revision=899, next_revision=901, floor=-1_000)

    assert imported.base_at(7) + 7 + 1 == 901


def test_revisions_behind_an_import_lie_above_those_that_the_feed_had_here() -> None:
    imported = Imported("moved", revision=3, next_revision=4, floor=100)

    assert imported.base_at(7) == 100


def test_a_feed_made_another_way_goes_on_under_its_revisions_and_keeps_its_own_trust() -> None:
    before, after = Standing(5, 77, "ok", base=3, lost=2), Standing(4, 70, "dependent", outcomes=6)

    after.go_on_from(before)

    assert after == Standing(5, 77, "dependent", outcomes=6, base=3, lost=2)


def test_an_acknowledgement_ends_when_trust_is_in_another_state() -> None:
    same, other = (Standing(trust="dependent", acknowledged="dependent") for _ in range(2))

    same.trusted("dependent", same.acknowledged)
    other.trusted("ok", other.acknowledged)

    assert same == Standing(trust="dependent", acknowledged="dependent")
    assert other == Standing(trust="ok")


def test_a_feed_made_another_way_keeps_the_acknowledgement_of_a_state_that_it_is_in_again() -> None:
    before = Standing(trust="dependent", acknowledged="dependent")
    same, other = Standing(trust="dependent"), Standing(trust="contradicted")

    same.go_on_from(before)
    other.go_on_from(before)

    assert (same.acknowledged, other.acknowledged) == ("dependent", None)
