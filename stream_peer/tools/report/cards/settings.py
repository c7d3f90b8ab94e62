"""The settings of a feed that differ from the default."""

import json
from collections.abc import Iterator

from stream_peer.serve.pages.text import escape
from stream_peer.settings.feed.model import FeedSettings
from stream_peer.settings.process.shown import shown_feed_settings
from stream_peer.tools.report.cards.parts import FeedPage, card, html_table


def settings_card(page: FeedPage) -> str:
    """Name, value and default of each, and the hash that all outputs bear."""
    if page.settings is None:
        return ""
    rows = [(f"<code>{escape(name)}</code>", *map(_shown, values)) for name, *values in changed(page.settings)]
    text = f"Settings that differ from the default. Every output has the hash {page.weights.settings} of all settings."
    if not rows:
        return card("Settings", f"{text} Here all have the default.", "", wide=True)
    listed = html_table("Settings that differ from the default", ("setting", "here", "default"), rows, kind="left")
    return card("Settings", text, listed, wide=True)


def changed(settings: FeedSettings) -> Iterator[tuple[str, object, object]]:
    """Path, value and default of each setting that differs from it."""
    built_in = dict(shown_feed_settings(FeedSettings()))
    for name, value in shown_feed_settings(settings):
        if value != built_in.get(name):
            yield name, value, built_in.get(name)


def _shown(value: object) -> str:
    return f"<code>{escape(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))}</code>"
