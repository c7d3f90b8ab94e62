"""The report's pictures: curves, each drawn for wide and for narrow windows, and the map of pairs of experts."""

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stream_peer.events.outputs import Weights
from stream_peer.numerics.losses import SQUARED, ProperLoss
from stream_peer.serve.pages.parts import BAND, INK, MUTED, SERIES, SERIES_COLOURS, TRUTH, quiet
from stream_peer.tools.replay.history import FeedHistory, by_mix
from stream_peer.tools.report.track_record import TrackRecord, measured_regret

if TYPE_CHECKING:
    from matplotlib.axes import Axes


NEWS = "event order (ticks are dates)"
_TICKS = 5
_APART = 0.8
"""Share of the usual distance of two dates below which the names of the two would touch on a phone."""
_FEW = 12
"""So many experts beside the leaders are drawn one by one; of more, where most of them are."""
_MOST = (0.05, 0.95)
_FORMATS = ((timedelta(days=5 * 365), "%Y"), (timedelta(days=90), "%b %Y"), (timedelta(days=1), "%d %b"))
_MOSTLY = 0.6


class Curve(NamedTuple):
    """One line: its points, colour, width and dashes."""

    x: Sequence[float]
    y: Sequence[float]
    colour: str
    width: float = 2.0
    dashes: str = "-"


class Plot(NamedTuple):
    """What to draw; ``band`` is (x, low, high).

    ``y_label`` has the unit, ``alt`` says the same in words. ``ticks`` are places on the x axis and what stands there,
    ``rug`` stretches of it to mark, ``top`` where the y axis ends if not at the largest value.
    """

    curves: Sequence[Curve]
    x_label: str
    y_label: str = ""
    band: tuple[Sequence[float], Sequence[float], Sequence[float]] | None = None
    from_zero: bool = True
    percent: bool = False
    alt: str = ""
    ticks: Sequence[tuple[float, str]] = ()
    rug: Sequence[tuple[float, float]] = ()
    top: float | None = None


def leaders(weights: Weights) -> list[str]:
    """The experts with the largest mixing weights, as many as there are colours."""
    return [expert.id for expert in by_mix(weights)[:SERIES]]


def weights_plot(feed: FeedHistory) -> Plot:
    """Mixing weights of all experts as they moved: the leaders one by one, of the others where most of them are."""
    newest = feed.weights
    named = leaders(newest) if newest else []
    paths = _paths(feed)
    x = feed.news
    others = [path for expert, path in paths.items() if expert not in named]
    few = [Curve(x, path, MUTED, 0.8) for path in others] if len(others) <= _FEW else []
    loud = [Curve(x, paths[expert], SERIES_COLOURS[number]) for number, expert in enumerate(named)]
    plot = Plot([*few, *reversed(loud)], NEWS, "share of the mix", None if few or not others else _most(x, others))
    ends = ", ".join(f"{expert} {paths[expert][-1]:.1%}" for expert in named)
    return _over_news(feed, plot)._replace(percent=True, alt=f"Mixing weights over time. At the end: {ends}.")


def loss_plot(record: TrackRecord | None, best: str | None) -> Plot:
    """Mean loss so far of the mix, plain and stretched, of mean, median and the best expert."""
    if record is None:
        return Plot((), "questions resolved")
    x = list(range(1, len(record.outcomes) + 1))
    names = ("mix", "stretched", "mean", "median")
    means = {name: _running_mean(record.losses(name).tolist()) for name in names}
    curves = [
        Curve(*_from_tenth(x, means[name]), colour=SERIES_COLOURS[number], width=2.4 if number == 0 else 1.6)
        for number, name in enumerate(names)
    ]
    if best is not None:
        places, losses = record.expert_losses(best)
        running = _from_tenth([place + 1 for place in places.tolist()], _running_mean(losses.tolist()))
        curves.append(Curve(*running, colour=TRUTH, width=1.6, dashes="--"))
    ends = ", ".join(f"{name} {means[name][-1]:.4f}" for name in names)
    alt = f"Mean Brier score so far over {len(x):,} resolved questions. At the end: {ends}."
    return Plot(curves, "questions resolved, in order of closing", "mean Brier score so far", from_zero=False, alt=alt)


def error_rate_plot(feed: FeedHistory) -> Plot:
    """Estimated error rate with its interval, against what outcomes showed."""
    x = feed.news
    rates = [moment.error_rate for moment in feed.moments]
    estimate = Curve(x, [(rate.zero + rate.one) / 2 for rate in rates], SERIES_COLOURS[0], 2.4)
    known = [(q, rate.measured) for q, rate in zip(x, rates, strict=True) if rate.measured is not None]
    truth = Curve([q for q, _ in known], [share for _, share in known], TRUTH, 1.6, "--")
    band = (x, [rate.low for rate in rates], [rate.high for rate in rates])
    alt = f"Estimated share of wrong reference answers; at the end {estimate.y[-1]:.1%}" if rates else ""
    alt += f", measured on outcomes {truth.y[-1]:.1%}." if known else "."
    plot = Plot([estimate, truth], NEWS, "wrong reference answers", band, percent=True, alt=alt)
    return _over_news(feed, plot)._replace(top=None)


def certificate_plot(feed: FeedHistory, loss: ProperLoss = SQUARED) -> Plot:
    """The certified regret a question, against the regret that outcomes showed."""
    known = [
        (x, share)
        for x, m in zip(feed.news, feed.moments, strict=True)
        if m.certificate is not None and (share := m.certificate.a_question(m.questions)) is not None
    ]
    certified = Curve([x for x, _ in known], [share for _, share in known], SERIES_COLOURS[0], 2.4)
    measured = Curve(*_measured(feed, loss), TRUTH, 1.6, "--")
    alt = f"Regret a question. Certified at the end: {certified.y[-1]:.3f}" if known else "Regret a question"
    alt += f"; measured on outcomes: {measured.y[-1]:.3f}." if measured.y else "."
    plot = Plot([certified, measured], NEWS, "regret, loss a question", alt=alt)
    return _over_news(feed, plot)


def _measured(feed: FeedHistory, loss: ProperLoss) -> tuple[list[float], list[float]]:
    """Measured regret a resolved question, at each moment, once a few outcomes are known."""
    found = measured_regret(feed, loss)
    places = np.searchsorted(found.revisions, [moment.revision for moment in feed.moments], side="right")
    fewest = min(10, len(found.questions))
    known = [(x, place - 1) for x, place in zip(feed.news, places.tolist(), strict=True) if place >= max(1, fewest)]
    return [x for x, _ in known], [found.regret[place] / found.questions[place] for _, place in known]


def _paths(feed: FeedHistory) -> dict[str, list[float]]:
    """Every expert's mixing weight at each moment; NaN, which draws nothing, before its first."""
    paths: dict[str, list[float]] = {}
    for number, moment in enumerate(feed.moments):
        for expert in moment.experts:
            paths.setdefault(expert.id, [math.nan] * number).append(expert.mix)
        for path in paths.values():
            path.extend([0.0] * (number + 1 - len(path)))
    return paths


def _most(x: Sequence[float], paths: Sequence[Sequence[float]]) -> tuple[Sequence[float], list[float], list[float]]:
    """Between which weights nine of ten of the experts are that have one."""
    columns = [column[column > 0.0] for column in np.array(paths).T]
    ends = [np.quantile(column, _MOST).tolist() if column.size else [0.0, 0.0] for column in columns]
    return x, [low for low, _ in ends], [high for _, high in ends]


def _over_news(feed: FeedHistory, plot: Plot) -> Plot:
    """The plot with dates below it, a mark where mostly outcomes came, and without the peak of its first tenth."""
    return plot._replace(ticks=_dates(feed), rug=_outcomes(feed), top=_settled_top(plot))


def _dates(feed: FeedHistory) -> list[tuple[float, str]]:
    """A few moments, about evenly spaced, and their dates; of equal dates the first, and none beside another."""
    if not feed.moments:
        return []
    times = [datetime.fromisoformat(moment.at) for moment in feed.moments]
    span = times[-1] - times[0]
    form = next((form for least, form in _FORMATS if span >= least), "%H:%M")
    wanted = np.linspace(feed.news[0], feed.news[-1], _TICKS)
    places = np.minimum(np.searchsorted(feed.news, wanted), len(times) - 1).tolist()
    found: dict[str, float] = {}
    for place in places:
        if all(abs(feed.news[place] - x) >= _APART * (wanted[1] - wanted[0]) for x in found.values()):
            found.setdefault(times[place].strftime(form), feed.news[place])
    return [(x, label) for label, x in found.items()]


def _outcomes(feed: FeedHistory) -> list[tuple[float, float]]:
    """Stretches in which mostly outcomes came, joined; none if that is next to everywhere."""
    found: list[tuple[float, float]] = []
    for (begin, before), (end, after) in pairwise(zip(feed.news, feed.moments, strict=True)):
        if after.resolved - before.resolved > _MOSTLY * (end - begin):
            joins = bool(found) and found[-1][1] == begin
            found[-1:] = [(found[-1][0], end)] if joins else [*found[-1:], (begin, end)]
    return found


def _settled_top(plot: Plot) -> float | None:
    """Where the y axis should end if the first tenth, when little was known, is far above all that follows."""
    curves = [*plot.curves, *([Curve(plot.band[0], plot.band[2], "")] if plot.band else [])]
    curves = [curve for curve in curves if len(curve.x)]
    if not curves:
        return None
    begin = min(curve.x[0] for curve in curves)
    settled = begin + (max(curve.x[-1] for curve in curves) - begin) / 10
    points = [(x, y) for curve in curves for x, y in zip(curve.x, curve.y, strict=True) if not math.isnan(y)]
    late = max((y for x, y in points if x >= settled), default=0.0)
    return 1.1 * late if 0.0 < 2.0 * late < max((y for _, y in points), default=0.0) else None


def paint_plot(axes: "Axes", plot: Plot) -> None:
    """Draw the plot on matplotlib axes; for `pages.svg.drawn`."""
    _draw_curves(axes, plot)
    _dress(axes, plot)


def _draw_curves(axes: "Axes", plot: Plot) -> None:
    if plot.band:
        axes.fill_between(*plot.band, color=BAND, linewidth=0)
    for curve in plot.curves:
        axes.plot(curve.x, curve.y, curve.dashes, color=curve.colour, linewidth=curve.width, solid_capstyle="round")
    for begin, end in plot.rug:
        axes.axvspan(begin, end, -0.03, -0.005, color=MUTED, linewidth=0, clip_on=False)


def _dress(axes: "Axes", plot: Plot) -> None:
    """Few lines, quiet labels, numbers where they are needed."""
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    quiet(axes)
    label_axes(axes, plot.x_label, plot.y_label)
    axes.margins(x=0.01)
    axes.xaxis.set_major_locator(MaxNLocator(_TICKS, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    if plot.ticks:
        axes.set_xticks([x for x, _ in plot.ticks], [label for _, label in plot.ticks])
    if plot.percent:
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    if plot.from_zero:
        axes.set_ylim(bottom=min(0.0, *(y for curve in plot.curves for y in curve.y if not math.isnan(y)), 0.0))
    if plot.top is not None:
        axes.set_ylim(top=plot.top)


def label_axes(axes: "Axes", x_label: str, y_label: str) -> None:
    """Name both axes, the upright one above it, where it can be read without turning one's head."""
    axes.tick_params(axis="x", pad=10.0)
    axes.set_xlabel(x_label, color=INK)
    axes.set_title(y_label, loc="left", color=INK, fontsize=11.0, pad=8.0)


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
