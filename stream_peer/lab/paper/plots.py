"""How the figures of the re-run claims are drawn, and their legends."""

import math
from typing import TYPE_CHECKING

from stream_peer.lab.paper.results import Cells, Figure, Line
from stream_peer.serve.pages.svg import BAND, GRID, INK, SERIES, SERIES_COLOURS, quiet, variable
from stream_peer.serve.pages.text import escape

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CELLS_COLOUR = SERIES_COLOURS[1]
_DASHES = {"": "-", "dashed": "--"}


def paint(axes: "Axes", figure: Figure) -> None:
    """Draw the figure on matplotlib axes; for `pages.svg.drawn`."""
    quiet(axes)
    axes.set_xlabel(figure.x_label, color=INK)
    axes.set_ylabel(figure.y_label, color=INK)
    if figure.cells is not None:
        _paint_cells(axes, figure.cells)
    for area in figure.areas:
        axes.fill_between(area.x, area.low, area.high, color=BAND, linewidth=0)
    for number, line in enumerate(figure.lines):
        _paint_line(axes, line, SERIES_COLOURS[number % SERIES])
    _scale(axes, figure)


def paint_alone(axes: "Axes", figure: Figure) -> None:
    """Draw the figure with its title and legend, as a picture that stands by itself; for `pages.svg.standalone`."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    paint(axes, figure)
    axes.set_title(figure.title, loc="left", color=INK, pad=14)
    handles = [
        Patch(facecolor=colour, label=name)
        if kind == "area"
        else Line2D([], [], color=colour, ls=_DASHES[kind], label=name)
        for name, colour, kind in _keys(figure)
    ]
    if (whole := axes.get_figure()) is not None:
        whole.legend(handles=handles, loc="outside lower left", ncols=3, frameon=False, fontsize=9.0, labelcolor=INK)


def legend(figure: Figure) -> str:
    """What each colour of the figure means, as HTML."""
    items = "".join(
        f'<li><i class="{kind}" style="--c:var({variable(colour)});background:var({variable(colour)})"></i>'
        f"{escape(name)}</li>"
        for name, colour, kind in _keys(figure)
    )
    return f'<ul class="legend">{items}</ul>'


def _keys(figure: Figure) -> list[tuple[str, str, str]]:
    """Name, colour and kind of everything that the figure shows."""
    keys = [(area.name, BAND, "area") for area in figure.areas]
    if figure.cells is not None:
        keys.append((figure.cells.name, _CELLS_COLOUR, "area"))
    keys += [
        (line.name, SERIES_COLOURS[number % SERIES], "dashed" if line.dashed else "")
        for number, line in enumerate(figure.lines)
    ]
    return list(dict.fromkeys(keys))


def _paint_line(axes: "Axes", line: Line, colour: str) -> None:
    dashes = "--" if line.dashed else "-"
    axes.plot(line.x, line.y, dashes, color=colour, linewidth=1.8, solid_capstyle="round")
    if line.dashed:
        return
    axes.plot(line.x, line.y, "o", color=colour, markersize=3.5)
    if line.error:
        axes.errorbar(
            line.x, line.y, yerr=line.error, fmt="none", color=colour, ecolor=colour, elinewidth=1.0, capsize=2.0
        )


def _paint_cells(axes: "Axes", cells: Cells) -> None:
    from matplotlib.patches import Rectangle

    width, height = cells.x[1] - cells.x[0], cells.y[1] - cells.y[0]
    for y, row in zip(cells.y, cells.shares, strict=True):
        for x, share in zip(cells.x, row, strict=True):
            place = (x - 0.46 * width, y - 0.46 * height)
            patch = Rectangle(place, 0.92 * width, 0.92 * height, edgecolor="none")
            patch.set_facecolor(_CELLS_COLOUR if share > 0.0 else GRID)
            patch.set_alpha(0.25 + 0.75 * share if share > 0.0 else 0.6)
            axes.add_patch(patch)


def _scale(axes: "Axes", figure: Figure) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    for along, of_axis in ((figure.log_x, axes.xaxis), (figure.log_y, axes.yaxis)):
        if along:
            (axes.set_xscale if of_axis is axes.xaxis else axes.set_yscale)("log")
            decades = _decades(*of_axis.get_data_interval())
            of_axis.set_major_locator(LogLocator(subs=(1.0,) if decades > 2.5 else (1.0, 2.0, 5.0)))
            of_axis.set_minor_formatter(NullFormatter())
            of_axis.set_major_formatter(FuncFormatter(lambda value, _: _plain(value)))
        else:
            of_axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.tick_params(which="both", length=0)
    if not figure.log_y and figure.cells is None and all(min(line.y, default=0.0) >= 0.0 for line in figure.lines):
        axes.set_ylim(bottom=0.0)
    axes.margins(x=0.02)


def _decades(low: float, high: float) -> float:
    return math.log10(high / low) if 0.0 < low < high else 1.0


def _plain(value: float) -> str:
    """1000 as 1k, .001 as .001: what stands at a logarithmic axis."""
    if value >= 1_000_000:
        return f"{value / 1_000_000:g}M"
    if value >= 1000:
        return f"{value / 1000:g}k"
    return f"{value:.{max(0, -math.floor(math.log10(value)))}f}" if value < 1 else f"{value:g}"
