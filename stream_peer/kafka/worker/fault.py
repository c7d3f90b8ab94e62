"""A process that dies at a named place, for tests of recovery: ``STREAM_PEER_FAULT=PLACE:N``."""

import os
import signal
from collections.abc import Callable, Mapping

import click

VARIABLE = "STREAM_PEER_FAULT"


def _pass(_place: str) -> None:
    """Go on."""


def fault_from(environment: Mapping[str, str]) -> Callable[[str], None]:
    """What kills this process (SIGKILL) when it comes to ``PLACE`` for the N-th time; nothing without the variable.

    Raises
    ------
    click.UsageError
        If the variable is set to something else.
    """
    text = environment.get(VARIABLE, "")
    if not text:
        return _pass
    place, _, number = text.partition(":")
    if not place or not (number or "1").isdigit():
        msg = f"{VARIABLE} is {text!r}, not PLACE or PLACE:N"
        raise click.UsageError(msg)
    left = int(number or "1")

    def arrive(at: str) -> None:
        nonlocal left
        left -= at == place
        if left <= 0 and at == place:
            os.kill(os.getpid(), signal.SIGKILL)

    return arrive
