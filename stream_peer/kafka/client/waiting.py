"""Who is told that we wait for a broker: a minute of silence looks like a fault.

Calls to a broker pass through many functions that have no use for this, so it is set once for all that happens within.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from stream_peer.settings.process import Settings

Told = Callable[[Settings, str], None]
"""Told whose brokers are awaited, and why."""

_told: ContextVar[Told | None] = ContextVar("told", default=None)


@contextmanager
def tell_of_waiting(told: Told) -> Iterator[None]:
    """Tell it of every wait for a broker within, also in the loops that are run there."""
    token = _told.set(told)
    try:
        yield
    finally:
        _told.reset(token)


def is_watched() -> bool:
    """Whether somebody is to be told: a person who looks on, and rather reads of a slip at once."""
    return _told.get() is not None


def say_waiting(settings: Settings, reason: str) -> None:
    """Say that there is no broker yet, and why, if anybody is to be told."""
    told = _told.get()
    if told is not None:
        told(settings, reason)
