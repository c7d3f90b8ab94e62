"""Why the leading experts have the weights that they have, as ``stream-peer explain`` tells it."""

from stream_peer.serve.explanation import CauseOfMove, WeightExplanation
from stream_peer.serve.pages.text import escape
from stream_peer.tools.explain.weight_story.sentences import BEYOND, KINDS, goes_beyond, story_decimals
from stream_peer.tools.explain.weight_story.words import percent, points
from stream_peer.tools.report.cards.parts import FeedPage, card, html_table, short


def why_card(page: FeedPage) -> str:
    """The stories of the leaders, each with what every cause did."""
    if not page.stories:
        return ""
    text = (
        "Causes of the weights of the leading experts, from the first listing of each to the end. The command"
        " stream-peer explain shows them for any expert, between any two moments, question by question."
    )
    told = "".join(_told(story) for story in page.stories)
    return card("Causes of the weights", text, f'<div class="stories">{told}</div>', wide=True)


def _told(story: WeightExplanation) -> str:
    decimals = story_decimals(story)
    first, *rest = story.sentences
    said = "".join(f'<p class="note">{escape(sentence)}</p>' for sentence in rest)
    caption = f"What moved {story.expert}'s {KINDS[story.weight]}"
    rows = [_row(cause, decimals) for cause in story.causes]
    ends = " to ".join(percent(stand.weight, decimals) for stand in (story.since, story.until))
    rows.append(("in all", points(story.difference, decimals), f"from {ends}"))
    note = f'<p class="note">{BEYOND}</p>' if goes_beyond(story) else ""
    causes = html_table(caption, ("cause", "points", "what it is"), rows, kind="words")
    return (
        f"<section><h4>{escape(short(story.expert))}</h4><p>{escape(first)}</p>{said}"
        f"<details><summary>By cause</summary>{causes}"
        f"{note}</details></section>"
    )


def _row(cause: CauseOfMove, decimals: int) -> tuple[str, ...]:
    return escape(cause.name), points(cause.change, decimals), escape(cause.meaning)
