"""What moved over time: weights, loss, error rate and certificate."""

from stream_peer.numerics.losses import LOSSES, SQUARED
from stream_peer.serve.pages.parts import FULL, HALF, SERIES, PictureSize
from stream_peer.tools.report.cards.parts import FeedPage, card, html_legend, picture, short
from stream_peer.tools.report.plots import (
    Plot,
    certificate_plot,
    error_rate_plot,
    leaders,
    loss_plot,
    weights_plot,
)

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
