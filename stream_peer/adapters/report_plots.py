"""The report's curves as SVG: drawn by matplotlib, coloured by the page's own style sheet, light or dark.

Every curve is drawn twice, for wide and for narrow windows: text in a picture that is scaled down cannot be read.
Colours are placeholders that become CSS variables, and text stays text.
"""

import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from stream_peer.adapters.history import FeedHistory, brier
from stream_peer.errors import MissingExtraError
from stream_peer.events.outputs import Weights

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SERIES = 7
"""How many experts have a colour of their own; the others share a quiet grey."""

_INK, _MUTED, _GRID, _TRUTH, _BAND = "#000001", "#000002", "#000003", "#000004", "#000005"
_COLOURS = {_INK: "--ink", _MUTED: "--muted", _GRID: "--grid", _TRUTH: "--truth", _BAND: "--band"}
_COLOURS |= {f"#0000{number + 16:02x}": f"--series-{number + 1}" for number in range(SERIES)}
_SERIES = [colour for colour, name in _COLOURS.items() if name.startswith("--series")]

_PLACEHOLDER = re.compile(r"#0000[0-9a-f]{2}\b")
_OWN_ID = re.compile(r' id="[A-Za-z0-9.]*_\d+"')
_HEAD = re.compile(r"<svg[^>]*viewBox=\"([^\"]*)\"[^>]*>")
_METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)
_PATH = re.compile(r' d="[^"]*"')
_DIGITS = re.compile(r"(\d+\.\d)\d+")


class Size(NamedTuple):
    """Width and height of a picture in CSS pixels."""

    width: int
    height: int


FULL, HALF, NARROW = Size(1080, 330), Size(520, 290), Size(350, 260)


class Curve(NamedTuple):
    """One line: its points, colour, width and dashes."""

    x: Sequence[float]
    y: Sequence[float]
    colour: str
    width: float = 2.0
    dashes: str = "-"


class Plot(NamedTuple):
    """What to draw; ``band`` is (x, low, high)."""

    curves: Sequence[Curve]
    x_label: str
    band: tuple[Sequence[float], Sequence[float], Sequence[float]] | None = None
    from_zero: bool = True
    percent: bool = False


def leaders(weights: Weights) -> list[str]:
    """The experts with the largest mixing weights, as many as there are colours."""
    ranked = sorted(weights.experts, key=lambda expert: (-expert.mix, expert.id))
    return [expert.id for expert in ranked[:SERIES]]


def weights_plot(feed: FeedHistory) -> Plot:
    """Mixing weights of all experts over the questions scored."""
    newest = feed.weights
    named = leaders(newest) if newest else []
    paths: dict[str, list[float]] = {}
    for number, moment in enumerate(feed.moments):
        for expert in moment.experts:
            paths.setdefault(expert.id, [0.0] * number).append(expert.mix)
        for path in paths.values():
            path.extend([0.0] * (number + 1 - len(path)))
    x = [moment.questions for moment in feed.moments]
    quiet = [Curve(x, path, _MUTED, 0.8) for expert, path in paths.items() if expert not in named]
    loud = [Curve(x, paths[expert], _SERIES[number]) for number, expert in enumerate(named)]
    return Plot([*quiet, *reversed(loud)], "questions scored", percent=True)


def loss_plot(feed: FeedHistory) -> Plot:
    """Mean loss so far of mix, mean, median and the best expert, over the questions resolved."""
    resolved = feed.resolved()
    scores = feed.scores()
    best = scores.best if scores else None
    by_question = feed.expert_losses(best.expert_id) if best else {}
    columns = {
        "mix": [brier(f.mix, f.outcome) for f in resolved],
        "mean": [brier(f.mean, f.outcome) for f in resolved],
        "median": [brier(f.median, f.outcome) for f in resolved],
    }
    x = list(range(1, len(resolved) + 1))
    curves = [
        Curve(*_from_tenth(x, _running_mean(columns[name])), colour=_SERIES[number], width=2.4 if number == 0 else 1.6)
        for number, name in enumerate(columns)
    ]
    places = [place for place, forecast in zip(x, resolved, strict=True) if forecast.question in by_question]
    there = [by_question[f.question] for f in resolved if f.question in by_question]
    curves.append(Curve(*_from_tenth(places, _running_mean(there)), colour=_SERIES[3], width=1.6, dashes="--"))
    return Plot(curves, "questions resolved", from_zero=False)


def error_rate_plot(feed: FeedHistory) -> Plot:
    """Estimated error rate with its interval, against what outcomes showed."""
    x = [moment.questions for moment in feed.moments]
    rates = [moment.error_rate for moment in feed.moments]
    estimate = Curve(x, [(rate.zero + rate.one) / 2 for rate in rates], _SERIES[0], 2.4)
    known = [(q, rate.measured) for q, rate in zip(x, rates, strict=True) if rate.measured is not None]
    truth = Curve([q for q, _ in known], [share for _, share in known], _TRUTH, 1.6, "--")
    band = (x, [rate.low for rate in rates], [rate.high for rate in rates])
    return Plot([estimate, truth], "questions scored", band, percent=True)


def certificate_plot(feed: FeedHistory) -> Plot:
    """The certified regret a question: how much worse than the best expert ``select`` can have been."""
    known = [(m.questions, m.certificate) for m in feed.moments if m.certificate is not None and m.questions > 0]
    x = [questions for questions, _ in known]
    y = [certificate.regret_at_most / questions for questions, certificate in known]
    return Plot([Curve(x, y, _SERIES[0], 2.4)], "questions scored")


def draw(plot: Plot, size: Size, *, salt: str) -> str:
    """The plot as an ``<svg>`` element without references to anything outside of it.

    Parameters
    ----------
    plot : Plot
        What to draw.
    size : Size
        Its width and height in pixels.
    salt : str
        Another one for each picture on a page: names inside pictures are made with it.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        msg = "the report needs matplotlib: pip install 'stream-peer[report]'"
        raise MissingExtraError(msg) from error
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": salt, "font.size": 11.0}):
        figure = Figure(figsize=(size.width / 72, size.height / 72), layout="constrained")
        figure.patch.set_visible(False)
        axes = figure.add_subplot()
        _draw_curves(axes, plot)
        _dress(axes, plot)
        target = io.StringIO()
        figure.savefig(target, format="svg", metadata={"Date": None, "Creator": None})
    return _themed(target.getvalue())


def _draw_curves(axes: "Axes", plot: Plot) -> None:
    if plot.band:
        axes.fill_between(*plot.band, color=_BAND, linewidth=0)
    for curve in plot.curves:
        axes.plot(curve.x, curve.y, curve.dashes, color=curve.colour, linewidth=curve.width, solid_capstyle="round")


def _dress(axes: "Axes", plot: Plot) -> None:
    """Few lines, quiet labels, numbers where they are needed."""
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    axes.patch.set_visible(False)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(_GRID)
    axes.grid(axis="y", color=_GRID, linewidth=0.8)
    axes.tick_params(length=0, labelcolor=_INK, pad=6)
    axes.set_axisbelow(True)
    axes.set_xlabel(plot.x_label, color=_INK)
    axes.margins(x=0.01)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    if plot.percent:
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    if plot.from_zero:
        axes.set_ylim(bottom=0.0)


def _themed(svg: str) -> str:
    """Colours become CSS variables; what a page of several pictures has no use for is dropped."""
    svg = svg[svg.index("<svg") :]
    svg = _METADATA.sub("", svg)
    svg = _HEAD.sub(r'<svg viewBox="\1" role="img" aria-hidden="true">', svg, count=1)
    svg = _OWN_ID.sub("", svg).replace("xlink:href", "href")
    svg = _PATH.sub(lambda path: _DIGITS.sub(r"\1", path.group(0)), svg)
    return _PLACEHOLDER.sub(lambda found: f"var({_COLOURS.get(found.group(0), '--ink')})", svg)


def _running_mean(values: Sequence[float]) -> list[float]:
    total, means = 0.0, []
    for count, value in enumerate(values, start=1):
        total += value
        means.append(total / count)
    return means


def _from_tenth(x: Sequence[float], y: Sequence[float]) -> tuple[Sequence[float], Sequence[float]]:
    """Without the first few points, whose means are noise and would set the scale."""
    start = min(10, len(x) // 4)
    return x[start:], y[start:]
