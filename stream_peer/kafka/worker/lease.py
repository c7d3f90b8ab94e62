"""The right of a group's member to write: it holds for half a session after a heartbeat that the coordinator answered.

A worker that was frozen, or cut off from its coordinator, may go on when its partitions have another owner. Outputs are
not fenced: what it wrote then would be the last record of its key, and older than what the owner has written. So every
request of the producer is held against the lease at the moment when it is sent.
"""

import asyncio
from collections.abc import Callable
from enum import Enum

from stream_peer.errors import LeaseEndedError

NO_TERM = -1
EXPELLED = "the group gave the partitions to other workers, as this one was silent too long"
_LOOK_SECONDS = 0.1


class Right(Enum):
    """Whether records of a term may be sent now."""

    HOLDS = "holds"
    WAITS = "waits"
    """No heartbeat was answered lately. The next answer may renew the lease, or end the term."""
    OVER = "over"
    """The member is not in this generation of its group any more, and others own its partitions."""


class Lease:
    """Of one member of a group.

    Parameters
    ----------
    session : float
        Seconds after which the coordinator gives the partitions of a silent member to others.
    rebalance_timeout : float
        Seconds after which it does so with a member that does not join again.
    clock : callable
        Seconds that go on steadily, also while the process is frozen.
    """

    def __init__(self, session: float, rebalance_timeout: float, clock: Callable[[], float]) -> None:
        # Half: a request that is on its way when the lease ends has the other half to arrive.
        self._session, self._rebalance = session / 2, rebalance_timeout / 2
        self._clock = clock
        self._term: Callable[[], int] = lambda: NO_TERM
        self._settled = 0.0
        self._renewed = NO_TERM, 0.0

    def follow(self, term: Callable[[], int]) -> None:
        """Learn from ``term`` in which generation the member is; ``NO_TERM``: in none."""
        self._term = term

    @property
    def term(self) -> int:
        """The present generation. Records that are handed to the producer belong to it."""
        return self._term()

    def answered(self, sent: float, term: int, *, rebalances: bool = False) -> None:
        """Take note that a heartbeat was answered.

        Parameters
        ----------
        sent : float
            When it was sent, by the clock. Not when its answer came: the process may have been frozen in between.
        term : int
            The generation that it named.
        rebalances : bool
            Whether the answer calls for a join. Then the partitions are kept no longer than ``rebalance_timeout``,
            counted from a moment that this member does not know, but that came after its last other heartbeat.
        """
        if not rebalances:
            self._settled = sent
        until = sent + self._session
        self._renewed = term, min(until, self._settled + self._rebalance) if rebalances else until

    def joins(self) -> None:
        """Take note that the member asks to join: once it is answered, others may own what it owned."""
        self._renewed = NO_TERM, 0.0

    def joined(self, sent: float) -> None:
        """Take note that the member is in a new generation. ``sent``: when it asked for its partitions, by the clock.

        While a group rebalances, that question is not answered. So the next rebalance began later, and if the first
        heartbeat already calls for a join, ``rebalance_timeout`` counts from here.
        """
        self._settled = sent

    def right(self, term: int) -> Right:
        """Whether what was handed over in ``term`` may be sent now."""
        if term == NO_TERM or term != self._term():
            return Right.OVER
        renewed, until = self._renewed
        return Right.HOLDS if renewed == term and self._clock() < until else Right.WAITS

    async def hold(self) -> None:
        """Wait until the lease holds: until then nobody else has owned the partitions of the present term.

        Raises
        ------
        LeaseEndedError
            If the term is over.
        """
        term = self.term
        while (right := self.right(term)) is Right.WAITS:  # noqa: ASYNC110 - nothing tells of its end
            await asyncio.sleep(_LOOK_SECONDS)
        if right is Right.OVER:
            raise LeaseEndedError(EXPELLED)
