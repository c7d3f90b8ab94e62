"""Questions with options or thresholds: how well their forecasts did, and what is said of the last ones."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import msgspec

from stream_peer.events.groups import threshold_id, value_of
from stream_peer.events.outputs import MixedGroup, PartForecast
from stream_peer.numerics.arguments import FloatArray
from stream_peer.serve.pages.parts import HALF, MUTED, SERIES_COLOURS, TRUTH, escape
from stream_peer.tools.replay.history import many
from stream_peer.tools.report.cards.parts import UNKNOWN, FeedPage, bar, card, figure, html_legend, html_table, picture
from stream_peer.tools.report.group_record import COMPARED, GroupKind, group_losses
from stream_peer.tools.report.plots import Curve, Plot
from stream_peer.tools.report.skill import skill_score

LAST_GROUPS = 6
"""So many of a feed's groups are shown: those with the latest rounds."""
_OF_CURVES = [("mix", "--series-1", ""), ("mix, raw", "--muted", "dashed"), ("what came", "--truth", "dashed")]
_MOST_OPTIONS = 8
_MOST_TICKS = 5

_SCORES: Mapping[GroupKind, tuple[str, str]] = {
    "options": ("Brier score", "Brier score: Σ (p - y)² over the options, from 0 to 2 (Brier 1950)"),
    "thresholds": (
        "RPS",
        "Ranked probability score (RPS): mean of (F - y)² over the thresholds, 0 to 1 (Epstein 1969)",
    ),
}


def questions_card(page: FeedPage) -> str:
    """Scores of the feed's groups, and the forecasts of the last few; nothing of a feed without groups."""
    shown = [record for record in page.feed.groups.values() if record.boundary is not None]
    if not shown:
        return ""
    shown.sort(key=lambda record: (record.boundary or "", record.group), reverse=True)
    text = (
        "The mix is made coherent: options sum to 100%, the probability of at most a threshold never falls. Raw: as"
        " each part has it by itself. Scores are of scored forecasts; smaller is better."
    )
    tables = "".join(_scores(page, kind) for kind in _SCORES)
    last = shown[:LAST_GROUPS]
    keys = [("option that came true", "--series-1", "area")] if any(record.options for record in last) else []
    keys += _OF_CURVES if any(record.cdf for record in last) else []
    forecasts = "".join(_forecasts(page, record, f"{page.number}-{at}") for at, record in enumerate(last))
    title = f"The last {many(len(last), 'question')} of {len(shown):,}"
    body = (
        f'<div class="two scores">{tables}</div><h4 class="last">{title}</h4>{html_legend(keys)}'
        f'<div class="two">{forecasts}</div>'
    )
    return card("Questions with options or thresholds", text, body, wide=True)


def _scores(page: FeedPage, kind: GroupKind) -> str:
    """Mean losses of the mix and of what it is compared with."""
    losses = group_losses(page.feed, kind)
    if not len(losses["mean"]):
        return ""
    name, about = _SCORES[kind]
    table = html_table(
        about,
        ("forecast", name, "skill against the mean"),
        (_score(name, losses[name], losses["mean"]) for name in COMPARED),
    )
    return f'<div><p class="note">{escape(about)}; {many(len(losses["mean"]), "question")}.</p>{table}</div>'


def _score(name: str, losses: FloatArray, of_mean: FloatArray) -> tuple[str, ...]:
    skill = skill_score(losses, of_mean)
    gained = UNKNOWN if skill.skill is None else f"{round(skill.skill, 3) + 0.0:+.1%}"
    if skill.deviation:
        gained += f" ± {skill.deviation:.1%}"
    return name, figure(skill.loss, 4), gained


def _forecasts(page: FeedPage, record: MixedGroup, salt: str) -> str:
    """What is said of a group: options as bars, thresholds as a curve."""
    options = [] if record.options is msgspec.UNSET else record.options
    cdf = [] if record.cdf is msgspec.UNSET else record.cdf
    kinds = [list(alike) for _, alike in groupby(cdf, key=lambda part: value_of(part.name).kind)]
    body = _bars(options) if options else ""
    body += "".join(_curve(page, record, thresholds, f"{salt}-{at}") for at, thresholds in enumerate(kinds))
    state = "at its close" if record.final else "so far"
    note = f'<p class="note">{escape((record.boundary or "")[:10])}, {state}{escape(_outcome(options, cdf))}</p>'
    return f"<div><h4>{escape(record.group)}</h4>{note}{body}</div>"


def _outcome(options: Sequence[PartForecast], cdf: Sequence[PartForecast]) -> str:
    """What came, as far as it is known."""
    came = [part.name for part in options if part.outcome == 1]
    if came:
        return f"; outcome: {', '.join(came)}"
    above = [part.name for part in cdf if part.outcome == 0]
    below = [part.name for part in cdf if part.outcome == 1]
    if above and below:
        return f"; outcome: above {above[-1]}, at most {below[0]}"
    return f"; outcome: above {above[-1]}" if above else f"; outcome: at most {below[0]}" if below else ""


def _bars(options: Sequence[PartForecast]) -> str:
    """The likeliest options and the one that came true; the others together."""
    ranked = sorted(options, key=lambda part: (part.outcome != 1, -(part.mix or 0.0)))
    shown = sorted(ranked[:_MOST_OPTIONS], key=lambda part: -(part.mix or 0.0))
    rows = [bar(part.name, part.mix or 0.0, part.mix or 0.0, ours=part.outcome == 1) for part in shown]
    others = ranked[_MOST_OPTIONS:]
    if others:
        rest = min(sum(part.mix or 0.0 for part in others), 1.0)
        rows.append(bar(many(len(others), "other"), rest, rest, ours=False))
    return f'<div class="bars options">{"".join(rows)}</div>'


def _curve(page: FeedPage, record: MixedGroup, cdf: Sequence[PartForecast], salt: str) -> str:
    """The probability of at most each threshold; a single one is a bar."""
    known = [part for part in cdf if part.mix is not None]
    if len(known) < 2:
        rows = (bar(f"at most {part.name}", part.mix or 0.0, part.mix or 0.0, ours=part.outcome == 1) for part in known)
        return f'<div class="bars options">{"".join(rows)}</div>'
    x = [value_of(part.name).size for part in known]
    coherent = [part.mix or 0.0 for part in known]
    curves = [
        Curve(x, list(_raw(page, record, known)), MUTED, 1.6, "--"),
        Curve(x, coherent, SERIES_COLOURS[0], 2.4),
    ]
    if all(part.outcome in (0, 1) for part in known):
        curves.append(Curve(x, [float(part.outcome == 1) for part in known], TRUTH, 1.6, "--"))
    every = -(-len(known) // _MOST_TICKS)
    ticks = [(size, part.name) for size, part in [*zip(x, known, strict=True)][::every]]
    said = ", ".join(f"{part.name} {value:.1%}" for part, value in zip(known, coherent, strict=True))
    alt = f"Probability of at most each threshold of {record.group}: {said}."
    plot = Plot(curves, "at most", "probability", percent=True, alt=alt, ticks=ticks, top=1.02)
    return picture(plot, HALF, f"{salt}-cdf")


def _raw(page: FeedPage, record: MixedGroup, known: Sequence[PartForecast]) -> Iterator[float]:
    """The mixed forecasts of the parts themselves."""
    for part in known:
        said = page.feed.forecasts.get(threshold_id(record.group, value_of(part.name)))
        yield float("nan") if said is None or said.mix is None else said.mix
