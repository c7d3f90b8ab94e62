"""The table that ends a run of faults: what each run induced, and what was found afterwards."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.integration.support.counting import Counting

_INDUCED, _FOUND = "induced", "found"


@pytest.fixture(autouse=True)
def _induced(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> None:
    marker = request.node.get_closest_marker("induces")
    record_property(_INDUCED, marker.args[0] if marker else "what its name says")


@pytest.fixture
def found(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Say what was found, for the table."""
    return lambda text: record_property(_FOUND, text)


@pytest.fixture
def assert_exact(found: Callable[[str], None]) -> Callable[[Counting], None]:
    """Assert that a counting deployment has lost, doubled and changed nothing."""

    def check(run: Counting) -> None:
        verdicts = run.verdicts()
        assert all(verdict.exact for verdict in verdicts), verdicts
        inputs, repeated = sum(v.inputs for v in verdicts), sum(v.repeated for v in verdicts)
        found(f"{inputs} inputs, none lost, none doubled, none different; {repeated} repeats, byte-equal")

    return check


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the table."""
    rows = [("run", "induced", "found"), *sorted(_rows(terminalreporter.stats))]
    if len(rows) == 1:
        return
    terminalreporter.section("faults")
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        terminalreporter.write_line(line.rstrip())


def _rows(reports: dict[str, list[Any]]) -> Iterator[tuple[str, str, str]]:
    for outcome in ("passed", "failed", "error"):
        for report in reports.get(outcome, ()):
            told = dict(report.user_properties)
            if _INDUCED in told and (report.when == "call" or outcome == "error"):
                name = report.nodeid.rpartition("::test_")[2].replace("_", " ")
                what = told.get(_FOUND, "as promised") if outcome == "passed" else outcome.upper()
                yield name, told[_INDUCED], what
