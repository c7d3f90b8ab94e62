"""The state machines of docs/semantics.md: one table each, and the pictures that are drawn from it.

``tests/infra/test_state_machines.py`` walks every arrow through the engine, and checks that it takes no other.
"""

import math
import re
import textwrap
from collections.abc import Iterator
from html import escape
from typing import NamedTuple

from stream_peer.serve.pages.parts import style_sheet

_BOX = 222, 84
_PAD = 26
_TITLE = 24
_LINE = 18
_LABEL, _ABOUT = 24, 27
"""Characters a line: of what stands at an arrow, of what a state means."""
_LETTER = 7.4
"""Width of a letter, about: what stands at an arrow lies on a patch that hides the arrow."""
_HEAD = 11


class State(NamedTuple):
    """A state: the middle of its box, and what it means. ``faint``: there is nothing, or nothing any more."""

    x: int
    y: int
    about: str
    faint: bool = False


class Arrow(NamedTuple):
    """What leads from a state, or from any of a group, to another, or to whichever of a group then holds.

    ``bend`` moves the middle of the arrow aside, ``at`` its text along it; a hidden one is told in words.
    """

    source: str
    target: str
    when: str
    bend: int = 0
    at: float = 0.5
    hidden: bool = False


class Machine(NamedTuple):
    """A state machine: its title, the size of its picture, its states, groups of them by name, and its arrows."""

    title: str
    size: tuple[int, int]
    states: dict[str, State]
    groups: dict[str, tuple[str, ...]]
    arrows: tuple[Arrow, ...]

    def transitions(self) -> dict[tuple[str, str], str]:
        """What every arrow means for single states: (from, to) and when."""
        found: dict[tuple[str, str], str] = {}
        for arrow in self.arrows:
            for source in self.groups.get(arrow.source, (arrow.source,)):
                for target in self.groups.get(arrow.target, (arrow.target,)):
                    if source != target:
                        found.setdefault((source, target), arrow.when)
        return found


QUESTION = Machine(
    "A question in the question stage",
    (1040, 660),
    {
        "unknown": State(130, 120, "no event names it, or it is gone", faint=True),
        "scheduled": State(480, 120, "forecasts wait for its opening"),
        "open": State(890, 120, "rounds, as they fall due"),
        "closed": State(685, 440, "its last round; outcomes are told"),
        "stub": State(130, 590, "no history: its feed and its outcome only"),
    },
    {"known": ("scheduled", "open", "closed")},
    (
        Arrow("unknown", "known", "an event names it", bend=-86, at=0.35),
        Arrow("known", "unknown", "its feed is deleted; or history_for after its close, if it never had a round", -50),
        Arrow("scheduled", "open", "the clock reaches its opening, or that is moved back", bend=-30),
        Arrow("open", "scheduled", "its opening is moved ahead", bend=-30),
        Arrow("open", "closed", "the clock reaches its close; it is resolved, annulled, or cut", bend=-64, at=0.62),
        Arrow("closed", "open", "its close is moved ahead, or what ended it is retracted", bend=-52, at=0.42),
        Arrow("scheduled", "closed", "its opening and its close are moved back", bend=48),
        Arrow("closed", "scheduled", "they are moved ahead", bend=36, at=0.62),
        Arrow("closed", "stub", "history_for after its close, if it had a round", bend=-30, at=0.62),
        Arrow("scheduled", "stub", "the same, where its opening was moved behind its close", hidden=True),
        Arrow("stub", "unknown", "ledger_for after its last news, with an outcome retract_for; its feed is deleted"),
    ),
)

PUBLISHED = Machine(
    "What is published of a question: its state",
    (1040, 680),
    {
        "nothing": State(125, 270, "no round was due", faint=True),
        "scored": State(480, 145, "its latest round has votes enough"),
        "low-evidence": State(480, 395, "its latest round has too few"),
        "resolved": State(865, 145, "its outcome is known"),
        "annulled": State(865, 395, "it counts for nothing"),
        "withdrawn": State(672, 620, "no round is left"),
    },
    {
        "no outcome is known": ("scored", "low-evidence"),
        "with a round": ("scored", "low-evidence", "resolved", "annulled"),
    },
    (
        Arrow("nothing", "with a round", "a round"),
        Arrow("scored", "low-evidence", "few votes", bend=-42),
        Arrow("low-evidence", "scored", "votes enough", bend=-42),
        Arrow("no outcome is known", "resolved", "outcome 0 or 1", bend=-24),
        Arrow("resolved", "no outcome is known", "retracted", bend=-14),
        Arrow("no outcome is known", "annulled", "annulled", bend=-14),
        Arrow("annulled", "no outcome is known", "retracted", bend=-24),
        Arrow("resolved", "annulled", "annulled", bend=-44),
        Arrow("annulled", "resolved", "outcome 0 or 1", bend=-44),
        Arrow("with a round", "withdrawn", "its last round ceases to exist", bend=-70),
        Arrow("withdrawn", "with a round", "a round again", bend=-70),
    ),
)

_ALARMS = ("low-evidence", "uninformative", "dependent", "contradicted")

TRUST = Machine(
    "Trust in a feed: its status",
    (1040, 740),
    {
        "warming-up": State(310, 345, "little is known yet"),
        "ok": State(730, 345, "nothing speaks against the numbers"),
        "low-evidence": State(520, 80, "too few votes to learn from"),
        "uninformative": State(140, 660, "reference answers say next to nothing"),
        "dependent": State(520, 660, "experts say the same, or err together"),
        "contradicted": State(900, 660, "the votes, or the outcomes, deny the error rates"),
    },
    {"with a certificate": ("warming-up", "ok")},
    (
        Arrow("warming-up", "ok", "trust.warm_up_questions effective questions", bend=-20),
        Arrow("ok", "warming-up", "fewer than nine tenths of that", bend=-20),
        Arrow("with a certificate", "low-evidence", "fewer than min_experts voters a question", bend=-90),
        Arrow("low-evidence", "with a certificate", "a quarter voter more than that", bend=-90),
        Arrow("with a certificate", "uninformative", "rates sum to more than 0.8, or votes look random", -40, 0.66),
        Arrow("uninformative", "with a certificate", "less than 0.75, and votes tell", bend=-40),
        Arrow("with a certificate", "dependent", "a group is found, or votes are not independent", -70, 0.6),
        Arrow("dependent", "with a certificate", "neither", -70, 0.72),
        Arrow("with a certificate", "contradicted", "outcomes at odds with rates or ranks, or votes with rates", -40),
        Arrow("contradicted", "with a certificate", "they agree again", -40, 0.3),
        *(
            Arrow(one, other, "another alarm that comes before it, or holds in its place", hidden=True)
            for one in _ALARMS
            for other in _ALARMS
            if one != other
        ),
    ),
)

EXPERT = Machine(
    "An expert in a feed",
    (1040, 540),
    {
        "unknown": State(130, 140, "in no round so far", faint=True),
        "present": State(465, 140, "stands in the latest round"),
        "absent": State(860, 140, "its record stays as it is"),
        "excluded": State(662, 400, "counts as absent, and has no weight"),
        "forgotten": State(130, 450, "nothing of it is left; its events are refused", faint=True),
    },
    {"counted": ("present", "absent"), "known": ("present", "absent", "excluded")},
    (
        Arrow("unknown", "present", "a round", bend=-14),
        Arrow("present", "absent", "a round without it: withdrawn, too old, or silent", bend=-26),
        Arrow("absent", "present", "a round with it", bend=-26),
        Arrow("counted", "excluded", "excluded: true", bend=-70),
        Arrow("excluded", "counted", "excluded: false", bend=-70),
        Arrow("unknown", "excluded", "excluded: true", hidden=True),
        Arrow("excluded", "unknown", "excluded: false, and it was in no round", hidden=True),
        Arrow("known", "forgotten", "forget: true", bend=16),
        Arrow("unknown", "forgotten", "forget: true"),
    ),
)

MACHINES = {"question": QUESTION, "published": PUBLISHED, "trust": TRUST, "expert": EXPERT}


def files() -> dict[str, str]:
    """Every machine's picture as an SVG file: path in the repository and content."""
    return {f"docs/generated/state-{name}.svg": picture(machine) for name, machine in MACHINES.items()}


# --- drawing ---


class _Box(NamedTuple):
    x: float
    y: float
    width: float
    height: float

    def edge(self, x: float, y: float) -> tuple[float, float]:
        """Where the line from the middle towards a point leaves the box."""
        dx, dy = x - self.x, y - self.y
        scale = min(self.width / 2 / abs(dx) if dx else math.inf, self.height / 2 / abs(dy) if dy else math.inf)
        return self.x + dx * scale, self.y + dy * scale


def picture(machine: Machine) -> str:
    """The picture of a machine, in the colours of the style sheet, light or dark as its reader likes."""
    width, height = machine.size
    boxes = _boxes(machine)
    groups = sorted(machine.groups, key=lambda name: -boxes[name].width * boxes[name].height)
    body = [_group(name, boxes[name]) for name in groups]
    shown = [arrow for arrow in machine.arrows if not arrow.hidden]
    drawn = [_arrow(arrow, boxes[arrow.source], boxes[arrow.target]) for arrow in shown]
    body += [path for path, _ in drawn]
    body += [_state(name, state) for name, state in machine.states.items()]
    body += [label for _, label in drawn]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="15"><title>{escape(machine.title)}</title>'
        f"<style>{_colours()}</style>\n"
        f'<rect width="{width}" height="{height}" rx="12" class="card"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


def _colours() -> str:
    light, dark = (
        dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6})", part)) for part in style_sheet().split("* {")[0].split("@media")
    )
    rules = (
        ".card{{fill:{--card}}}.box{{fill:{--page};stroke:{--soft}}}.group{{fill:none;stroke:{--muted}}}"
        ".name{{fill:{--ink}}}.about,.of{{fill:{--soft}}}.when{{fill:{--ink};stroke:{--card}}}"
        ".arrow{{fill:none;stroke:{--series-1}}}.head{{fill:{--series-1}}}"
    )
    fixed = (
        ".box{stroke-width:1.4}.group{stroke-width:1.2;stroke-dasharray:6 4}.faint{stroke-dasharray:3 4}"
        ".arrow{stroke-width:1.6}.name{font-weight:650;font-size:17px}"
        ".when{stroke-width:5px;paint-order:stroke;stroke-linejoin:round}"
    )
    return f"{rules.format_map(light)}{fixed}@media(prefers-color-scheme:dark){{{rules.format_map(dark)}}}"


def _boxes(machine: Machine) -> dict[str, _Box]:
    boxes = {name: _Box(state.x, state.y, *_BOX) for name, state in machine.states.items()}
    for name, members in machine.groups.items():
        inside = [boxes[member] for member in members]
        pad = _PAD * (1 + sum(set(other) < set(members) for other in machine.groups.values()))
        left, right = min(b.x - b.width / 2 for b in inside) - pad, max(b.x + b.width / 2 for b in inside) + pad
        top = min(b.y - b.height / 2 for b in inside) - pad - _TITLE * (pad / _PAD - 1) * 0.5 - 6
        bottom = max(b.y + b.height / 2 for b in inside) + pad
        boxes[name] = _Box((left + right) / 2, (top + bottom) / 2, right - left, bottom - top)
    return boxes


def _group(name: str, box: _Box) -> str:
    left, top = box.x - box.width / 2, box.y - box.height / 2
    return (
        f'<rect class="group" x="{left:.0f}" y="{top:.0f}" width="{box.width:.0f}" height="{box.height:.0f}" rx="14"/>'
        f'<text class="of" x="{left + 14:.0f}" y="{top + 20:.0f}">{escape(name)}</text>'
    )


def _state(name: str, state: State) -> str:
    width, height = _BOX
    faint = " faint" if state.faint else ""
    about = textwrap.wrap(state.about, _ABOUT)
    top = state.y - (_LINE * len(about)) / 2
    lines = [f'<text class="name" x="{state.x}" y="{top + 2:.0f}" text-anchor="middle">{escape(name)}</text>']
    for row, line in enumerate(about, 1):
        below = top + _LINE * row + 3
        lines.append(f'<text class="about" x="{state.x}" y="{below:.0f}" text-anchor="middle">{escape(line)}</text>')
    box = f'<rect class="box{faint}" x="{state.x - width / 2:.0f}" y="{state.y - height / 2:.0f}" width="{width}"'
    return f'{box} height="{height}" rx="10"/>' + "".join(lines)


def _arrow(arrow: Arrow, source: _Box, target: _Box) -> tuple[str, str]:
    """Path and head of an arrow, and the text at it."""
    start, end = _ends(source, target)
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = math.hypot(dx, dy) or 1.0
    aside = 2 * arrow.bend / length
    control = (start[0] + end[0]) / 2 - dy * aside, (start[1] + end[1]) / 2 + dx * aside
    start, end = source.edge(*control) if arrow.bend else start, target.edge(*control) if arrow.bend else end
    angle = math.atan2(end[1] - control[1], end[0] - control[0])
    tips = [(end[0] - _HEAD * math.cos(angle + turn), end[1] - _HEAD * math.sin(angle + turn)) for turn in (-0.4, 0.4)]
    head = " ".join(f"{x:.1f},{y:.1f}" for x, y in (end, *tips))
    path = f"M{start[0]:.1f},{start[1]:.1f} Q{control[0]:.1f},{control[1]:.1f} {end[0]:.1f},{end[1]:.1f}"
    return f'<path class="arrow" d="{path}"/><polygon class="head" points="{head}"/>', "".join(
        _label(arrow, start, control, end)
    )


def _ends(source: _Box, target: _Box) -> tuple[tuple[float, float], tuple[float, float]]:
    return source.edge(target.x, target.y), target.edge(source.x, source.y)


def _label(
    arrow: Arrow, start: tuple[float, float], control: tuple[float, float], end: tuple[float, float]
) -> Iterator[str]:
    t = arrow.at
    x, y = ((1 - t) ** 2 * a + 2 * t * (1 - t) * b + t * t * c for a, b, c in zip(start, control, end, strict=True))
    lines = textwrap.wrap(arrow.when, _LABEL)
    width, height = _LETTER * max(map(len, lines)), _LINE * len(lines)
    yield f'<rect class="card" x="{x - width / 2:.0f}" y="{y - height / 2:.0f}" width="{width:.0f}" height="{height}"/>'
    for row, line in enumerate(lines):
        below = y + _LINE * (row - (len(lines) - 1) / 2) + 4
        yield f'<text class="when" x="{x:.0f}" y="{below:.0f}" text-anchor="middle">{escape(line)}</text>'
