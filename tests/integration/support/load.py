"""A platform that never rests: questions open, are forecast and close, outcomes come and are taken back.

Among the events are late ones, withdrawals, some that cannot be used, and some on the wrong partition.
"""

import json
import random
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import NamedTuple, Self

from stream_peer.events import topics
from stream_peer.events.partitioning import partition_of
from tests.integration.support.events import Event, forecast, milliseconds, question, resolution
from tests.integration.support.service import Service

FEEDS = ("red", "green", "blue")
_EXPERTS = 12
_OPEN = 20
_HOURS_OPEN = 12.0
_HOURS_AN_EVENT = 1 / 30
_BURST = 20


class Sent(NamedTuple):
    """An event as it is produced: whether to its own partition, or to the next one."""

    key: str
    value: bytes
    astray: bool


class Platform:
    """Makes events, the same ones for the same seed; a share of them is malformed."""

    def __init__(self, seed: int, malformed: float) -> None:
        self.now = 0.0
        self._malformed = malformed
        self._random = random.Random(seed)
        self._open: list[str] = []
        self._closed: list[str] = []
        self._closes: dict[str, float] = {}

    def events(self) -> Iterator[Sent]:
        """Without end."""
        choose = self._random
        while True:
            self.now += _HOURS_AN_EVENT
            self._close_due()
            event = self._next()
            value = json.dumps(event).encode()
            if choose.random() < self._malformed:
                value = value[: choose.randrange(len(value))]
            yield Sent(event["question_id"], value, astray=choose.random() < 0.08)

    def _close_due(self) -> None:
        due = [name for name in self._open if self._closes[name] <= self.now]
        self._open = [name for name in self._open if name not in due]
        self._closed.extend(due)

    def _next(self) -> Event:
        choose, kind = self._random, self._random.random()
        if len(self._open) < _OPEN:
            return self._opened()
        if kind < 0.04 and self._closed:
            outcome = choose.choice((0, 1, 0, 1, 0, 1, None, "open"))
            return resolution(choose.choice(self._closed[-50:]), outcome, self.now)
        name = choose.choice(self._closed[-20:] if kind < 0.06 and self._closed else self._open)
        probability = None if choose.random() < 0.03 else round(choose.random(), 3)
        said = self.now - (choose.uniform(0, 6) if choose.random() < 0.1 else 0)
        return forecast(name, f"e{choose.randrange(_EXPERTS)}", probability, max(0.0, said))

    def _opened(self) -> Event:
        name = f"q{len(self._closes)}"
        self._open.append(name)
        self._closes[name] = self.now + self._random.uniform(0.5, 1.5) * _HOURS_OPEN
        return question(name, self._random.choice(FEEDS), self._closes[name])


class Load:
    """Produces events at a steady pace while the block runs; at its end time passes, so that all closes."""

    def __init__(self, service: Service, seed: int, rate: float, malformed: float = 0.02) -> None:
        self._service = service
        self._platform = Platform(seed, malformed)
        self._rate = rate
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._failed: list[str] = []
        self.sent = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(120)
        if error is None:
            assert not self._failed, self._failed
            self._service.tick(milliseconds(self._platform.now + 10 * _HOURS_OPEN))

    def _run(self) -> None:
        from confluent_kafka import Producer

        producer = Producer(
            {"bootstrap.servers": self._service.kafka.bootstrap, "enable.idempotence": True, "linger.ms": 10}
        )
        topic, partitions = self._service.topic(topics.FORECAST_EVENTS), self._service.shape.questions
        began = time.monotonic()
        for sent in self._platform.events():
            home = partition_of(sent.key, partitions)
            producer.produce(
                topic, sent.value, sent.key, (home + sent.astray) % partitions, on_delivery=self._delivered
            )
            self.sent += 1
            if self.sent % _BURST == 0:
                producer.poll(0)
                if self._stop.wait(max(0.0, began + self.sent / self._rate - time.monotonic())):
                    break
        producer.flush(60)

    def _delivered(self, error: object, _message: object) -> None:
        if error is not None:
            self._failed.append(str(error))
