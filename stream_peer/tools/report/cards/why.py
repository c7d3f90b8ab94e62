"""Why the leading experts have the weights that they have, as ``stream-peer explain`` tells it."""

from stream_peer.serve.explanation import CauseOfMove, WeightExplanation
from stream_peer.serve.pages.parts import escape
from stream_peer.tools.explain.weight_words import BEYOND, KINDS, decimals_of, goes_beyond, percent, points
from stream_peer.tools.report.cards.parts import FeedPage, card, html_table, short


def why_card(page: FeedPage) -> str:
    """The explanations of the leaders, each with what every cause did."""
    if not page.explanations:
        return ""
    text = (
        "Causes of the weights of the leading experts, from the first listing of each to the end. The command"
        " stream-peer explain shows them for any expert, between any two moments, question by question."
    )
    shown = "".join(_shown(explanation) for explanation in page.explanations)
    return card("Causes of the weights", text, f'<div class="explanations">{shown}</div>', wide=True)


def _shown(explanation: WeightExplanation) -> str:
    decimals = decimals_of(explanation)
    first, *rest = explanation.sentences
    said = "".join(f'<p class="note">{escape(sentence)}</p>' for sentence in rest)
    caption = f"What moved {explanation.expert}'s {KINDS[explanation.weight]}"
    rows = [_row(cause, decimals) for cause in explanation.causes]
    ends = " to ".join(percent(stand.weight, decimals) for stand in (explanation.since, explanation.until))
    rows.append(("in all", points(explanation.difference, decimals), f"from {ends}"))
    note = f'<p class="note">{BEYOND}</p>' if goes_beyond(explanation) else ""
    table = html_table(caption, ("cause", "points", "what it is"), rows, kind="words")
    return (
        f"<section><h4>{escape(short(explanation.expert))}</h4><p>{escape(first)}</p>{said}"
        f"<details><summary>By cause</summary>{table}"
        f"{note}</details></section>"
    )


def _row(cause: CauseOfMove, decimals: int) -> tuple[str, ...]:
    return escape(cause.name), points(cause.change, decimals), escape(cause.meaning)
