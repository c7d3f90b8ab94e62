"""A sheet for a dashboard: its grid in inches, panels as frames with their titles, and text that stays inside."""

from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

INK, MUTED, GRID, PAPER, FRAME = "#1f2328", "#59636e", "#e4e7eb", "#ffffff", "#d1d7de"
FRAMED = "frame of a panel"
SMALL, NORMAL, LARGE = 7.0, 8.5, 17.0
_COLUMN, _ROW = 0.58, 0.30
_COLUMNS = 24
_GAP = 0.06
_HEAD = 0.42
CHARACTER = 0.0615
"""Width of a character of small text, generously, in inches."""
LINE = 0.145
"""Height of a line of small text."""


class Box(NamedTuple):
    """A rectangle in inches, from the upper left corner of the sheet."""

    left: float
    top: float
    width: float
    height: float

    def inside(self, left: float, top: float, right: float, bottom: float) -> "Box":
        """What is left within these margins."""
        return Box(self.left + left, self.top + top, self.width - left - right, self.height - top - bottom)


class Canvas:
    """A sheet of so many rows of the grid under a title."""

    def __init__(self, title: str, note: str, rows: int) -> None:
        self.width, self.height = _COLUMNS * _COLUMN + 2 * _GAP, rows * _ROW + _HEAD + _GAP
        self.figure = Figure(figsize=(self.width, self.height), facecolor="#f4f5f7")
        self.text(Box(0.12, 0.0, 0, _HEAD), title, size=12, weight="bold")
        self.text(Box(self.width - 0.12, 0.0, 0, _HEAD), note, size=NORMAL, color=MUTED, ha="right")

    def place(self, grid: dict[str, int]) -> Box:
        """Where a panel lies."""
        left, top = grid["x"] * _COLUMN + _GAP, grid["y"] * _ROW + _HEAD
        return Box(left, top, grid["w"] * _COLUMN, grid["h"] * _ROW)

    def frame(self, box: Box, title: str) -> Box:
        """Draw a panel's frame and title; what is left for its content."""
        outer = box.inside(_GAP / 2, _GAP / 2, _GAP / 2, _GAP / 2)
        corner = (outer.left / self.width, 1 - (outer.top + outer.height) / self.height)
        size = (outer.width / self.width, outer.height / self.height)
        self.figure.add_artist(
            Rectangle(corner, *size, facecolor=PAPER, edgecolor=FRAME, linewidth=0.8, zorder=-1, gid=FRAMED)
        )
        self.text(Box(outer.left + 0.1, outer.top, 0, 0.3), title, weight="bold")
        return outer.inside(0.1, 0.3, 0.1, 0.08)

    def axes(self, box: Box) -> Axes:
        """Axes that fill a box."""
        rectangle = (
            box.left / self.width,
            1 - (box.top + box.height) / self.height,
            box.width / self.width,
            box.height / self.height,
        )
        return self.figure.add_axes(rectangle, facecolor=PAPER)

    def text(self, box: Box, words: str, *, size: float = NORMAL, color: str = INK, **style: Any) -> None:
        """Write in the vertical middle of a box, from its left edge unless ``ha`` says otherwise."""
        x = box.left + {"left": 0.0, "center": box.width / 2, "right": box.width}[style.get("ha", "left")]
        place = (x / self.width, 1 - (box.top + box.height / 2) / self.height)
        self.figure.text(*place, _plain(words), fontsize=size, color=color, va="center", **style)

    def swatch(self, box: Box, color: str) -> None:
        """Fill a box with a colour."""
        corner = (box.left / self.width, 1 - (box.top + box.height) / self.height)
        size = (box.width / self.width, box.height / self.height)
        self.figure.add_artist(Rectangle(corner, *size, facecolor=color, edgecolor="none"))


def fitting(words: str, width: float, size: float = SMALL) -> str:
    """A text cut to what a width in inches has room for."""
    room = max(1, int(width / (CHARACTER * size / SMALL)))
    return words if len(words) <= room else words[: room - 1] + "…"


def _plain(words: str) -> str:
    return words.replace("$", r"\$")
