"""The report's curves: what to draw and how. Each is drawn twice, for wide and for narrow windows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from stream_peer.adapters.history import FeedHistory, brier
from stream_peer.events.outputs import Weights
from stream_peer.pages.svg import BAND, INK, MUTED, SERIES, SERIES_COLOURS, TRUTH, quiet

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    quiet = [Curve(x, path, MUTED, 0.8) for expert, path in paths.items() if expert not in named]
    loud = [Curve(x, paths[expert], SERIES_COLOURS[number]) for number, expert in enumerate(named)]
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
        Curve(
            *_from_tenth(x, _running_mean(columns[name])),
            colour=SERIES_COLOURS[number],
            width=2.4 if number == 0 else 1.6,
        )
        for number, name in enumerate(columns)
    ]
    places = [place for place, forecast in zip(x, resolved, strict=True) if forecast.question in by_question]
    there = [by_question[f.question] for f in resolved if f.question in by_question]
    curves.append(Curve(*_from_tenth(places, _running_mean(there)), colour=SERIES_COLOURS[3], width=1.6, dashes="--"))
    return Plot(curves, "questions resolved", from_zero=False)


def error_rate_plot(feed: FeedHistory) -> Plot:
    """Estimated error rate with its interval, against what outcomes showed."""
    x = [moment.questions for moment in feed.moments]
    rates = [moment.error_rate for moment in feed.moments]
    estimate = Curve(x, [(rate.zero + rate.one) / 2 for rate in rates], SERIES_COLOURS[0], 2.4)
    known = [(q, rate.measured) for q, rate in zip(x, rates, strict=True) if rate.measured is not None]
    truth = Curve([q for q, _ in known], [share for _, share in known], TRUTH, 1.6, "--")
    band = (x, [rate.low for rate in rates], [rate.high for rate in rates])
    return Plot([estimate, truth], "questions scored", band, percent=True)


def certificate_plot(feed: FeedHistory) -> Plot:
    """The certified regret a question: how much worse than the best expert ``select`` can have been."""
    known = [(m.questions, m.certificate) for m in feed.moments if m.certificate is not None and m.questions > 0]
    x = [questions for questions, _ in known]
    y = [certificate.regret_at_most / questions for questions, certificate in known]
    return Plot([Curve(x, y, SERIES_COLOURS[0], 2.4)], "questions scored")


def paint(axes: "Axes", plot: Plot) -> None:
    """Draw the plot on matplotlib axes; for `pages.svg.drawn`."""
    _draw_curves(axes, plot)
    _dress(axes, plot)


def _draw_curves(axes: "Axes", plot: Plot) -> None:
    if plot.band:
        axes.fill_between(*plot.band, color=BAND, linewidth=0)
    for curve in plot.curves:
        axes.plot(curve.x, curve.y, curve.dashes, color=curve.colour, linewidth=curve.width, solid_capstyle="round")


def _dress(axes: "Axes", plot: Plot) -> None:
    """Few lines, quiet labels, numbers where they are needed."""
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    quiet(axes)
    axes.set_xlabel(plot.x_label, color=INK)
    axes.margins(x=0.01)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    if plot.percent:
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    if plot.from_zero:
        axes.set_ylim(bottom=0.0)


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
