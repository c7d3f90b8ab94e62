from stream_peer.log.draws import draw, feed_seed, fingerprint


def test_draws_are_uniform() -> None:
    seed = feed_seed(b"secret", "f")

    draws = [draw(seed, "f", f"q{number}", 0, "tie") for number in range(2000)]

    assert all(0.0 <= value < 1.0 for value in draws)
    tenths = [sum(k / 10 <= value < (k + 1) / 10 for value in draws) for k in range(10)]
    assert all(140 < count < 260 for count in tenths)


def test_every_part_of_a_draw_matters() -> None:
    seed = feed_seed(b"secret", "f")
    draws = {
        draw(seed, "f", "q1", 0, "tie"),
        draw(feed_seed(b"other", "f"), "f", "q1", 0, "tie"),
        draw(seed, "g", "q1", 0, "tie"),
        draw(seed, "f", "q2", 0, "tie"),
        draw(seed, "f", "q1", 1, "tie"),
        draw(seed, "f", "q1", 0, "select"),
    }

    assert len(draws) == 6


def test_a_fingerprint_tells_secrets_apart_and_is_short() -> None:
    found = {fingerprint(secret) for secret in (b"", b"secret", b"Secret", b"secret\n")}

    assert len(found) == 4
    assert {len(each) for each in found} == {8}


def test_where_one_part_ends_and_the_next_begins_matters() -> None:
    assert draw(b"s", "ab", "c", 0, "tie") != draw(b"s", "a", "bc", 0, "tie")
    assert feed_seed(b"ab", "c") != feed_seed(b"a", "bc")
    assert feed_seed(b"s", "f", "1") != feed_seed(b"s", "f", "")
