from stream_peer.log.ids import ErasedExperts, erased_rejection


def test_an_id_is_refused_in_the_feed_that_forgot_it_only() -> None:
    forgotten = ErasedExperts(b"secret")
    forgotten.add("econ", "ann")

    assert forgotten.among("econ", ["bob", "ann"]) == ["ann"]
    assert forgotten.among("sport", ["ann"]) == []


def test_what_is_stored_holds_no_id_and_knows_it_again_with_the_secret_alone() -> None:
    forgotten = ErasedExperts(b"secret")
    forgotten.add("econ", "a-very-telling-name")
    stored = forgotten.stored()

    assert b"a-very-telling-name" not in b"".join(stored)
    assert ErasedExperts(b"secret", stored).among("econ", ["a-very-telling-name"]) == ["a-very-telling-name"]
    assert ErasedExperts(b"another", stored).among("econ", ["a-very-telling-name"]) == []


def test_feed_and_id_cannot_be_cut_otherwise() -> None:
    forgotten = ErasedExperts(b"")
    forgotten.add("econ1", "2")

    assert forgotten.among("econ", ["12"]) == []


def test_the_refusal_names_nobody() -> None:
    assert "the expert asked" in erased_rejection(1, 1).message
    assert "2 of the 50 experts" in erased_rejection(2, 50).message
