"""One self-contained page about what the output topics said."""

from collections.abc import Mapping, Sequence
from importlib import resources

from stream_peer import __version__
from stream_peer.serve.pages.parts import document, escape
from stream_peer.settings.feed.document import FeedSettingsBook
from stream_peer.tools.replay.history import DeadLetter, ReplayHistory
from stream_peer.tools.report.cards.curves import (
    calibration_card,
    certificate_card,
    error_rate_card,
    loss_card,
    weights_card,
)
from stream_peer.tools.report.cards.experts import experts_card, why_card
from stream_peer.tools.report.cards.overview import (
    figures,
    heading_card,
    mixers_card,
    settings_card,
    shadows_card,
    verdict_card,
)
from stream_peer.tools.report.cards.parts import NOTHING_MORE, FeedExtras, FeedPage
from stream_peer.tools.report.cards.questions import questions_card
from stream_peer.tools.report.cards.trust import dependence_card, drift_card, groups_card, trust_card

SHOWN_DEAD_LETTERS = 50


def render_report(
    history: ReplayHistory,
    *,
    title: str = "Forecaster weights",
    settings: FeedSettingsBook | None = None,
    extras: Mapping[str, FeedExtras] | None = None,
) -> str:
    """The report as HTML.

    Parameters
    ----------
    history : History
        What the output topics said. Feeds without weights are left out.
    title : str
        Heading of the page; the name of a single feed is added.
    settings : FeedSettingsBook, optional
        The settings of all feeds, where they are known.
    extras : mapping of feeds to FeedExtras, optional
        What only a replay knows of a feed.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    pages = [
        FeedPage(feed, feed.weights, number, settings and settings.of(name), (extras or {}).get(name, NOTHING_MORE))
        for number, (name, feed) in enumerate(sorted(history.feeds.items()))
        if feed.weights is not None
    ]
    parts = [_contents(pages), *map(_feed, pages)]
    if not pages:
        parts = ['<section class="card"><p class="empty">No weights were published.</p></section>']
    script = resources.files("stream_peer.tools.report").joinpath("report.js").read_text(encoding="utf-8")
    if len(pages) == 1:
        title += f": {pages[0].weights.feed}"
    return document(title, "\n".join([*parts, _dead_letters(history.dead_letters), _footer(history)]), script)


def _contents(pages: Sequence[FeedPage]) -> str:
    """Links to the feeds, if there are several."""
    if len(pages) < 2:
        return ""
    links = "".join(f'<li><a href="#feed-{page.number}">{escape(page.weights.feed)}</a></li>' for page in pages)
    return f'<nav aria-label="Feeds"><ul>{links}</ul></nav>'


def _feed(page: FeedPage) -> str:
    cards = [
        heading_card(page),
        figures(page),
        verdict_card(page),
        trust_card(page),
        drift_card(page),
        weights_card(page),
        '<section class="two">',
        loss_card(page),
        error_rate_card(page),
        certificate_card(page),
        mixers_card(page),
        "</section>",
        calibration_card(page),
        questions_card(page),
        shadows_card(page),
        dependence_card(page),
        groups_card(page),
        why_card(page),
        experts_card(page),
        settings_card(page),
    ]
    return '<article class="feed">' + "\n".join(card for card in cards if card) + "</article>"


def _dead_letters(letters: Sequence[DeadLetter]) -> str:
    if not letters:
        return ""
    shown = "".join(
        f"<li><b>{escape(letter.reason)}</b> {escape(letter.message)}"
        f"<code>{escape(letter.payload.decode('utf-8', 'replace'))}</code></li>"
        for letter in letters[:SHOWN_DEAD_LETTERS]
    )
    more = len(letters) - SHOWN_DEAD_LETTERS
    rest = f'<p class="note">{more:,} more are in the topic dead-letters.</p>' if more > 0 else ""
    return (
        f'<section class="card"><h2>Dead letters</h2><p class="note">{len(letters):,} messages could not be used. They '
        f'were set aside; the next message was processed as if they had not been there.</p><ul class="letters">{shown}'
        f"</ul>{rest}</section>"
    )


def _footer(history: ReplayHistory) -> str:
    newest = [feed.weights for feed in history.feeds.values() if feed.weights is not None]
    states = "; ".join(
        f"{escape(w.feed)}: settings <code>{escape(w.settings)}</code>, revision {w.revision:,}" for w in newest
    )
    counts = ", ".join(f"{name} {count:,}" for name, count in sorted(history.records.items())) or "none"
    return f"<footer><p>{states}</p><p>Records read: {escape(counts)}. stream_peer {escape(__version__)}</p></footer>"
