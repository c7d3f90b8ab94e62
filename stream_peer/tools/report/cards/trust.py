"""States of trust over time, with the reasons that were published with them."""

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise

from stream_peer.serve.pages.text import escape
from stream_peer.tools.replay.history import TrustChange
from stream_peer.tools.report.cards.parts import TONES, FeedPage, card, count, pill

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
