"""The events of the soak: questions that open one after the other for years, at most so many at once.

Everything follows from a question's number, so that a run can be taken up anywhere and says the same again.
"""

import heapq
import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from benchmarks.workload import DAY, Message
from stream_peer.events.times import Milliseconds, to_iso

FIRST: Milliseconds = 946_857_600_000  # 2000-01-03
FEEDS = 4
POOL = 60
"""Experts of a feed; a question hears some of them."""

REVISES, WITHDRAWS, COMES_LATE, IS_BROKEN = 0.2, 0.03, 0.01, 0.005
_LATE_CLASSES = (0.4, 0.3, 0.15, 0.15)
_OVERSIZED = "x" * 100_000
_BROKEN = (
    '{"type":"forecast","question_id":"Q","expert_id":"e","probability":0.5,"at":"yesterday"}',
    '{"type":"forecast","question_id":"Q","expert_id":"e","probability":70,"at":"2001-01-01T00:00:00Z"}',
    '{"type":"forecast","question_id":"Q"',
    '{"type":"prophecy","question_id":"Q"}',
    f'{{"type":"{_OVERSIZED}"}}',
)


class Lives(NamedTuple):
    """Whose lives they are.

    Attributes
    ----------
    most_open : int
        Questions open at once, at most.
    experts : int
        How many forecast a question.
    resolved : float
        Share of the questions of which an outcome, or that they are annulled, is ever heard.
    first, longest : int
        When the first question opens, and the longest that one is open, in milliseconds.
    late : tuple of int
        How many times ``longest`` after a question's opening its outcome comes, by class: while its forecasts are
        kept, months later, after a year, and when nobody waits for it any more.
    """

    most_open: int
    experts: int = 6
    resolved: float = 0.10
    first: Milliseconds = FIRST
    longest: Milliseconds = 8 * DAY
    late: tuple[int, int, int, int] = (1, 16, 50, 190)

    @property
    def spacing(self) -> Milliseconds:
        """Between two openings."""
        return -(-self.longest // self.most_open)

    def opens(self, number: int) -> Milliseconds:
        """When a question opens."""
        return self.first + number * self.spacing

    def steps(self, begin: int, end: int) -> Iterator[tuple[int, list[Message]]]:
        """For each question from ``begin`` to ``end`` its number, and every message up to the next one's opening."""
        pending: list[tuple[Milliseconds, int, int, Message]] = []
        since = self.opens(begin)
        reach = self.most_open * (max(self.late) + 6)
        for number in range(max(0, begin - reach), end):
            for index, message in enumerate(self.messages(number)):
                if message.at >= since:
                    heapq.heappush(pending, (message.at, number, index, message))
            if number >= begin:
                until, found = self.opens(number + 1), []
                while pending and pending[0][0] < until:
                    found.append(heapq.heappop(pending)[3])
                yield number, found

    def messages(self, number: int) -> list[Message]:
        """Everything that is ever said about a question, the question first."""
        dice = random.Random(number)
        question = f"q-{number:07d}"
        opens = self.opens(number)
        closes = opens + int(self.longest * (0.2 + 0.79 * dice.random()))
        schedule = {"feed": f"feed-{number % FEEDS}", "opens_at": to_iso(opens), "closes_at": to_iso(closes)}
        outcome = int(dice.random() < 0.5)
        told = [_message(opens, "question", question, opens, **schedule)]
        for expert in dice.sample(range(POOL), self.experts):
            told += self._forecasts(question, expert, outcome, (opens, closes), dice)
        if dice.random() < self.resolved:
            told += self._resolutions(question, outcome, (opens, closes), dice)
        return told

    def _forecasts(
        self, question: str, expert: int, outcome: int, life: tuple[Milliseconds, Milliseconds], dice: random.Random
    ) -> Iterator[Message]:
        """An expert's forecast, and what now and then follows it: a revision, a withdrawal, a broken line."""
        opens, closes = life
        name, skill = f"expert-{expert:02d}", 0.3 * (1.0 - expert / POOL)
        at = opens + int((closes - opens) * 0.9 * dice.random())
        probability = _clipped(0.5 + (skill if outcome else -skill) + 0.2 * (dice.random() - 0.5))
        arrives = at
        if dice.random() < COMES_LATE:
            arrives, at = closes + self.longest // 100, closes - self.longest // 200
        yield _message(arrives, "forecast", question, at, expert_id=name, probability=probability)
        again = at + (closes - at) // 2
        if dice.random() < REVISES and arrives == at:
            better = _clipped(probability + (0.1 if outcome else -0.1))
            yield _message(again, "forecast", question, again, expert_id=name, probability=better)
        elif dice.random() < WITHDRAWS and arrives == at:
            yield _message(again, "forecast", question, again, expert_id=name, probability=None)
        if dice.random() < IS_BROKEN:
            text = dice.choice(_BROKEN).replace('"Q"', f'"{question}"')
            yield Message(arrives, question.encode(), text.encode())

    def _resolutions(
        self, question: str, outcome: int, life: tuple[Milliseconds, Milliseconds], dice: random.Random
    ) -> Iterator[Message]:
        """Its outcome sooner or later, sometimes wrong at first; now and then it is retracted, or annulled."""
        opens, closes = life
        late = dice.choices(self.late, _LATE_CLASSES)[0]
        at = max(closes, opens + late * self.longest) + int(self.longest * 0.5 * dice.random())
        said = dice.random()
        verdicts: Sequence[int | str | None] = (outcome,)
        if said < 0.1:
            verdicts = (None,)
        elif said < 0.2:
            verdicts = (1 - outcome, outcome)
        elif said < 0.3:
            verdicts = (outcome, "open")
        for verdict in verdicts:
            yield _message(at, "resolution", question, at, outcome=verdict, closed_at=to_iso(closes))
            at += 3 * self.longest


def _clipped(probability: float) -> float:
    return round(min(0.99, max(0.01, probability)), 3)


def _message(arrives: Milliseconds, kind: str, question: str, at: Milliseconds, **fields: object) -> Message:
    event = {"type": kind, "question_id": question, "at": to_iso(at), **fields}
    return Message(arrives, question.encode(), msgspec.json.encode(event))
