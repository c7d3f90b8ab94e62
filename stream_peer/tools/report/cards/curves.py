"""What moved over time: weights, loss, error rate and certificate; and how calibrated the forecasts were."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from stream_peer.numerics.arguments import FloatArray, IntArray
from stream_peer.numerics.losses import LOSSES, SQUARED
from stream_peer.serve.pages.parts import (
    BAND,
    FULL,
    HALF,
    INK,
    MUTED,
    SERIES,
    SERIES_COLOURS,
    PictureSize,
    both_widths,
    escape,
    quiet,
)
from stream_peer.tools.report.cards.parts import (
    UNKNOWN,
    FeedPage,
    card,
    figure,
    html_legend,
    html_table,
    picture,
    short,
)
from stream_peer.tools.report.plots import (
    Plot,
    certificate_plot,
    error_rate_plot,
    label_axes,
    leaders,
    loss_plot,
    weights_plot,
)
from stream_peer.tools.report.skill import ReliabilityBin, isotonic_fit, reliability_bins
from stream_peer.tools.report.track_record import FEWEST_CALIBRATED, PUBLISHED, Score, TrackRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_Keys = list[tuple[str, str, str]]
_OUTCOMES = ("shaded: mostly resolutions", "--muted", "area")


def weights_card(page: FeedPage) -> str:
    """Mixing weights as they moved."""
    plot = weights_plot(page.feed)
    by_id = {expert.id: expert for expert in page.weights.experts}
    keys = [
        (f"{short(name)} {by_id[name].mix:.1%}", f"--series-{place + 1}", "")
        for place, name in enumerate(leaders(page.weights))
    ]
    others = len(page.weights.experts) - SERIES
    if others > 0:
        many = (f"5th-95th percentile of the other {others}", "--band", "area")
        keys.append(many if plot.band else (f"{others} others", "--muted", ""))
    text = "Each line is an expert's share in the mixed forecast. It moves before any outcome is known."
    return _plot_card("Weights over time", text, keys, plot, (FULL, f"{page.number}-weights"), wide=True)


def loss_card(page: FeedPage) -> str:
    """Mean loss so far."""
    keys = [
        ("mix", "--series-1", ""),
        ("mix, stretched", "--series-2", ""),
        ("mean", "--series-3", ""),
        ("median", "--series-4", ""),
    ]
    if page.best is not None:
        keys.append((f"{short(page.best)}, best in hindsight", "--truth", "dashed"))
    text = "Mean Brier score so far, over the questions whose outcome was revealed. Lower is better."
    return _plot_card("Loss over time", text, keys, loss_plot(page.record, page.best), (HALF, f"{page.number}-loss"))


def error_rate_card(page: FeedPage) -> str:
    """The estimated error rate and the measured one."""
    keys = [
        ("estimate", "--series-1", ""),
        ("its interval", "--band", "area"),
        ("measured on outcomes", "--truth", "dashed"),
    ]
    text = "Share of wrong reference answers, estimated without outcomes. At 50% the weights would be noise."
    plot = error_rate_plot(page.feed)
    return _plot_card("Error rate of reference answers", text, keys, plot, (HALF, f"{page.number}-rate"))


def certificate_card(page: FeedPage) -> str:
    """The certified regret and the measured one."""
    certificate = page.weights.certificate
    condition = certificate.conditional_on if certificate else "independent errors"
    text = (
        f"Upper bound on the regret of select a question against the best single expert, given {condition}. "
        "Above 1, the largest loss, the bound says nothing and is not drawn. "
        "Measured: the loss of the experts drawn by those weights, one a question, above that of the best expert, on "
        "the resolved questions that this one answered."
    )
    if certificate is None:
        text += " No bound holds at the moment."
    keys = [("certified", "--series-1", ""), ("measured on outcomes", "--truth", "dashed")]
    plot = certificate_plot(page.feed, LOSSES[page.settings.loss] if page.settings else SQUARED)
    return _plot_card("Certificate", text, keys, plot, (HALF, f"{page.number}-certificate"))


def _plot_card(
    title: str, text: str, keys: _Keys, plot: Plot, size: tuple[PictureSize, str], *, wide: bool = False
) -> str:
    shown = [*keys, *([_OUTCOMES] if plot.rug else [])]
    cut = " The first tenth goes beyond the top." if plot.top is not None else ""
    return card(title, text + cut, html_legend(shown) + picture(plot, *size), wide=wide)


LEVEL = 0.95
FEWEST_DRAWN = FEWEST_CALIBRATED
"""Resolved questions below which no diagram is drawn: its bands would be as high as the page."""
EXPERTS = 4

_WIDE, _NARROW = PictureSize(500, 360), PictureSize(350, 320)
_LARGEST_DOT, _SMALLEST_DOT = 90.0, 14.0
_NAMES = {"stretched": "mix, stretched", "logit_mean": "logit mean (geometric mean of odds)"}
_HEADS = (
    "forecast",
    "Brier score",
    "log score",
    "miscalibration",
    "discrimination",
    "uncertainty",
    "skill against the mean",
    "questions",
)


def calibration_card(page: FeedPage) -> str:
    """Diagrams of mix and mean, the parts of all Brier scores, and diagrams of the leading experts."""
    record = page.record
    if record is None:
        return ""
    text = (
        "Brier score = miscalibration - discrimination + uncertainty. Miscalibration is the loss that the best"
        " recalibration would remove; discrimination is the gain over the base rate; uncertainty is the loss of the"
        " base rate itself."
    )
    rows = _rows(record, _named(page, record))
    listed = html_table("Parts of the Brier scores", _HEADS, rows)
    if len(record.outcomes) < FEWEST_DRAWN:
        text += f" Diagrams are drawn from {FEWEST_DRAWN} resolved questions on."
        return card("Calibration", text, listed, wide=True)
    keys = [
        ("observed share, by tenths of the forecast", "--series-1", ""),
        (f"{LEVEL:.0%} band of calibrated forecasts", "--band", "area"),
        ("isotonic fit", "--series-2", ""),
    ]
    published = "".join(
        _diagram(record.published[name], record.outcomes, f"the {name}", f"{page.number}-reliability-{name}")
        for name in ("mix", "mean")
    )
    body = f'{html_legend(keys)}<div class="two">{published}</div>{listed}{_of_experts(page, record)}'
    return card("Calibration", text, body, wide=True)


def _named(page: FeedPage, record: TrackRecord) -> list[str]:
    """The experts with a full calibration: the best one and the leaders, with enough questions."""
    names = dict.fromkeys([*([page.best] if page.best else []), *leaders(page.weights)])
    return [name for name in names if name in record.said and len(record.said[name][0]) >= FEWEST_CALIBRATED][:EXPERTS]


def _of_experts(page: FeedPage, record: TrackRecord) -> str:
    """Diagrams of single experts, folded away."""
    names = _named(page, record)
    if not names:
        return ""
    diagrams = ""
    for number, name in enumerate(names):
        places, forecasts = record.said[name]
        salt = f"{page.number}-reliability-expert-{number}"
        diagrams += _diagram(forecasts, record.outcomes[places], short(name, 24), salt)
    return f'<details><summary>Diagrams of the leading experts</summary><div class="two">{diagrams}</div></details>'


def _rows(record: TrackRecord, experts: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for name in PUBLISHED:
        yield _row(escape(_NAMES.get(name, name)), record.score(name))
    for name in experts:
        score = record.expert_score(name)
        if score is not None:
            yield _row(f"expert {escape(short(name, 24))}", score)


def _row(name: str, score: Score) -> tuple[str, ...]:
    parts = score.murphy[1:] if score.murphy else (None, None, None)
    skill, deviation = score.skill.skill, score.skill.deviation
    gained = UNKNOWN if skill is None else f"{round(skill, 3) + 0.0:+.1%}"
    if deviation:
        gained += f" ± {deviation:.1%}"
    shown = (score.skill.loss, score.log_score, *parts)
    return name, *(figure(value, 4) for value in shown), gained, f"{score.skill.questions:,}"


def _diagram(forecasts: FloatArray, outcomes: IntArray, whose: str, salt: str) -> str:
    bins = reliability_bins(forecasts, outcomes, level=LEVEL)
    fit = _steps(forecasts.tolist(), isotonic_fit(forecasts, outcomes).tolist())
    svg = both_widths(
        lambda axes: _paint(axes, bins, fit, whose), _WIDE, salt=salt, label=_in_words(whose, bins), narrow_size=_NARROW
    )
    return f"<div>{svg}</div>"


def _in_words(whose: str, bins: Sequence[ReliabilityBin]) -> str:
    outside = sum(not each.low <= each.happened <= each.high for each in bins)
    said = "; ".join(f"{each.forecast:.0%}: {each.happened:.0%} of {each.questions}" for each in bins)
    told = f"{outside} of {len(bins)} points outside of their bands. Forecast: happened. {said}."
    return f"Reliability of {whose}: {told}"


def _steps(forecasts: Sequence[float], fitted: Sequence[float]) -> tuple[list[float], list[float]]:
    """The isotonic fit as a line: only the ends of its level pieces."""
    points = sorted(set(zip(forecasts, fitted, strict=True)))
    ends = [
        point
        for place, point in enumerate(points)
        if place in (0, len(points) - 1) or points[place - 1][1] != point[1] or points[place + 1][1] != point[1]
    ]
    return [x for x, _ in ends], [y for _, y in ends]


def _paint(
    axes: "Axes", bins: Sequence[ReliabilityBin], fit: tuple[Sequence[float], Sequence[float]], whose: str
) -> None:
    from matplotlib.ticker import PercentFormatter

    quiet(axes)
    label_axes(axes, f"forecast of {whose}", "observed share")
    for each in bins:
        axes.fill_between([each.forecast - 0.02, each.forecast + 0.02], each.low, each.high, color=BAND, linewidth=0)
    axes.plot([0.0, 1.0], [0.0, 1.0], color=MUTED, linewidth=1.2)
    axes.plot(*fit, color=SERIES_COLOURS[1], linewidth=1.4)
    sizes = np.array([each.questions for each in bins], dtype=np.float64)
    sizes = np.maximum(_SMALLEST_DOT, _LARGEST_DOT * sizes / max(float(sizes.max()), 1.0))
    axes.scatter(
        [b.forecast for b in bins], [b.happened for b in bins], s=sizes, color=SERIES_COLOURS[0], linewidth=0, zorder=3
    )
    axes.set_xlim(-0.03, 1.03)
    axes.set_ylim(-0.03, 1.03)
    axes.tick_params(labelcolor=INK)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(PercentFormatter(1.0, decimals=0))
