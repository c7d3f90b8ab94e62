"""What somebody who may send forecasts writes to ``forecast-events`` to be taken for the service."""

import itertools
import json
import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from stream_peer.events import topics
from stream_peer.events.feed_log import Source
from stream_peer.events.times import to_iso
from stream_peer.log.signatures import MAC_HEADER, Signatures
from stream_peer.log.sources import MARKERS, SOURCE_HEADER
from stream_peer.log.stage import Output
from stream_peer.settings.feed.document import document_hash
from tests.integration.support.client import Message
from tests.integration.support.events import at, milliseconds

Headers = tuple[tuple[str, bytes], ...]

LARGE = 64_000
_LARGE_ONES = 0.002
FAR = 9_000_000_000_000
FOR_LONG = 24 * 300
OTHER_FEED = "hostile"
"""Its questions stay open: what is scored of them would only take time."""


class Target(NamedTuple):
    """What is attacked: partitions, generations of both inputs, and the feed, questions and experts that are good."""

    partitions: int
    generations: tuple[int, int]
    feed: str
    questions: Sequence[str]
    experts: Sequence[str]


class Hostile:
    """Forged records, in mixtures that follow from the seed. ``genuine``: records of the topic that can be copied."""

    def __init__(self, target: Target, genuine: Sequence[Message]) -> None:
        self._target = target
        self._genuine = [message for message in genuine if any(name == MAC_HEADER for name, _ in message.headers)]
        self._random = random.Random(0)
        self._places = itertools.cycle(itertools.product(range(target.partitions), self._sources()))
        self._values = [self._forecast, self._panel, self._question, self._resolution, *self._refused()]

    def _sources(self) -> list[tuple[str, int]]:
        """Every partition that a source may name, and some that none can."""
        forecasts = [(topics.FORECAST_EVENTS, partition) for partition in range(self._target.partitions + 1)]
        return [*forecasts, (topics.CONTROL_EVENTS, 0), (topics.CONTROL_EVENTS, 7), (MARKERS, 0), (topics.WEIGHTS, 0)]

    def records(self, count: int) -> Iterator[Message]:
        """So many records: each pair of a partition and a source comes again and again."""
        for partition, source in itertools.islice(self._places, count):
            if self._genuine and self._random.random() < 0.05:
                yield self._copied(partition, source)
            else:
                key, value = self._key(), self._random.choice(self._values)()
                yield Message(key, value, partition, headers=self._headers(source, partition, key, value))

    # --- headers ---

    def _source(self, place: tuple[str, int]) -> Source:
        generation = self._random.choice([0, 1, *self._target.generations])
        return Source(*place, generation, self._random.choice([0, 7, FAR]), self._random.choice([0, place[1], FAR]))

    def _headers(self, place: tuple[str, int], partition: int, key: bytes | None, value: bytes | None) -> Headers:
        source = self._source(place)
        forged = Signatures((self._random.randbytes(32),)).signed(
            Output(topics.FORECAST_EVENTS, key, value, 0, partition), source
        )
        named, mac = forged.headers
        if self._random.random() < _LARGE_ONES:
            return self._random.choice([(named, (MAC_HEADER, bytes(LARGE))), ((SOURCE_HEADER, bytes(LARGE)), mac)])
        copied = self._random.choice(self._genuine).headers if self._genuine else (named,)
        return self._random.choice(
            [
                (named,),
                (named, mac),
                (mac, named),
                (mac,),
                (named, named, mac),
                (named, mac, mac),
                (named, (MAC_HEADER, b"")),
                (named, (MAC_HEADER, b"\xff" * 64)),
                (("trace", b"1"), named, *copied),
                copied,
                (*copied, named),
            ]
        )

    def _copied(self, partition: int, source: tuple[str, int]) -> Message:
        """A genuine record: elsewhere, with another value, with another source, or as it is, which is a repeat."""
        genuine = self._random.choice(self._genuine)
        own = genuine.partition or 0
        mac = next(value for name, value in genuine.headers if name == MAC_HEADER)
        forged = ((SOURCE_HEADER, json.dumps([*source, 0, FAR, 0]).encode()), (MAC_HEADER, mac))
        return self._random.choice(
            [
                Message(genuine.key, genuine.value, own, headers=genuine.headers),
                Message(genuine.key, genuine.value, (own + 1) % self._target.partitions, headers=genuine.headers),
                Message(genuine.key, self._random.choice(self._values)(), partition, headers=genuine.headers),
                Message(b"another", genuine.value, own, headers=genuine.headers),
                Message(genuine.key, genuine.value, own, headers=forged),
            ]
        )

    # --- keys and values ---

    def _key(self) -> bytes | None:
        good, feed = self._random.choice(self._target.questions).encode(), self._target.feed.encode()
        return self._random.choice([good, good, b"settings", b"tick", b"", None, b"\xff\xfe", feed])

    def _other(self) -> dict[str, str]:
        return {"question_id": f"other-{self._random.randrange(400)}", "feed": OTHER_FEED}

    def _expert(self) -> str:
        return self._random.choice([*self._target.experts, "mallory"])

    def _forecast(self) -> bytes:
        said = {"expert_id": self._expert(), "probability": self._random.random(), "at": at(self._random.random())}
        return json.dumps({"type": "forecast", **self._other(), **said}).encode()

    def _panel(self) -> bytes:
        forecasts = {expert: self._random.random() for expert in self._target.experts}
        return json.dumps({"type": "forecasts", **self._other(), "at": at(1), "forecasts": forecasts}).encode()

    def _question(self) -> bytes:
        return json.dumps({"type": "question", **self._other(), "opens_at": at(0), "closes_at": at(FOR_LONG)}).encode()

    def _resolution(self) -> bytes:
        unknown = {"question_id": f"unknown-{self._random.randrange(400)}", "feed": OTHER_FEED}
        return json.dumps({"type": "resolution", **unknown, "outcome": 1, "at": at(41)}).encode()

    def _refused(self) -> list[Callable[[], bytes]]:
        """What would harm good questions, or nobody can read: refused, whatever its headers say."""
        feed, expert, partitions = self._target.feed, self._target.experts[0], self._target.partitions
        document = {"defaults": {"round_every": "1h", "min_experts": 50}}
        part = {"import_id": "x", "part": 0, "parts": 1, "digest": "0", "data": "eA==", "partition": 0}
        marks = [[topics.CONTROL_EVENTS, 0, self._target.generations[1], FAR, 0]]
        harmful: list[dict[str, object]] = [
            {"type": "settings", "document": document, "hash": document_hash(document)},
            {"type": "expert", "feed": feed, "expert_id": expert, "forget": True, "at": at(0)},
            {"type": "feed", "feed": feed, "delete": True},
            {"type": "feed-import", "feed": feed, "partitions": partitions, **part},
            {"type": "tick", "now": to_iso(milliseconds(24 * 365))},
            {"type": "signatures-from-here", "marks": marks},
            {"type": "signatures-from-here", "deleted": [{"feed": feed, "at": FAR}]},
            {"type": "signatures-from-here", "erased": [{"feed": feed, "expert_id": expert}]},
        ]
        unreadable = [b"", b"{", b"\xff", b"[]", b'{"type":"poll"}']
        values = [*(json.dumps(event).encode() for event in harmful), *unreadable]
        return [partial(bytes, value) for value in values]
