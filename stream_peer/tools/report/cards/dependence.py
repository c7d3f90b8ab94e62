"""A map of all pairs of experts: who agrees with whom beyond what their skills explain."""

from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec

from stream_peer.serve.pages.text import escape
from stream_peer.tools.report.cards.parts import FeedPage, card, html_table, short
from stream_peer.tools.report.pair_map import FEWEST_COMMON, MOST_EXPERTS, Pair, PairMap, pair_map

SHOWN_PAIRS = 8
ALARMING = 4.0
"""Standard deviations beyond skill that chance gives one pair in 30,000."""

_LEVELS = ((-2.0, "below"), (2.0, "none"), (ALARMING, "some"), (2 * ALARMING, "much"), (float("inf"), "most"))
_TOO_FEW = "too-few"
_LEGEND = (
    ("agree less", "below"),
    ("as their skills explain", "none"),
    ("2 to 4 standard deviations more", "some"),
    ("4 to 8", "much"),
    ("beyond 8", "most"),
    (f"fewer than {FEWEST_COMMON} common questions", _TOO_FEW),
)
_MAP = 560
_LARGEST_CELL = 28
_NAME = 110
_LETTERS = 17


def dependence_card(page: FeedPage) -> str:
    """The map, and the pairs that agree most."""
    found = pair_map(page.feed)
    text = "How much more than their skills explain two experts agree: copies, teams and common sources show as groups."
    if found is None:
        empty = f'<p class="empty">No two experts have voted on {FEWEST_COMMON} common questions.</p>'
        return card("Agreement of experts", text, empty, wide=True)
    many = _counted(found)
    if len(page.weights.experts) > len(found.experts):
        text += (
            f" Of the {MOST_EXPERTS} with the most forecasts, these {len(found.experts)} have {FEWEST_COMMON} or more "
            "questions in common with another; they are ordered so that groups stand together."
        )
    text += f" {many}; independent experts have almost none. Questions of different difficulty have the same effect."
    text += (
        " Groups lists only nearly identical pairs: they disagree on less than half of the questions"
        " on which they would if they had nothing but the outcome in common. Others may share what they know."
    )
    groups = _groups(page)
    rows = [_row(pair, groups) for pair in found.pairs[:SHOWN_PAIRS]]
    heads = ("pair", "common questions", "agreed", "by skill", "z", "group")
    pairs = html_table("Pairs that agree most beyond their skills", heads, rows)
    body = f'<ul class="legend">{_legend()}</ul><div class="map">{_drawn(found, many)}{pairs}</div>'
    return card("Agreement of experts", text, body, wide=True)


def _counted(found: PairMap) -> str:
    beyond = sum(pair.z >= ALARMING for pair in found.pairs)
    return (
        f"{beyond:,} of {len(found.pairs):,} pairs agree {ALARMING:g} standard deviations or more beyond their skills"
    )


def _legend() -> str:
    swatch = '<svg viewBox="0 0 1 1" aria-hidden="true"><path class="pair {}" d="M0 0h1v1H0z"/></svg>'
    return "".join(f"<li>{swatch.format(kind)}{escape(name)}</li>" for name, kind in _LEGEND)


def _groups(page: FeedPage) -> list[set[str]]:
    groups = page.weights.groups
    return [] if groups is msgspec.UNSET else [set(group.experts) for group in groups]


def _row(pair: Pair, groups: Sequence[set[str]]) -> tuple[str, ...]:
    names = escape(f"{short(pair.one, 24)}, {short(pair.other, 24)}")
    named = "yes" if any({pair.one, pair.other} <= group for group in groups) else "no"
    return names, f"{pair.common:,}", f"{pair.agreed:.0%}", f"{pair.expected:.0%}", f"{pair.z:+.1f}", named


def _drawn(found: PairMap, label: str) -> str:
    """The map with names for wide windows, without for narrow ones, where nobody could read them."""
    cell = min(_LARGEST_CELL, _MAP // len(found.experts))
    side, cells = cell * len(found.experts), _cells(found, cell)
    names = "".join(
        f'<text x="{_NAME - 6}" y="{cell * (place + 0.5) + 3.5:g}">{escape(short(name, _LETTERS))}</text>'
        for place, name in enumerate(found.experts)
    )
    head = f'role="img" aria-label="Map of pairs: {escape(label)}."'
    wide = _svg(side + _NAME, side, head, f'{names}<g transform="translate({_NAME} 0)">{cells}</g>')
    narrow = _svg(side, side, head, cells)
    return f'<div class="plot"><div class="wide">{wide}</div><div class="narrow">{narrow}</div></div>'


def _svg(width: int, height: int, head: str, inside: str) -> str:
    return f'<svg viewBox="0 0 {width} {height}" style="width:{width}px;max-width:100%" {head}>{inside}</svg>'


def _cells(found: PairMap, cell: int) -> str:
    """One path a level, made of runs of equal cells, so that forty experts are a few kilobytes."""
    paths: dict[str, list[str]] = {}
    for row in range(len(found.experts)):
        begin = 0
        for kind, run in groupby(_levels(found, row)):
            width = cell * len(list(run))
            paths.setdefault(kind, []).append(f"M{begin} {cell * row}h{width}v{cell}h-{width}z")
            begin += width
    return "".join(f'<path class="pair {kind}" d="{"".join(runs)}"/>' for kind, runs in sorted(paths.items()))


def _levels(found: PairMap, row: int) -> Iterator[str]:
    for column, (z, together) in enumerate(zip(found.z[row].tolist(), found.common[row].tolist(), strict=True)):
        if column == row:
            yield "self"
        elif together < FEWEST_COMMON:
            yield _TOO_FEW
        else:
            yield next(kind for most, kind in _LEVELS if z < most)
