import numpy as np

from stream_peer.numerics.losses import portable_log, portable_log_of


def test_powers_of_two_have_exact_multiples_of_the_logarithm_of_two() -> None:
    found = portable_log(np.array([0.25, 0.5, 1.0, 2.0, 1024.0]))

    assert found.tolist() == [-2 * 0.6931471805599453, -0.6931471805599453, 0.0, 0.6931471805599453, 6.931471805599453]


def test_it_agrees_with_numpy_beside_every_fold_of_the_mantissa() -> None:
    folds = np.sqrt(0.5) * 2.0 ** np.arange(-3.0, 4.0)
    values = np.concatenate([folds, np.nextafter(folds, 0.0), np.nextafter(folds, 9.0)])

    np.testing.assert_allclose(portable_log(values), np.log(values), rtol=0.0, atol=1e-15)


def test_small_steps_near_1_are_not_lost() -> None:
    steps = np.array([1e-15, 1e-9, 1e-3])

    np.testing.assert_allclose(portable_log(1.0 + steps), np.log1p((1.0 + steps) - 1.0), rtol=1e-15)


def test_its_bits_are_the_same_for_ever() -> None:
    """Written down once: the sums of the service on every machine are made of them."""
    found = portable_log(np.array([0.001, 0.1, 0.3, 0.7, 0.999]))

    assert [value.hex() for value in found.tolist()] == [
        "-0x1.ba18a998fffa0p+2",
        "-0x1.26bb1bbb55515p+1",
        "-0x1.34378fcbda720p+0",
        "-0x1.6d3c324e13f4fp-2",
        "-0x1.064670d979b73p-10",
    ]


def test_one_number_has_the_bits_that_it_has_among_many() -> None:
    values = np.random.default_rng(1).random(2000) ** 4

    assert [portable_log_of(value) for value in values.tolist()] == portable_log(values).tolist()
