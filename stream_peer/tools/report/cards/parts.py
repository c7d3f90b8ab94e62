"""What cards are made of."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from stream_peer.events.outputs import ShadowScores, Weights
from stream_peer.events.spelling import spelt
from stream_peer.serve.explanation import WeightExplanation
from stream_peer.serve.pages.parts import PictureSize, both_widths, escape
from stream_peer.settings.feed.model import FeedSettings
from stream_peer.tools.replay.history import FeedHistory, Scores
from stream_peer.tools.report.plots import Plot, paint_plot
from stream_peer.tools.report.track_record import TrackRecord, track_record

UNKNOWN = "–"
TONES = {"ok": "good", "warming-up": "warn", "low-evidence": "warn", "dependent": "warn"}
"""Colour of a state of trust; of all others, bad."""


class FeedExtras(NamedTuple):
    """What a replay knows of a feed beyond its outputs.

    ``variant`` names settings of meaning that differ from the default, ``explanations`` say why weights of the leading
    experts moved, ``shadows`` are those folded beside it.
    """

    variant: str = ""
    explanations: Sequence[WeightExplanation] = ()
    shadows: Sequence[ShadowScores] = ()


NOTHING_MORE = FeedExtras()


class FeedPage:
    """One feed, as all cards get it: ``number`` counts feeds, for names that may stand on the page only once.

    Parameters
    ----------
    feed : FeedHistory
    weights : Weights
        Its newest.
    number : int
    settings : FeedSettings or None
        All of them, where they are known.
    extras : FeedExtras
        What only a replay knows.
    """

    def __init__(
        self,
        feed: FeedHistory,
        weights: Weights,
        number: int,
        settings: FeedSettings | None = None,
        extras: FeedExtras = NOTHING_MORE,
    ) -> None:
        self.feed = feed
        self.weights = weights
        self.number = number
        self.settings = settings
        self.variant = extras.variant
        self.explanations = extras.explanations
        self.shadows = extras.shadows

    @cached_property
    def scores(self) -> Scores | None:
        """How the published forecasts did."""
        return self.feed.scores()

    @cached_property
    def record(self) -> TrackRecord | None:
        """How all forecasters did."""
        return track_record(self.feed)

    @property
    def best(self) -> str | None:
        """The best expert in hindsight, of those that answered at least half."""
        return self.scores.best.expert_id if self.scores and self.scores.best else None


def card(title: str, text: str, body: str, *, wide: bool = False) -> str:
    """A card with a heading and a sentence on how to read it."""
    tag = "section" if wide else "div"
    note = f'<p class="note">{escape(text)}</p>' if text else ""
    return f'<{tag} class="card"><h3>{escape(title)}</h3>{note}{body}</{tag}>'


def html_legend(keys: Iterable[tuple[str, str, str]]) -> str:
    """Names of curves: (name, CSS variable of the colour, "dashed", "area" or "")."""
    items = "".join(
        f'<li><i class="{kind}" style="--c:var({colour});background:var({colour})"></i>{escape(name)}</li>'
        for name, colour, kind in keys
    )
    return f'<ul class="legend">{items}</ul>'


def picture(plot: Plot, size: PictureSize, salt: str) -> str:
    """The plot, or a word if it has no two points to draw a line between."""
    if not any(len(set(curve.x)) > 1 for curve in plot.curves):
        return '<p class="empty">Nothing to draw yet.</p>'
    return both_widths(lambda axes: paint_plot(axes, plot), size, salt=salt, label=plot.alt)


def bar(name: str, amount: float, share: float, *, ours: bool) -> str:
    """One row of a bar chart, for a ``<div class="bars">``."""
    mark = ' class="ours"' if ours else ""
    return (
        f'<span class="who">{escape(name)}</span><span class="track"><i{mark} style="width:{share:.1%}"></i></span>'
        f'<span class="amount">{amount:.3f}</span>'
    )


def html_table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]], *, kind: str = "") -> str:
    """A small table; the first cell of a row names it. Cells are HTML, heads and caption are text."""
    top = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    body = "\n".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>' for first, *rest in rows
    )
    return scrolling(
        caption,
        f'<table class="{kind}"><caption class="unseen">{escape(caption)}</caption><thead><tr>{top}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table>",
    )


def scrolling(name: str, inside: str) -> str:
    """What may be wider than its card; it can be scrolled by keyboard, too."""
    return f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(name)}">{inside}</div>'


def figure(value: float | None, digits: int = 3) -> str:
    """A number, or a dash if it is not known."""
    return UNKNOWN if value is None else f"{value:,.{digits}f}".replace("-0." + "0" * digits, "0." + "0" * digits)


def short(name: str, length: int = 40) -> str:
    """A name that leaves room for others."""
    name = spelt(name)
    return name if len(name) <= length else name[: length - 1] + "…"


def count(amount: float) -> str:
    """A whole number as people write it."""
    return f"{amount:,.0f}"


def pill(status: str) -> str:
    """A state of trust in its colour."""
    return f'<span class="pill {TONES.get(status, "bad")}">{escape(status)}</span>'
