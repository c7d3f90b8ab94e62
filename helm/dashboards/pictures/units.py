"""Numbers with their units, as the dashboards name them."""

import math

_SI = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_BINARY = ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"))
_TIMES = ((86_400 * 365.25, "years"), (86_400, "d"), (3600, "h"), (60, "min"), (1, "s"), (1e-3, "ms"))
_SCALES = {"s": _TIMES, "bytes": (*_BINARY, (1.0, "B"))}


def shown(value: float, unit: str, decimals: int | None = None) -> str:
    """A value as text, short enough for an axis."""
    if not math.isfinite(value):
        return "–"
    if unit == "percentunit":
        return f"{_digits(100 * value, decimals)} %"
    if unit.startswith("suffix:"):
        return f"{_digits(value, decimals)} {unit.removeprefix('suffix:').strip()}"
    if unit == "short":
        return _scaled(value, _SI, decimals) if abs(value) >= 1e4 else _digits(value, decimals)
    return _scaled(value, _SCALES[unit], decimals) if unit in _SCALES else _digits(value, decimals)


def scale(value: float, unit: str) -> float:
    """The size of the unit in which a value is shown: ticks are round in it."""
    scales = _SCALES.get(unit, ())
    return next((size for size, _ in scales if abs(value) >= size), scales[-1][0] if scales else 1.0)


def axis_name(unit: str, label: str) -> str:
    """What stands beside an axis whose ticks are ``tick`` texts."""
    if unit.startswith("suffix:"):
        return unit.removeprefix("suffix:").strip()
    return label or {"percentunit": "share", "s": "time", "bytes": "size"}.get(unit, "")


def tick(value: float, unit: str) -> str:
    """A value beside an axis: the unit is there unless the name of the axis has it."""
    return shown(value, "none" if unit.startswith("suffix:") else unit)


def _scaled(value: float, scales: tuple[tuple[float, str], ...], decimals: int | None) -> str:
    at_zero = next((one for one in scales if one[0] == 1), scales[-1])
    size, name = next((one for one in scales if abs(value) >= one[0]), scales[-1] if value else at_zero)
    return f"{_digits(value / size, decimals)} {name}"


def _digits(value: float, decimals: int | None) -> str:
    """Four digits at most, unless told how many after the point."""
    if decimals is not None:
        text = f"{value:.{decimals}f}"
    elif value == 0:
        return "0"
    else:
        text = f"{value:.4g}" if 1e-4 <= abs(value) < 1e5 else f"{value:.3g}"
    return text.replace("-", "−")
