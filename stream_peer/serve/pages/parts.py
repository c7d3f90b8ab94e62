"""Parts of pages: escaped text of others, pictures as SVG for wide and narrow windows, and the HTML document."""

import html
import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from stream_peer.errors import MissingExtraError
from stream_peer.events.spelling import spelt

if TYPE_CHECKING:
    from matplotlib.axes import Axes
from importlib import resources


def escape(text: str) -> str:
    r"""Text that a browser shows as it is: no markup, no control characters, no mark that turns text round.

    Examples
    --------
    >>> print(escape("<b>ann\u202e"))
    &lt;b&gt;ann\u202e
    """
    return html.escape(spelt(text))


SERIES = 7
"""How many colours there are for curves."""

INK, MUTED, GRID, TRUTH, BAND, BAD = "#000001", "#000002", "#000003", "#000004", "#000005", "#000006"
_VARIABLES = {INK: "--ink", MUTED: "--muted", GRID: "--grid", TRUTH: "--truth", BAND: "--band", BAD: "--bad"}
_VARIABLES |= {f"#0000{number + 16:02x}": f"--series-{number + 1}" for number in range(SERIES)}
SERIES_COLOURS = tuple(colour for colour, name in _VARIABLES.items() if name.startswith("--series"))

_PLACEHOLDER = re.compile(r"#0000[0-9a-f]{2}\b")
_OWN_ID = re.compile(r' id="[A-Za-z0-9.]*_\d+"')
_HEAD = re.compile(r"<svg[^>]*viewBox=\"([^\"]*)\"[^>]*>")
_METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)
_PATH = re.compile(r' d="[^"]*"')
_VARIABLE = re.compile(r"var\((--[\w-]+)\)")
_SILENT = ' aria-hidden="true"'
_DIGITS = re.compile(r"(\d+\.\d)\d+")


class PictureSize(NamedTuple):
    """Width and height of a picture in CSS pixels."""

    width: int
    height: int


FULL, HALF, NARROW = PictureSize(1080, 330), PictureSize(520, 290), PictureSize(350, 260)


def variable(colour: str) -> str:
    """Name of the CSS variable that a placeholder colour becomes.

    Examples
    --------
    >>> variable(SERIES_COLOURS[0])
    '--series-1'
    """
    return _VARIABLES.get(colour, "--ink")


def require_matplotlib() -> None:
    """Say so at once if pictures cannot be drawn here, before there is anything to lose.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        msg = "the report needs matplotlib: pip install 'stream-peer[report]'"
        raise MissingExtraError(msg) from error


def drawn(paint: Callable[["Axes"], None], size: PictureSize, *, salt: str, label: str = "") -> str:
    """What ``paint`` puts on the axes, as an ``<svg>`` element without references to anything outside of it.

    Parameters
    ----------
    paint : callable
        Draws on matplotlib axes, in the colours of this module.
    size : Size
        Width and height in pixels.
    salt : str
        Another one for each picture on a page: names inside pictures are made with it.
    label : str
        What it shows, for who cannot see it. Without one the picture is silent.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    require_matplotlib()
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": salt, "font.size": 11.0}):
        figure = Figure(figsize=(size.width / 72, size.height / 72), layout="constrained")
        figure.patch.set_visible(False)
        axes = figure.add_subplot()
        paint(axes)
        target = io.StringIO()
        figure.savefig(target, format="svg", metadata={"Date": None, "Creator": None})
    svg = _themed(target.getvalue())
    return svg.replace(_SILENT, f' aria-label="{escape(label)}"', 1) if label else svg


def standalone(paint: Callable[["Axes"], None], size: PictureSize, *, salt: str) -> str:
    """The picture as a file of its own, in the style sheet's light colours on its card colour.

    Parameters
    ----------
    paint, size, salt
        As of `drawn`.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    light = style_sheet().split("@media", 1)[0]
    colours = dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6})", light))
    svg = _VARIABLE.sub(lambda found: colours[found.group(1)], drawn(paint, size, salt=salt))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size.width}" height="{size.height}" font-family="sans-serif"'
    )
    card = f'<rect width="100%" height="100%" fill="{colours["--card"]}"/>'
    return svg.replace("<svg", head, 1).replace(f"{_SILENT}>", f">{card}", 1)


def both_widths(
    paint: Callable[["Axes"], None], size: PictureSize, *, salt: str, label: str = "", narrow_size: PictureSize = NARROW
) -> str:
    """The picture for wide windows and for narrow ones; the style sheet shows the one that fits."""
    wide = drawn(paint, size, salt=f"{salt}-w", label=label)
    narrow = drawn(paint, narrow_size, salt=f"{salt}-n", label=label)
    return f'<div class="plot"><div class="wide">{wide}</div><div class="narrow">{narrow}</div></div>'


def quiet(axes: "Axes") -> None:
    """Few lines and no frame."""
    axes.patch.set_visible(False)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(GRID)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.tick_params(length=0, labelcolor=INK, pad=6)
    axes.set_axisbelow(True)


def _themed(svg: str) -> str:
    """Colours become CSS variables; what a page of several pictures has no use for is dropped."""
    svg = svg[svg.index("<svg") :]
    svg = _METADATA.sub("", svg)
    svg = _HEAD.sub(rf'<svg viewBox="\1" role="img"{_SILENT}>', svg, count=1)
    svg = _OWN_ID.sub("", svg).replace("xlink:href", "href")
    svg = _PATH.sub(lambda path: _DIGITS.sub(r"\1", path.group(0)), svg)
    return _PLACEHOLDER.sub(lambda found: f"var({variable(found.group(0))})", svg)


def style_sheet() -> str:
    """The style sheet of every page; its first block names the colours."""
    return resources.files("stream_peer.serve.pages").joinpath("style.css").read_text(encoding="utf-8")


def document(title: str, body: str, script: str = "", *, style: str = "") -> str:
    """A whole page: the shared style sheet, a heading of that title, the body, and a script if there is one.

    Parameters
    ----------
    title : str
        Plain text.
    body : str
        HTML that follows the heading.
    script : str
        JavaScript, run when everything is there.
    style : str
        CSS of this page alone, after the shared style sheet.

    Examples
    --------
    >>> page = document("A & B", "<p>text</p>")
    >>> "<title>A &amp; B</title>" in page, "<script>" in page
    (True, False)
    """
    closing = f"<script>\n{script}</script>\n" if script else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style_sheet()}{style}</style>\n</head>\n"
        f"<body>\n<main>\n<h1>{escape(title)}</h1>\n{body}\n</main>\n{closing}</body>\n</html>\n"
    )
