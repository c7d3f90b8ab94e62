"""Waiting for a condition, with a deadline and a sentence that says what never came."""

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")


def wait_until(
    condition: Callable[[], Value | None], deadline: float, message: str | Callable[[], str], *, every: float = 0.05
) -> Value:
    """Poll until ``condition`` returns something true, and return that.

    Parameters
    ----------
    condition : callable
        Its errors are not caught: a wait is no place to hide them.
    deadline : float
        Seconds.
    message : str or callable
        What never came; called at the deadline if it has to look first.

    Raises
    ------
    AssertionError
        At the deadline, with the message.
    """
    end = time.monotonic() + deadline
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= end:
            told = message if isinstance(message, str) else message()
            msg = f"{told} (waited {deadline:g} s)"
            raise AssertionError(msg)
        time.sleep(every)
