"""Settings as people write them, for ``settings show``."""

from collections.abc import Iterator
from typing import Any

import msgspec

from stream_peer.events.times import Milliseconds
from stream_peer.settings.feed.model import DURATIONS, FeedSettings
from stream_peer.settings.process.model import Settings, leaves
from stream_peer.settings.process.secret import Secret

_UNITS = (("y", 31_536_000_000), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1))


def shown_duration(duration: Milliseconds) -> str:
    """A duration in the largest unit that it is a multiple of.

    Examples
    --------
    >>> shown_duration(604_800_000), shown_duration(1500), shown_duration(0)
    ('7d', '1500ms', '0s')
    """
    if not duration:
        return "0s"
    unit, size = next((unit, size) for unit, size in _UNITS if duration % size == 0)
    return f"{duration // size}{unit}"


def shown_settings(settings: Settings) -> Iterator[tuple[str, object]]:
    """Every process setting by dotted path, in the form it would have in a file; secrets as ``***``."""
    for path, leaf in leaves().items():
        value: Any = settings
        for name in path.split("."):
            value = getattr(value, name)
        if leaf.reads == "duration":
            yield path, shown_duration(round(value * 1000))
        else:
            yield path, str(value) if isinstance(value, Secret) or (leaf.reads == "path" and value) else value


def shown_feed_settings(settings: FeedSettings) -> Iterator[tuple[str, object]]:
    """Every setting of a feed by its path, in the form it would have in a file."""
    for name, value in msgspec.structs.asdict(settings).items():
        if isinstance(value, msgspec.Struct):
            yield from ((f"{name}.{inner}", v) for inner, v in msgspec.structs.asdict(value).items())
        elif name == "shadows":
            yield name, msgspec.to_builtins(value)
        else:
            yield name, shown_duration(value) if name in DURATIONS and value is not None else value
