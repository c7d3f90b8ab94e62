"""Finds text in a picture that lies over other text, or leaves its panel."""

from collections.abc import Sequence
from itertools import combinations

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import BboxBase

from helm.dashboards.pictures.canvas import FRAMED

_TOUCHING = 1.0
"""Pixels by which boxes of text may reach into one another: they are a little larger than their letters."""


def faults(figure: Figure) -> list[str]:
    """What is wrong with the places of texts, in words; empty if nothing is."""
    FigureCanvasAgg(figure)
    figure.draw_without_rendering()
    placed = [(text.get_text(), text.get_window_extent()) for text in _texts(figure)]
    frames = [artist.get_window_extent() for artist in figure.get_children() if artist.get_gid() == FRAMED]
    over = [f"{one!r} lies over {other!r}" for (one, a), (other, b) in combinations(placed, 2) if _overlap(a, b)]
    out = [f"{words!r} leaves its panel" for words, box in placed if not _is_inside_or_apart(box, frames)]
    outside = [f"{words!r} leaves the sheet" for words, box in placed if not _holds(figure.bbox, box)]
    return over + out + outside


def _texts(figure: Figure) -> list[Text]:
    found = [*figure.texts]
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            found += [axis.label, *(tick.label1 for tick in axis.get_major_ticks())]
    return [text for text in found if text.get_visible() and text.get_text().strip()]


def _overlap(one: BboxBase, other: BboxBase) -> bool:
    across = min(one.x1, other.x1) - max(one.x0, other.x0)
    down = min(one.y1, other.y1) - max(one.y0, other.y0)
    return bool(across > _TOUCHING and down > _TOUCHING)


def _is_inside_or_apart(box: BboxBase, frames: Sequence[BboxBase]) -> bool:
    """Whether a text lies in one frame wholly, or touches none, as headlines do."""
    touched = [frame for frame in frames if _overlap(box, frame)]
    return not touched or (len(touched) == 1 and _holds(touched[0], box))


def _holds(outer: BboxBase, inner: BboxBase) -> bool:
    return bool(
        outer.x0 <= inner.x0 + _TOUCHING
        and outer.y0 <= inner.y0 + _TOUCHING
        and inner.x1 <= outer.x1 + _TOUCHING
        and inner.y1 <= outer.y1 + _TOUCHING
    )
