import numpy as np
import pytest

from stream_peer.feeds.columns import EXPERT, FEED
from stream_peer.feeds.sums import BINS, VOTES_SHAPE, Binned, Contribution, Sums, fixed


def random_contribution(generator: np.random.Generator, n_experts: int) -> Contribution:
    present = generator.permutation(n_experts)[: generator.integers(1, n_experts + 1)].astype(np.int32)
    rows = generator.permutation(EXPERT.size)[: generator.integers(1, EXPERT.size + 1)]
    return Contribution(
        present,
        fixed(generator.normal(size=(len(rows), len(present))), 1.0),
        rows,
        list(enumerate(fixed(generator.normal(size=FEED.size), 1.0).tolist())),
        [(1, 7, fixed(generator.normal(size=VOTES_SHAPE[-1]), 1.0).tolist())],
        Binned(generator.integers(BINS * n_experts, size=5), int(generator.integers(1 << 40))),
    )


@pytest.mark.parametrize("n_experts", [9, 1500])
def test_a_question_is_added_to_the_cells_of_its_columns_and_experts(n_experts: int) -> None:
    part = random_contribution(np.random.default_rng(2), n_experts)
    sums = Sums(n_experts)

    sums.add(part)
    sums.add(part)

    expected = np.zeros((EXPERT.size, n_experts), np.int64)
    for row, column in zip(part.rows, part.columns, strict=True):
        for expert, value in zip(part.experts, column, strict=True):
            expected[row, expert] = 2 * value
    np.testing.assert_array_equal(sums.matrix, expected)


@pytest.mark.parametrize("n_experts", [9, 1500])
def test_adding_and_taking_out_in_any_order_leaves_no_trace(n_experts: int) -> None:
    generator = np.random.default_rng(1)
    parts = [random_contribution(generator, n_experts) for _ in range(200)]
    sums, alone = Sums(n_experts), Sums(n_experts)

    for part in parts:
        sums.add(part)
    for number in generator.permutation(np.arange(1, 200)):
        sums.subtract(parts[number])
    alone.add(parts[0])

    assert sums.equals(alone)


def test_room_for_more_experts_changes_nothing() -> None:
    generator = np.random.default_rng(2)
    part = random_contribution(generator, 5)
    small, large = Sums(5), Sums(5)
    for sums in (small, large):
        sums.add(part)

    large.reserve(1000)

    assert small.equals(large)
    np.testing.assert_array_equal(small.read(part.experts), large.read(part.experts))
    np.testing.assert_array_equal(small.read_histograms(part.experts), large.read_histograms(part.experts))
    for array, place in ((large.matrix, (0, 999)), (large.histograms, (999, 0))):
        array[place] = 1
        assert not small.equals(large)
        assert not large.equals(small)
        array[place] = 0
    assert small.equals(large)


def test_stored_sums_come_back_bit_for_bit() -> None:
    sums = Sums(6)
    sums.add(random_contribution(np.random.default_rng(3), 6))

    assert Sums.from_bytes(sums.to_bytes(6), 8).equals(sums)
    assert Sums(6).to_bytes(6) == b""
    assert Sums.from_bytes(b"", 6).is_zero()


def test_sums_of_version_1_are_stored_as_the_release_before_stored_them() -> None:
    of_experts, of_feed = (np.setdiff1d(np.arange(layout.size), layout.former) for layout in (EXPERT, FEED))
    former, sums = Sums(6), Sums(6)
    former.add(random_contribution(np.random.default_rng(3), 6))
    former.feed = [0 if at in of_feed else amount for at, amount in enumerate(former.feed)]
    former.matrix[of_experts] = 0
    sums.add(random_contribution(np.random.default_rng(3), 6))
    for at in of_feed:
        sums.feed[at] = int(at)

    assert len(sums.to_bytes(6)) - len(former.to_bytes(6)) == 8 * (len(of_feed) + 6 * len(of_experts))
    assert Sums.from_bytes(former.to_bytes(6), 8).equals(former)
    assert Sums.from_bytes(sums.to_bytes(6), 8).equals(sums)


def test_copied_sums_are_independent() -> None:
    sums = Sums(4)
    twin = sums.copy()

    twin.add(random_contribution(np.random.default_rng(4), 4))

    assert sums.is_zero()


def test_sums_of_the_certificate_alone_are_stored_as_well() -> None:
    sums = Sums(2)
    sums.matrix[EXPERT.at("most_regret"), 1] = 7

    assert Sums.from_bytes(sums.to_bytes(2), 2).equals(sums)
