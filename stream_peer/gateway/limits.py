"""Limits of the gateway: how much a producer may send in a second, and how much of all posts is in memory."""

from collections.abc import Callable


class Rate:
    """What a producer may send: a second's worth at once, and as much a second on average.

    The size of a post is known once it is read. So a post is admitted while nothing is overdrawn, and what it takes
    may overdraw: then the next one waits.

    Parameters
    ----------
    a_second : float
    clock : callable
        Seconds on a clock that does not step back.
    """

    def __init__(self, a_second: float, clock: Callable[[], float]) -> None:
        self._a_second = self._left = a_second
        self._clock = clock
        self._seen = clock()

    def wait(self) -> float:
        """Seconds until a post is admitted; 0: now."""
        now = self._clock()
        self._left = min(self._a_second, self._left + (now - self._seen) * self._a_second)
        self._seen = now
        return max(0.0, -self._left / self._a_second)

    def take(self, amount: float) -> None:
        """Note what a post had."""
        self._left -= amount


class Room:
    """Bytes of posts that are read or wait for their acknowledgement, of which there are never more than ``most``."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.taken = 0

    def take(self, size: int) -> bool:
        """Take so much, if it is there."""
        if self.taken + size > self._most:
            return False
        self.taken += size
        return True

    def give_back(self, size: int) -> None:
        """Free so much."""
        self.taken -= size
