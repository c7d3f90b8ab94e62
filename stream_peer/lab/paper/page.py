"""The page of the re-run claims: its pictures with their legends, and its HTML."""

import math
from typing import TYPE_CHECKING

from stream_peer.lab.paper.results import Cells, Figure, Line
from stream_peer.serve.pages.parts import BAND, GRID, INK, SERIES, SERIES_COLOURS, escape, quiet, variable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
import re
from collections.abc import Sequence
from functools import partial

from stream_peer import __version__
from stream_peer.lab.paper.results import STANDARD_ERRORS, ClaimCheck, Result, Size, Table, band_shown, shown
from stream_peer.serve.pages.parts import FULL, HALF, both_widths, document, standalone
from stream_peer.serve.pages.parts import PictureSize as PictureSize

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


ALONE = PictureSize(640, 400)
TITLE = "The paper's claims, re-run"
_SPACE = "\u00a0"  # does not break a line
_JOINED = re.compile(r" (?=[%×/<=≤≥+±]|(?<=[×/<=≤≥+±] ))")


def render(results: Sequence[Result], *, size: Size, seed: int) -> str:
    """The page as HTML, without references to anything outside of it.

    Parameters
    ----------
    results : sequence of Result
        What the claims gave.
    size, seed
        How they were simulated.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    parts = [_about(results, size, seed), _summary(results), *(_claim(result) for result in results), _footer()]
    return document(TITLE, "\n".join(parts))


def pictures(results: Sequence[Result]) -> dict[str, str]:
    """Every figure as an SVG of its own, by file name.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    return {
        f"{figure.name}.svg": standalone(partial(paint_alone, figure=figure), ALONE, salt=figure.name)
        for result in results
        for figure in result.figures
    }


def _about(results: Sequence[Result], size: Size, seed: int) -> str:
    checks = sum(len(result.checks) for result in results)
    missed = sum(len(result.missed) for result in results)
    verdict = "all of them are met" if not missed else f"{missed} of them missed"
    return (
        '<p class="about">Claims of Liu and Helmbold, <i>Online Learning Using Only Peer Prediction</i>, simulated '
        f"with the formulas that the service uses. {checks} numbers have a band; {verdict}. Statistical bands are "
        f"{STANDARD_ERRORS:g} standard errors wide either way, of both numbers where both were measured; the others "
        f"say where they come from. Size {size.value}, seed {seed}: the same seed gives the same page.</p>"
    )


def _summary(results: Sequence[Result]) -> str:
    rows = [
        _row([_link(result), _verdict(result), *_telling(result)], missed=bool(result.missed)) for result in results
    ]
    grid = _grid(("claim", "verdict", "measured", "expected", "one number of it"), rows)
    return (
        '<section class="card"><h2>Summary</h2><p class="note">One number of each claim; the first that missed its '
        f"band, if any did.</p>{grid}</section>"
    )


def _text(text: str) -> str:
    """As HTML, with formulas and their units kept on one line."""
    return escape(_JOINED.sub(_SPACE, text.replace(" - ", f"{_SPACE}−{_SPACE}")))


def _link(result: Result) -> str:
    return f'<a href="#claim-{result.number}">{result.number} {escape(result.title)}</a>'


def _telling(result: Result) -> list[str]:
    check = (result.missed or list(result.checks))[0]
    return [shown(check.measured), _text(check.expected), _text(check.what)]


def _row(cells: Sequence[str], *, missed: bool = False) -> str:
    mark = ' class="missed"' if missed else ""
    return f"<tr{mark}>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _grid(heads: Sequence[str], rows: Sequence[str], kind: str = "words") -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "\n".join(rows)
    return (
        f'<div class="scroll"><table class="{kind}"><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table></div>'
    )


def _verdict(result: Result) -> str:
    if result.missed:
        return f'<span class="pill bad">{len(result.missed)} of {len(result.checks)} missed</span>'
    return f'<span class="pill good">{len(result.checks)} met</span>'


def _claim(result: Result) -> str:
    width = HALF if len(result.figures) > 1 else FULL
    pictures = [_figure(figure, width, f"{result.number}-{place}") for place, figure in enumerate(result.figures)]
    if len(pictures) > 1:
        pictures = ['<section class="two">', *pictures, "</section>"]
    head = (
        f'<header id="claim-{result.number}"><h2>{result.number} {escape(result.title)}</h2>{_verdict(result)}</header>'
        f'<p class="about">{_text(result.claim)}</p><p class="verdict">{_text(result.finding)}</p>'
    )
    tables = [_table(table) for table in result.tables]
    return "\n".join([f'<section class="card">{head}{_checks(result.checks)}</section>', *pictures, *tables])


def _checks(checks: Sequence[ClaimCheck]) -> str:
    rows = []
    for check in checks:
        verdict = "met" if check.met else "missed"
        texts = [
            check.what,
            verdict,
            shown(check.measured),
            check.expected,
            band_shown(check).replace(" ", _SPACE),
            check.basis,
        ]
        rows.append(_row([*map(_text, texts)], missed=not check.met))
    return _grid(("number", "verdict", "measured", "expected", "band", "band from"), rows)


def _figure(figure: Figure, width: PictureSize, salt: str) -> str:
    picture = both_widths(lambda axes: paint(axes, figure), width, salt=salt)
    return (
        f'<div class="card"><h2>{escape(figure.title)}</h2>{legend(figure)}{picture}'
        f'<p class="note">{_text(figure.caption)}</p></div>'
    )


def _table(table: Table) -> str:
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    rows = [_row([escape(cell) for cell in row]) for row in table.rows]
    grid = _grid(table.heads, rows, kind="figures-only")
    return f'<section class="card"><h2>{escape(table.title)}</h2>{note}{grid}</section>'


def _footer() -> str:
    return f"<footer><p>stream_peer {escape(__version__)}: docs/paper.md tells what each claim is about.</p></footer>"
