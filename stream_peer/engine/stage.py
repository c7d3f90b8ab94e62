"""What a stage is: the fold of one log partition, driven by topology, replay and tests alike."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from stream_peer.events.times import Milliseconds

Headers = Sequence[tuple[str, bytes]]


def headers_size(headers: Headers) -> int:
    """Bytes of headers, names and values."""
    return sum(len(name.encode()) + len(value or b"") for name, value in headers)


class Record(Protocol):
    """One record of the input log, as every Kafka client hands it out. ``timestamp`` is milliseconds since 1970."""

    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> Milliseconds: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Headers: ...


class LogRecord(NamedTuple):
    """A record that no client handed out: replay's and the tests'."""

    offset: int
    timestamp: Milliseconds
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class Output(NamedTuple):
    """A record to write. ``topic`` is the logical name; without ``partition`` murmur2 of the key decides."""

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: Milliseconds
    partition: int | None = None
    headers: Headers = ()


class Effects:
    """What a run of records caused, in order: records to write, and counts for the metrics.

    ``counts`` is keyed by (kind, detail): ("event", "forecast"), ("dead-letter", "not-json"), ("late", ""), …
    """

    __slots__ = ("counts", "outputs")

    def __init__(self) -> None:
        self.outputs: list[Output] = []
        self.counts: Counter[tuple[str, str]] = Counter()


class Snapshot(NamedTuple):
    """What changed since the last snapshot. Keys carry no partition prefix; value None: the record is gone."""

    entries: Mapping[bytes, bytes | None]
    head: bytes


class Stage(Protocol):
    """One partition's fold. A function of its log: the same records give the same outputs and the same state."""

    def step(self, record: Record, effects: Effects) -> None:
        """Fold one record. An exception ends the process: the state may be half changed."""

    def publish(self, effects: Effects, feeds: Iterable[str] | None = None) -> None:
        """Add the newest per-feed outputs of ``feeds`` if worth a message, or of every changed feed (None)."""

    def changed_feeds(self) -> Mapping[str, Milliseconds]:
        """Feeds changed since they were last published, each with its ``publish_every``."""

    def snapshot(self) -> Snapshot:
        """State changed since the last call. The caller makes it durable: entries first, then the head."""

    def load(self, head: bytes | None, entries: Mapping[bytes, bytes]) -> None:
        """Take up the state that an earlier owner left, before the first step."""

    def deadline(self) -> Milliseconds | None:
        """When something becomes due by the clock although no record comes; None: nothing waits."""

    @property
    def clock(self) -> Milliseconds:
        """The partition's time: the largest credible time stated in its records; 0 before the first."""
