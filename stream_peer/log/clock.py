"""Time by the records of a log: a partition's clock, and deadlines. Nothing here reads the time of day."""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from stream_peer.events.times import NEVER, YEAR_1900, Milliseconds


class Clock:
    """The largest moment that a partition's records credibly stated; 1900 before the first.

    A moment is credible up to ``skew`` ahead of the time of the record that states it: one event from 2099 moves
    nothing.
    """

    __slots__ = ("now", "skew")

    def __init__(self, skew: Milliseconds, now: Milliseconds = YEAR_1900) -> None:
        self.skew = skew
        self.now = now

    def hear(self, stated: Milliseconds, record_time: Milliseconds) -> bool:
        """Advance to ``stated`` if it is credible; False if it is not."""
        credible = stated <= record_time + self.skew
        if credible and stated > self.now:
            self.now = stated
        return credible


_FEW = 64  # replaced moments that are not worth a search


class Agenda:
    """Moments at which questions become due. One moment a question: a new one replaces the old.

    Due questions come in the order of (moment, question), so that it depends on nothing but the moments.
    """

    __slots__ = ("_heap", "_moments", "next")

    def __init__(self) -> None:
        self.next: Milliseconds = NEVER
        self._heap: list[tuple[Milliseconds, str]] = []
        self._moments: dict[str, Milliseconds] = {}

    def __len__(self) -> int:
        """How many questions wait."""
        return len(self._moments)

    def put(self, question_id: str, moment: Milliseconds | None) -> None:
        """Note when a question becomes due; None: never."""
        if moment is None:
            if self._moments.pop(question_id, None) is not None:
                self._find_next()
        elif (before := self._moments.get(question_id)) != moment:
            self._moments[question_id] = moment
            heappush(self._heap, (moment, question_id))
            if len(self._heap) > 2 * len(self._moments) + _FEW:
                self._drop_replaced()
            if moment < self.next:
                self.next = moment
            elif before == self.next:
                self._find_next()

    def due(self, now: Milliseconds) -> Iterator[str]:
        """Questions due by ``now``, each taken off. One that is put back for ``now`` or earlier comes again."""
        while self.next <= now:
            _, question_id = heappop(self._heap)
            del self._moments[question_id]
            self._find_next()
            yield question_id

    def clear(self) -> None:
        """Remove all deadlines."""
        self._heap.clear()
        self._moments.clear()
        self.next = NEVER

    def _drop_replaced(self) -> None:
        """Drop all replaced moments: those far ahead would stay in the heap for years."""
        self._heap = [(moment, question_id) for question_id, moment in self._moments.items()]
        heapify(self._heap)

    def _find_next(self) -> None:
        """Drop replaced moments from the front, and set ``next``."""
        heap = self._heap
        while heap and self._moments.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
        self.next = heap[0][0] if heap else NEVER
