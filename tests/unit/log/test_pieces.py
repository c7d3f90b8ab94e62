from stream_peer.log.pieces import LARGEST, cut, join_chunks, removed


def test_a_value_of_any_size_comes_back() -> None:
    for size in (0, 1, LARGEST, LARGEST + 1, 3 * LARGEST + 5):
        value = bytes(number % 251 for number in range(1000)) * (size // 1000 + 1)
        rows = cut(b"e", b"f/q/with/slashes", value[:size])
        held = {key: row for key, row in rows.items() if row is not None}

        assert join_chunks(b"e", held) == {b"f/q/with/slashes": (value[:size], len(rows))}
        assert max(map(len, held.values())) <= LARGEST + 4


def test_pieces_that_are_over_are_said_to_be_gone() -> None:
    large = cut(b"e", b"f/q", b"x" * (2 * LARGEST))
    small = cut(b"e", b"f/q", b"x", before=len(large))

    assert set(small) == set(large)
    assert sum(value is None for value in small.values()) == 1
    assert removed(b"e", b"f/q", 2) == dict.fromkeys(large)


def test_kinds_do_not_mix() -> None:
    rows = {key: row or b"" for kind in (b"e", b"f") for key, row in cut(kind, b"name", kind).items()}

    assert join_chunks(b"e", rows) == {b"name": (b"e", 1)}
