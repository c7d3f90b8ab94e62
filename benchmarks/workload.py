"""The events of the benchmark: staggered questions whose experts revise their forecasts until they close.

Everything follows from the question's number, so that both forms (an event a forecast, or a message of all experts)
and every run say the same.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from stream_peer.events.partitioning import partition_of
from stream_peer.events.times import Milliseconds, to_iso
from stream_peer.events.topics import FORECAST_EVENTS
from stream_peer.log.signatures import Signatures
from stream_peer.log.stage import Headers, Output

DAY = 86_400_000
START: Milliseconds = 1_704_067_200_000  # 2024-01-01
OPEN_FOR = 6 * DAY  # less than a week: one round a question, at its close
GRACE = 60_000
FEEDS = 16
EXPERTS_PER_FEED = 60
EXPERTS_PER_QUESTION = 50
FORECASTS_PER_QUESTION = 160  # 3.2 by each expert
RESOLVED_SHARE = 0.2
QUESTIONS = 5_000
ALL_QUESTIONS_OPEN_WITHIN = 120 * DAY


class Message(NamedTuple):
    """What is sent: when it happened, the key, the payload, the headers."""

    at: Milliseconds
    key: bytes
    value: bytes
    headers: Headers = ()


class Workload(NamedTuple):
    """``questions`` of them, told as ``forecast`` events or as ``forecasts`` messages of all experts.

    The first opens at ``start``, the others one after the other ``within`` so many milliseconds.
    """

    questions: int
    as_messages: bool = False
    start: Milliseconds = START
    within: Milliseconds = ALL_QUESTIONS_OPEN_WITHIN
    open_for: Milliseconds = OPEN_FOR
    feeds: int = FEEDS
    resolved: float = RESOLVED_SHARE
    name: str = "question"

    @property
    def forecasts(self) -> int:
        """How many forecasts there are in it."""
        return self.questions * FORECASTS_PER_QUESTION

    def partition(self, partition: int, partitions: int, signatures: Signatures | None = None) -> list[Message]:
        """One partition of ``forecast-events``, in the order of time, with the tick that ends it, signed."""
        messages = self.messages(partition, partitions)
        end = to_iso(self.start + self.within + 3 * self.open_for + GRACE)
        tick = Output(FORECAST_EVENTS, b"tick", f'{{"type":"tick","now":"{end}"}}'.encode(), 0, partition)
        signed = (signatures or Signatures()).signed(tick)
        return [*messages, Message(0, b"tick", tick.value or b"", signed.headers)]

    def messages(self, partition: int, partitions: int) -> list[Message]:
        """Those of one partition, in the order of time."""
        mine = (n for n in range(self.questions) if partition_of(self._question_id(n), partitions) == partition)
        messages = [message for number in mine for message in self._question(number)]
        messages.sort(key=lambda message: message.at)
        return messages

    def _question_id(self, number: int) -> str:
        return f"{self.name}-{number:06d}"

    def _question(self, number: int) -> Iterator[Message]:
        """Every message about one question."""
        question, feed = self._question_id(number), f"feed-{number % self.feeds}"
        random = np.random.default_rng(number)
        opens = self.start + self.within * number // self.questions
        closes = opens + self.open_for
        text = (
            f'{{"type":"question","question_id":"{question}","at":"{to_iso(opens)}","feed":"{feed}",'
            f'"opens_at":"{to_iso(opens)}","closes_at":"{to_iso(closes)}"}}'
        )
        key = question.encode()
        yield Message(opens, key, text.encode())
        outcome = int(random.random() < 0.5)
        tell = self._messages if self.as_messages else self._events
        for at, value in tell(question, feed, opens, outcome, random):
            yield Message(at, key, value.encode())
        if random.random() < self.resolved:
            at = closes + int(random.random() * self.open_for)
            text = f'{{"type":"resolution","question_id":"{question}","outcome":{outcome},"at":"{to_iso(at)}"}}'
            yield Message(at, key, text.encode())

    def _events(
        self, question: str, feed: str, opens: Milliseconds, outcome: int, random: np.random.Generator
    ) -> Iterator[tuple[Milliseconds, str]]:
        """Every expert once, then revisions by some of them, spread over the question's life."""
        experts = random.permutation(EXPERTS_PER_FEED)[:EXPERTS_PER_QUESTION]
        again = random.choice(experts, FORECASTS_PER_QUESTION - EXPERTS_PER_QUESTION)
        who = np.concatenate([experts, again])
        when = opens + np.sort(random.integers(1, self.open_for, FORECASTS_PER_QUESTION))
        for expert, at, probability in zip(who.tolist(), when.tolist(), _forecasts(who, outcome, random), strict=True):
            yield (
                at,
                f'{{"type":"forecast","question_id":"{question}","expert_id":"expert-{expert}",'
                f'"probability":{probability},"at":"{to_iso(at)}","feed":"{feed}"}}',
            )

    def _messages(
        self, question: str, feed: str, opens: Milliseconds, outcome: int, random: np.random.Generator
    ) -> Iterator[tuple[Milliseconds, str]]:
        """All experts at once, three times, and four times for every fifth question."""
        experts = random.permutation(EXPERTS_PER_FEED)[:EXPERTS_PER_QUESTION]
        times = 3 + (int(question.rpartition("-")[2]) % 5 == 0)
        for at in (opens + np.sort(random.integers(1, self.open_for, times))).tolist():
            forecasts = _forecasts(experts, outcome, random)
            told = ",".join(f'"expert-{e}":{p}' for e, p in zip(experts.tolist(), forecasts, strict=True))
            yield (
                at,
                f'{{"type":"forecasts","question_id":"{question}","at":"{to_iso(at)}","feed":"{feed}",'
                f'"forecasts":{{{told}}}}}',
            )


def _forecasts(experts: "np.typing.NDArray[np.int64]", outcome: int, random: np.random.Generator) -> list[float]:
    """Forecasts around the truth; an expert with a higher number is worse."""
    skill = 1.5 - experts / EXPERTS_PER_FEED
    logits = skill * (2 * outcome - 1) + random.normal(0.0, 1.0, len(experts))
    return [round(float(p), 3) for p in 1.0 / (1.0 + np.exp(-logits))]
