"""The page about the re-run claims: a summary, then each claim with its numbers, bands, pictures and tables."""

import re
from collections.abc import Sequence
from functools import partial

from stream_peer import __version__
from stream_peer.lab.paper.plots import legend, paint, paint_alone
from stream_peer.lab.paper.results import STANDARD_ERRORS, Check, Figure, Result, Size, Table, band_shown, shown
from stream_peer.serve.pages.document import document
from stream_peer.serve.pages.svg import FULL, HALF, both_widths, standalone
from stream_peer.serve.pages.svg import PictureSize as PictureSize
from stream_peer.serve.pages.text import escape

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


def _checks(checks: Sequence[Check]) -> str:
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
