from stream_peer.engine.standing import Imported, Standing


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
