"""Cards on trust: its states over time with their reasons, dependence, groups of experts, and drift."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby, pairwise

import msgspec

from stream_peer.events.outputs import DriftedExpert, DriftedRate, ExpertGroup
from stream_peer.feeds.methods.served import served_method
from stream_peer.serve.pages.parts import escape
from stream_peer.settings.feed.model import BUILT_IN, FeedSettings
from stream_peer.tools.replay.history import TrustChange
from stream_peer.tools.report.cards.parts import TONES, FeedPage, card, count, html_table, pill, short
from stream_peer.tools.report.pairs import FEWEST_COMMON, MOST_EXPERTS, Pair, PairMap, pair_map

SHOWN_CHANGES = 30
_LEAST_NAMED = 0.25
"""Share of the strip: on a phone a shorter stretch would cut its name off."""


def trust_card(page: FeedPage) -> str:
    """A strip of states, and below it each change with its reasons."""
    changes = page.feed.trust
    left_out = max(0, len(changes) - SHOWN_CHANGES)
    text = "The published state of trust and its reasons, over time."
    if left_out:
        text += f" The last {SHOWN_CHANGES} of {len(changes):,} changes are listed."
    listed = "".join(_item(change) for change in changes[left_out:])
    strip = _strip(changes, page.feed.news[-1])
    return card("Trust over time", text, f'{strip}<ol class="changes">{listed}</ol>{_shrunk(page)}', wide=True)


def _item(change: TrustChange) -> str:
    reasons = escape("; ".join(change.reasons)) or "no alarm"
    when = datetime.fromisoformat(change.at).strftime("%Y-%m-%d %H:%M")
    after = f"after {count(change.news)} question{'' if round(change.news) == 1 else 's'} and outcomes"
    return (
        f'<li><time datetime="{escape(change.at)}">{when}</time>{pill(change.status)}<span>{reasons}</span>'
        f'<span class="note">{after}</span></li>'
    )


def _strip(changes: Sequence[TrustChange], end: float) -> str:
    """States as stretches as long as what happened during them; said again by the list, hence silent."""
    begins = [0.0, *(change.news for change in changes[1:])]
    lengths = [max(after - before, 0.0) for before, after in pairwise([*begins, end])]
    stretches = "".join(
        f'<i class="{TONES.get(change.status, "bad")}" style="flex-grow:{length:.6g}">'
        f"{escape(change.status) if length >= _LEAST_NAMED * end else ''}</i>"
        for change, length in zip(changes, lengths, strict=True)
    )
    return f'<div class="strip" aria-hidden="true">{stretches}</div>'


def _shrunk(page: FeedPage) -> str:
    """What the state does to the selection weights, where it does something."""
    shrink = page.weights.select_shrink
    if not shrink:
        return ""
    return (
        f'<p class="note">For want of trust, {shrink:.0%} of the selection weights are shared equally among all '
        "experts at the moment; the mix has its own safety net.</p>"
    )


SHOWN_MEMBERS = 12
_GROUPS = ("kind", "experts", "agreement", "expected", "common questions")
_DRIFTS = ("what", "before", "now", "last questions", "z")
_KINDS = {"copies": "copy each other", "follower": "follow the crowd"}
_BY = {"agreement": "wrong reference answers, by agreement", "outcomes": "wrong reference answers, by outcomes"}


def groups_card(page: FeedPage) -> str:
    """Groups of experts, by name."""
    groups = page.weights.groups
    if groups is msgspec.UNSET or not groups:
        return ""
    text = (
        "Experts that agree far more than independent ones could, in the latest comparison of the last 512 questions. "
        "Agreement is the mean product of votes of +1 and -1, expected is its value for independent experts. "
    )
    text += _said_of_guard(page.settings)
    return card("Groups", text, html_table("Groups of experts", _GROUPS, map(_group, groups), kind="left"), wide=True)


def _said_of_guard(settings: FeedSettings | None) -> str:
    method = served_method(settings) if settings and settings.method == BUILT_IN else None
    if method is None or not method.guards:
        return "With guard: on each would vote once."
    followers = " Followers have no weight." if method.finds_repeaters else ""
    return f"Each group votes once and shares one weight.{followers}"


def drift_card(page: FeedPage) -> str:
    """Changes of the error rate and of single experts."""
    drift = page.weights.drift
    if drift is msgspec.UNSET or not (drift.error_rate or drift.experts):
        return ""
    text = (
        "Changes in the latest comparison of the last 512 questions. Drift is an alarm and moves no weight. For an"
        " expert: its agreement with its own reference answers; z below 0: it got worse."
    )
    if drift.n_experts > len(drift.experts):
        text += f" {drift.n_experts:,} experts changed; these are the {len(drift.experts)} that changed most."
    rows = [*([_rate(drift.error_rate)] if drift.error_rate else []), *map(_expert, drift.experts)]
    return card("Drift", text, html_table("What drifts", _DRIFTS, rows), wide=True)


def _group(group: ExpertGroup) -> tuple[str, ...]:
    more = len(group.experts) - SHOWN_MEMBERS
    named = ", ".join(short(name, 24) for name in group.experts[:SHOWN_MEMBERS]) + (
        f" and {more} more" if more > 0 else ""
    )
    figures = f"{group.agreement:.2f}", f"{group.expected:.2f}", f"{group.questions:,}"
    return escape(_KINDS.get(group.kind, group.kind)), f'<span class="names">{escape(named)}</span>', *figures


def _rate(rate: DriftedRate) -> tuple[str, ...]:
    return _BY.get(rate.by, rate.by), *_change(rate)


def _expert(expert: DriftedExpert) -> tuple[str, ...]:
    return escape(short(expert.id)), *_change(expert)


def _change(found: DriftedRate | DriftedExpert) -> Iterator[str]:
    yield from (f"{found.before:.1%}", f"{found.now:.1%}", f"{found.since_questions:,}", f"{found.z:+.1f}")


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
