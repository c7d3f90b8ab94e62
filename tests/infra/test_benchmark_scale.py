"""What `benchmarks.scale` measures is what its page says, and it fails where a cost is not flat."""

import pytest

from benchmarks.scale import Cost, Feeds, Found, cost, faults, recovery, tables


def found(*folds: float, seconds: float = 1.0) -> Found:
    costs = {10**power: Cost(fold, 1.0) for power, fold in enumerate(folds, 3)}
    return Found(costs, dict.fromkeys(costs, seconds), {10: Cost(2.0, 1.0)}, {"16 feeds": Feeds(500.0, 20.0)})


def test_a_new_owner_takes_up_more_questions_than_were_told_and_each_takes_forecasts() -> None:
    _, durable = recovery(1_500)

    assert durable.stage.open_questions == 1_500
    assert cost(durable.stage, 1_500, 6, forecasts=50).fold > 0


def test_forecasts_that_do_not_count_are_no_measurement() -> None:
    _, durable = recovery(2)

    with pytest.raises(RuntimeError, match="not all are forecasts of the open questions"):
        cost(durable.stage, 3, 6, forecasts=50)


def test_costs_may_differ_by_15_percent() -> None:
    assert faults(found(2.0, 2.29)) == []
    assert faults(found(2.0, 2.4, 2.1)) == ["with 10,000 open questions a forecast costs 20% more than with 1,000"]


def test_a_million_questions_are_taken_up_in_15_seconds() -> None:
    assert faults(found(2.0, 2.0, seconds=15.1))[0] == "1,000 open questions were taken up in 15.1 s"


def test_every_figure_is_in_a_table() -> None:
    assert [line for line in tables(found(2.0, 2.5)) if "---" not in line] == [
        "| open questions | a forecast, µs | its state, µs | taken up, s |",
        "| 1,000 | 2.00 | 1.00 | 1.00 |",
        "| 10,000 | 2.50 | 1.00 | 1.00 |",
        "",
        "| experts of a question | a forecast, µs | its state, µs |",
        "| 10 | 2.00 | 1.00 |",
        "",
        "| feeds | a round, µs | published of it, µs |",
        "| 16 feeds | 500 | 20 |",
    ]
