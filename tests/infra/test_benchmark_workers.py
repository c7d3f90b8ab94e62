"""A line for each number of workers: their CPU is added up, wall time is that of all."""

from benchmarks.measuring import Cost
from benchmarks.workers import Run, table


def test_two_workers_are_compared_by_the_cpu_of_both() -> None:
    one = Run(1_000, [Cost(4.0, 5.0, 100.0)], Cost(1.0, 5.0, 300.0))
    two = Run(1_000, [Cost(2.0, 2.5, 100.0), Cost(3.0, 2.5, 100.0)], Cost(1.0, 2.5, 300.0))

    assert list(table([one, two]))[2:] == [
        "| 1 | 250 | 200 | 4.0 | 5.0 | 0.20 |",
        "| 2 | 200 | 400 | 2.0, 3.0 | 2.5 | 0.40 |",
    ]
