"""How the shadows did: variants of the mixers that run beside the live ones and are not followed."""

import msgspec

from stream_peer.events.outputs import ShadowScores
from stream_peer.serve.pages.parts import escape
from stream_peer.tools.report.cards.parts import FeedPage, card, figure, html_table

_HEADS = ("shadow", "Brier score", "of the live mix", "log score", "of the live mix", "summed regret", "resolved")


def shadows_card(page: FeedPage) -> str:
    """Each shadow's scores beside those of the live mixers on the same questions."""
    live = page.weights.shadows
    shadows = [*([] if live is msgspec.UNSET else live), *page.shadows]
    if not shadows:
        return ""
    text = (
        "Forecasts under other settings on the same questions, before their outcomes. Scores are of stretched "
        "mixes; smaller is better. Regret below 0: the shadow lost less than the live mix."
    )
    return card("Shadows", text, html_table("Shadows beside the live mix", _HEADS, map(_row, shadows)), wide=True)


def _row(shadow: ShadowScores) -> tuple[str, ...]:
    scores = (shadow.brier, shadow.live_brier, shadow.log_score, shadow.live_log_score)
    regret = f"{shadow.regret:+.2f}" if round(shadow.regret, 2) else "0.00"
    return escape(shadow.name), *(figure(score, 4) for score in scores), regret, figure(shadow.questions, 0)
