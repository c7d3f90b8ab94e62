"""What is said while the stack starts and is checked: a line for each step, with how long it took."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

_WIDTH = 84


def say(text: str = "") -> None:
    """A line of its own, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def came(text: str, seconds: float) -> None:
    """A line of what came after so many seconds, below a step."""
    say(f"  {text}".ljust(_WIDTH) + f"{seconds:6.1f} s")


@contextmanager
def step(text: str) -> Iterator[None]:
    """Say what is being done, and how long it took when it is done."""
    begun = time.monotonic()
    sys.stdout.write((text if text.endswith("?") else f"{text} …").ljust(_WIDTH))
    sys.stdout.flush()
    done = False
    try:
        yield
        done = True
    finally:
        say(f"{time.monotonic() - begun:6.1f} s" if done else "   not done")
