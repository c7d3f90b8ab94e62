"""A hash of the settings that all workers of a deployment must share, so that a difference shows."""

import hashlib
import json

from stream_peer.log.draws import fingerprint
from stream_peer.log.producers import Producers
from stream_peer.settings.process.model import Settings
from stream_peer.settings.process.shown import shown_settings

AGREED = (
    "prefix",
    "id",
    "broker",
    "store",
    "start",
    "on_recreated",
    "partitions.forecast_events",
    "partitions.control_events",
    "partitions.feed_log",
    "partitions.dead_letters",
)
"""Settings that decide what a worker makes of its input, or where it puts it. Secret, signing key, producers do too."""


def agreement_hash(
    settings: Settings, secret: bytes, signing_key: bytes = b"", producers: Producers | None = None
) -> str:
    """Names the settings that all workers must share, secrets by their fingerprints, the producers by their hash.

    Examples
    --------
    >>> alike = agreement_hash(Settings(), b"a"), agreement_hash(Settings(instance="other", session=9.0), b"a")
    >>> len(set(alike)), agreement_hash(Settings(id="other"), b"a") in alike, agreement_hash(Settings(), b"b") in alike
    (1, False, False)
    """
    shown = dict(shown_settings(settings))
    agreed = [fingerprint(secret), fingerprint(signing_key), *((path, shown[path]) for path in AGREED)]
    if producers is not None:
        agreed.append(("producers_file", producers.hash))
    return hashlib.blake2b(json.dumps(agreed).encode(), digest_size=4).hexdigest()
