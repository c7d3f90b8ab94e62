"""``stream-peer demo --send-only``: the demo's events for a deployment that runs already."""

import time
from collections.abc import Mapping
from typing import Any

import click

from stream_peer.errors import SettingFault, SettingsError
from stream_peer.kafka.client.control_events import newest_document
from stream_peer.serve.feed_records import read_newest
from stream_peer.settings.feed.document import load_document
from stream_peer.settings.process import Settings
from stream_peer.tools.demo.feed import FEED, SETTINGS, closing_tick, paced, read_events
from stream_peer.tools.demo.kafka import DemoKafka, connected

_PAUSE_SECONDS = 0.1
_LINES = 10


def send(settings: Settings, pace: float) -> None:
    """Send the demo's events within ``pace`` seconds, and say how far it is; nothing if they were sent before.

    Raises
    ------
    SettingsError
        If the feed has not the settings applied that its events need.
    BrokerUnavailableError, NotAuthorisedError, TopicsError
        If the deployment's topics cannot be used.
    """
    applied = newest_document(settings)
    _check_rounds({} if applied is None else applied.document)
    if FEED in read_newest(settings):
        click.echo(f"The feed {FEED} has weights already: its events were sent before, and are not sent again.")
        return
    with connected(settings) as kafka:
        _send(kafka, pace)


def _check_rounds(document: Mapping[str, Any]) -> None:
    """Refuse settings by which all events of the feed fall into a round or two, from which nothing could be learned."""
    wanted, given = load_document(SETTINGS).of(FEED).round_every, load_document(document).of(FEED).round_every
    if given != wanted:
        text = SETTINGS["feeds"][FEED]["round_every"]
        message = f"the demo's events need {text}: put it into the settings file, then run `stream-peer settings apply`"
        raise SettingsError([SettingFault(f"feeds.{FEED}.round_every", "applied last", message)])


def _send(kafka: DemoKafka, pace: float) -> None:
    events = read_events()
    sent, said = 0, 0
    click.echo(f"Sending {len(events):,} events of the feed {FEED} within {pace:g} s.")
    for due in paced(events, pace, time.monotonic):
        kafka.send(due)
        sent += len(due)
        if sent * _LINES // len(events) > said:
            said = sent * _LINES // len(events)
            click.echo(f"{sent:,} of {len(events):,} events are sent.")
        time.sleep(_PAUSE_SECONDS)
    signed = kafka.tell_time(closing_tick(events))
    closing = "" if signed else " Without signing_key_file no time is told: the workers close the questions themselves."
    click.echo(f"All are sent.{closing} Watch: stream-peer tail {FEED}")
