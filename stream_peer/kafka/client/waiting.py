"""Tells a person that a command waits for a broker: a minute of silence looks like a fault.

The listener is a context variable, so that the functions between a command and its client need no argument for it.
Nothing here imports a client: ``--help`` stays fast.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from stream_peer.settings.process import Settings

WaitListener = Callable[[Settings, str], None]
"""Gets the settings of the brokers that are awaited, and the reason."""

_listener: ContextVar[WaitListener | None] = ContextVar("wait_listener", default=None)


@contextmanager
def tell_of_waiting(listener: WaitListener) -> Iterator[None]:
    """Call the listener at every wait for a broker inside the block, also in event loops that run there."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def is_watched() -> bool:
    """Whether a person watches the command, and would rather read of a wrong address at once."""
    return _listener.get() is not None


def say_waiting(settings: Settings, reason: str) -> None:
    """Tell the listener, if there is one, that no broker answers yet, and why."""
    listener = _listener.get()
    if listener is not None:
        listener(settings, reason)
