"""What the guards found: experts who say the same, and what drifts."""

from collections.abc import Iterator

import msgspec

from stream_peer.events.outputs import DriftedExpert, DriftedRate, ExpertGroup
from stream_peer.serve.pages.text import escape
from stream_peer.tools.report.cards.parts import FeedPage, card, html_table, short

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
    guarded = page.settings is not None and page.settings.guard == "on"
    text = (
        "Experts that agree far more than independent ones could, in the latest comparison of the last 512 questions. "
        "Agreement is the mean product of votes of +1 and -1, expected is its value for independent experts. "
    )
    text += "Each group votes once and shares one weight." if guarded else "With guard: on each would vote once."
    return card("Groups", text, html_table("Groups of experts", _GROUPS, map(_group, groups), kind="left"), wide=True)


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
