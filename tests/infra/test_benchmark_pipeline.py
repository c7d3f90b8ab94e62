"""Ratios and floors of the pipeline benchmark, of figures that are given; what peers need is of one version."""

from pathlib import Path

import pytest

from benchmarks.peers import environments
from benchmarks.pipeline import FLOORS, below_floors, ratio, table
from benchmarks.runs import RUNS, Result
from tests.integration.support.kafka_jars import kafka_version


def runs(*figures: int, later_half: int = 0) -> list[Result]:
    return [Result(figure, later_half, 1, 1_000, 1.0, 1.0, 100) for figure in figures]


ROUNDS = {"ours": runs(90, 50, 60), "kafka_streams": runs(20, 30, 120, later_half=40), "aiokafka": runs(300, 290, 400)}


def test_a_ratio_is_that_of_the_medians() -> None:
    assert ratio(ROUNDS, "ours", "aiokafka") == 60 / 300


@pytest.mark.parametrize(("floor", "found"), [(0.2, 0), (0.201, 1)])
def test_what_falls_below_its_floor_is_told(floor: float, found: int) -> None:
    told = below_floors(ROUNDS, {"ours": floor})

    assert len(told) == found
    assert all("ours has 0.200" in text for text in told)


def test_every_floor_is_of_something_that_is_measured() -> None:
    assert set(FLOORS) <= set(RUNS)
    assert all(0 < floor < 1 for floor in FLOORS.values())


def test_the_table_has_the_extremes_and_says_how_many_times_ours_is() -> None:
    _, _, ours, streams, _ = table(ROUNDS)

    assert ours.startswith("| `ours` | 50, 60, 90 |  |")
    assert streams.startswith("| `kafka_streams` | 20, 30, 120 | 40 |")
    assert streams.endswith(" 2.00 |")


def test_kafka_streams_is_of_the_version_of_the_broker() -> None:
    assert kafka_version(environments.POM) == kafka_version()


def test_the_product_depends_on_no_peer(repository: Path) -> None:
    pinned = (repository / "requirements/dev.txt").read_text(encoding="utf-8")

    assert not any(f"\n{name}==" in pinned for name in ("quixstreams", "bytewax"))
    assert environments.REQUIREMENTS.is_file()
