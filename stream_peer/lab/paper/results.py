"""What a re-run claim gives back: numbers beside what was expected of them, and what to draw.

Plain data, so that the page, the terminal and ``results.json`` say the same.
"""

import math
from collections.abc import Sequence
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from stream_peer.numerics.arguments import FloatArray

STANDARD_ERRORS = 4.0
"""Half-width of a statistical band. Some fifty bands are checked: at two a sound run would miss some by chance."""

STATISTICAL = "four standard errors"

DELTA = 0.05
"""Every bound holds with probability .95, if it holds."""


class Size(Enum):
    """How much to simulate."""

    QUICK = "quick"
    FULL = "full"


class ClaimCheck(NamedTuple):
    """One measured number with the band in which it must lie.

    Attributes
    ----------
    what : str
        What was measured, with its unit.
    expected : str
        The figure that theory or an earlier measurement gives, as a reader would write it.
    measured : float
        The number.
    low, high : float
        The band, ends included. One of them may be infinite.
    basis : str
        Where the band comes from.
    """

    what: str
    expected: str
    measured: float
    low: float
    high: float
    basis: str

    @property
    def met(self) -> bool:
        """Whether the number lies in its band; NaN never does."""
        return self.low <= self.measured <= self.high


class Line(NamedTuple):
    """A curve with a name; ``error`` is one standard error either way, empty if there is none."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    error: Sequence[float] = ()
    dashed: bool = False


class Area(NamedTuple):
    """An expected band: from ``low`` to ``high`` over x."""

    name: str
    x: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


class Cells(NamedTuple):
    """A map: a share in [0, 1] for every pair of x and y, in equal steps; ``shares[row][column]``, rows along y."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    shares: Sequence[Sequence[float]]


class Figure(NamedTuple):
    """What to draw, with a caption that says in a sentence what is seen."""

    name: str
    title: str
    caption: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    areas: Sequence[Area] = ()
    cells: Cells | None = None
    log_x: bool = False
    log_y: bool = False


class Table(NamedTuple):
    """Figures in rows; the first column names them."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


class Result(NamedTuple):
    """A claim of the paper after its re-run.

    Attributes
    ----------
    number : int
        Place in the report.
    title : str
        The claim in a few words.
    claim : str
        What is claimed and how it was simulated.
    finding : str
        What came out, in one sentence.
    checks, figures, tables
        Numbers with bands, pictures, further numbers.
    """

    number: int
    title: str
    claim: str
    finding: str
    checks: Sequence[ClaimCheck]
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()

    @property
    def missed(self) -> list[ClaimCheck]:
        """Checks whose number lies outside of its band."""
        return [check for check in self.checks if not check.met]


class Mean(NamedTuple):
    """A mean over independent repetitions and its standard error."""

    value: float
    error: float


def mean_of(values: FloatArray) -> Mean:
    """Mean and standard error of repetitions.

    Examples
    --------
    >>> import numpy as np
    >>> mean_of(np.array([1.0, 2.0, 3.0])).value
    2.0
    """
    error = float(np.std(values, ddof=1)) / math.sqrt(values.size) if values.size > 1 else math.inf
    return Mean(float(np.mean(values)), error)


def near(what: str, measured: Mean, expected: float, *, error: float = 0.0, digits: int = 2) -> ClaimCheck:
    """A check against a figure, within four standard errors: of the mean, and of the figure if it was measured too."""
    width = STANDARD_ERRORS * math.hypot(measured.error, error)
    return ClaimCheck(what, f"{expected:,.{digits}f}", measured.value, expected - width, expected + width, STATISTICAL)


def between(what: str, measured: float, low: float, high: float, basis: str, expected: str = "") -> ClaimCheck:
    """A check against two given ends."""
    return ClaimCheck(what, expected or _ends(low, high), measured, low, high, basis)


def around(what: str, measured: Mean, ends: tuple[float, float], basis: str, expected: str = "") -> ClaimCheck:
    """A check against two given ends, moved apart by four standard errors of the measured number each."""
    width = STANDARD_ERRORS * measured.error
    low, high = ends[0] - width, ends[1] + width
    return ClaimCheck(what, expected or _ends(*ends), measured.value, low, high, f"{basis}; ± {STATISTICAL}")


def at_most(what: str, measured: float, high: float, basis: str, expected: str = "") -> ClaimCheck:
    """A check against an upper end."""
    return ClaimCheck(what, expected or f"≤ {shown(high)}", measured, -math.inf, high, basis)


def at_least(what: str, measured: float, low: float, basis: str, expected: str = "") -> ClaimCheck:
    """A check against a lower end."""
    return ClaimCheck(what, expected or f"≥ {shown(low)}", measured, low, math.inf, basis)


def ratio_of(upper: Mean, lower: Mean) -> Mean:
    """A mean divided by another one that is independent of it.

    Examples
    --------
    >>> ratio_of(Mean(6.0, 0.3), Mean(2.0, 0.0)).error
    0.15
    """
    ratio = upper.value / lower.value
    return Mean(ratio, abs(ratio) * math.hypot(upper.error / upper.value, lower.error / lower.value))


def none_of(what: str, count: int) -> ClaimCheck:
    """A check that something never happened."""
    return ClaimCheck(what, "0", float(count), 0.0, 0.0, "by theory")


def shown(value: float) -> str:
    """A number as a reader wants it: three digits that count.

    Examples
    --------
    >>> shown(0.12345), shown(12.345), shown(12345.6), shown(float("inf")), shown(0.0)
    ('0.123', '12.3', '12,346', '∞', '0')
    """
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if abs(value) < 1e-9:
        return "0"
    size = abs(value)
    digits = 0 if size >= 100.0 or value == round(value) else 1 if size >= 10.0 else 2 if size >= 1.0 else 3
    return f"{value:,.{digits}f}" if size >= 0.001 else f"{value:.1e}"


def band_shown(check: ClaimCheck) -> str:
    """The band of a check as text."""
    return _ends(check.low, check.high)


def _ends(low: float, high: float) -> str:
    if low == high:
        return f"exactly {shown(low)}"
    if math.isinf(low):
        return f"≤ {shown(high)}"
    return f"≥ {shown(low)}" if math.isinf(high) else f"{shown(low)} to {shown(high)}"


def as_json(results: Sequence[Result], *, size: Size, seed: int) -> dict[str, Any]:
    """The results for a machine: numbers of all checks, with infinite ends left out as null."""
    return {
        "seed": seed,
        "size": size.value,
        "met": not any(result.missed for result in results),
        "claims": [
            {
                "number": result.number,
                "title": result.title,
                "finding": result.finding,
                "met": not result.missed,
                "checks": [_check(check) for check in result.checks],
                "tables": [table._asdict() for table in result.tables],
            }
            for result in results
        ],
    }


def _check(check: ClaimCheck) -> dict[str, Any]:
    numbers = {"measured": check.measured, "low": check.low, "high": check.high}
    finite = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
    return {"what": check.what, "expected": check.expected, **finite, "basis": check.basis, "met": check.met}
