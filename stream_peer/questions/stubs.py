"""What is left of questions whose history has gone, for as long as an outcome of them can matter.

There may be millions, so each is kept as the bytes that it is stored as. A stub ends at an exact moment, and whoever
asks for it after that is told that there is none; its memory is freed within the hour after.
"""

from collections.abc import Callable, Iterator
from heapq import heappop, heappush

from stream_peer.events.times import NEVER, Milliseconds
from stream_peer.questions.state import Stub, decode_stub, encode_stub
from stream_peer.settings.feed.model import FeedSettings

_HOUR = 3_600_000
_FEW = 1_000  # out of date notes that are not worth looking for

SettingsOf = Callable[[str], FeedSettings]


class Stubs:
    """Stubs by question.

    A stub without an outcome stays ``ledger_for`` after its last news, one with an outcome ``retract_for``: as long
    as the ledger may hold the question. Its last news: when the history went, or an outcome was heard.

    Attributes
    ----------
    since : int
        When the time of stubs begins that were stored without the moment of their last news.
    """

    __slots__ = ("_by_hour", "_hours", "_notes", "_settings_of", "_stored", "since")

    def __init__(self, settings_of: SettingsOf) -> None:
        self.since: Milliseconds = 0
        self._settings_of = settings_of
        self._stored: dict[str, bytes] = {}
        self._by_hour: dict[int, list[str]] = {}
        self._hours: list[int] = []
        self._notes = 0

    def __len__(self) -> int:
        return len(self._stored)

    def __iter__(self) -> Iterator[str]:
        """Questions that have one, ended or not."""
        return iter(self._stored)

    def __contains__(self, question_id: str) -> bool:
        """Whether there is one, ended or not."""
        return question_id in self._stored

    @property
    def next_end(self) -> Milliseconds:
        """From when on memory can be freed."""
        return (self._hours[0] + 1) * _HOUR if self._hours else NEVER

    def get(self, question_id: str) -> Stub | None:
        """The stub of a question, ended or not."""
        stored = self._stored.get(question_id)
        return None if stored is None else decode_stub(question_id, stored)

    def ends(self, stub: Stub) -> Milliseconds:
        """The moment from which a stub is gone."""
        settings = self._settings_of(stub.feed)
        has_outcome = stub.told is not None and stub.told.verdict != "open"
        return (stub.news or self.since) + (settings.retract_for if has_outcome else settings.ledger_for)

    def put(self, question_id: str, stub: Stub) -> bytes:
        """Keep a stub, or a changed one; the bytes that it is kept as."""
        encoded = self._stored[question_id] = encode_stub(stub)
        self._note(question_id, stub)
        if self._notes > 2 * len(self._stored) + _FEW:
            self.begin(self._settings_of, 0)
        return encoded

    def load(self, question_id: str, encoded: bytes) -> None:
        """Take up a stored stub. ``begin`` must follow."""
        self._stored[question_id] = encoded

    def discard(self, question_id: str) -> None:
        """Let go of a stub."""
        del self._stored[question_id]

    def expire(self, now: Milliseconds) -> Iterator[str]:
        """Let go of stubs that have ended; the questions, and only those of hours that are over."""
        while self.next_end <= now:
            noted = self._by_hour.pop(heappop(self._hours))
            self._notes -= len(noted)
            for question_id in noted:
                stub = self.get(question_id)
                if stub is None:
                    continue
                if self.ends(stub) <= now:
                    self.discard(question_id)
                    yield question_id
                else:
                    self._note(question_id, stub)

    def begin(self, settings_of: SettingsOf, now: Milliseconds) -> list[str]:
        """Follow other settings. What has ended by ``now`` under the former ones is gone: these questions."""
        gone = [question_id for question_id in self._stored if now and self._has_ended(question_id, now)]
        for question_id in gone:
            self.discard(question_id)
        self._settings_of = settings_of
        self._by_hour.clear()
        self._hours.clear()
        self._notes = 0
        for question_id, stored in self._stored.items():
            self._note(question_id, decode_stub(question_id, stored))
        return gone

    def of_feed(self, feed: str, until: Milliseconds) -> list[str]:
        """Questions of a feed whose last news are not after ``until``."""
        name = feed.encode()
        likely = [question_id for question_id, stored in self._stored.items() if name in stored]
        stubs = ((question_id, self.get(question_id)) for question_id in likely)
        return [question_id for question_id, stub in stubs if stub and stub.feed == feed and stub.news <= until]

    def _has_ended(self, question_id: str, now: Milliseconds) -> bool:
        stub = self.get(question_id)
        return stub is not None and self.ends(stub) <= now

    def _note(self, question_id: str, stub: Stub) -> None:
        hour = self.ends(stub) // _HOUR
        noted = self._by_hour.get(hour)
        if noted is None:
            self._by_hour[hour] = [question_id]
            heappush(self._hours, hour)
        else:
            noted.append(question_id)
        self._notes += 1
