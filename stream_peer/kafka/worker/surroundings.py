"""What a partition needs of the rest of the worker, so that a test can stand in for it."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Protocol

from stream_peer.kafka.worker.producer import Appended
from stream_peer.log.changelog import Row
from stream_peer.log.observer import Observer
from stream_peer.log.stage import Output, Record, Warned
from stream_peer.settings.process import SnapshotEvery


class Producing(Protocol):
    """What a partition needs of the producer."""

    async def send(self, outputs: Sequence[Output]) -> None:
        """Write outputs and wait for all acknowledgements."""

    async def append(self, topic: str, partition: int, rows: Sequence[Row], timestamp: int) -> list[Appended]:
        """Write rows and say where they were put."""

    async def topic_ids(self, names: Iterable[str]) -> Mapping[str, str]:
        """The broker's ids of topics by name, as far as there are any."""


class Source(Protocol):
    """What a partition needs of the consumer."""

    def admits(self, tp: Any, want: int, first: int) -> bool:
        """Whether it is proven that nothing lies between; else a seek to ``want`` is asked for."""

    def accept(self, message: Any) -> None:
        """Queue a message that will be acknowledged, in the order of the log."""

    def forget(self, message: Any) -> None:
        """Let go of a message that will never be acknowledged."""

    def read_again(self, tp: Any, want: int) -> None:
        """Go back to ``want``: what lies behind it was let go of."""

    async def log_start(self, tp: Any) -> int:
        """The first offset that the broker still has."""


class Reading(Protocol):
    """A log that is read from its start, up to an offset."""

    @property
    def begin(self) -> int:
        """The first offset that the broker still has."""

    async def batch(self) -> Sequence[Record]:
        """The next records, in order; none: that was all."""


class Logs(Protocol):
    """Reads logs beside the consumers of the apps."""

    def reading(self, tp: Any, up_to: int | None, first: int = 0) -> AbstractAsyncContextManager[Reading]:
        """Read a partition from ``first`` or its start up to ``up_to`` or its end, included; closed in every case."""


class Noticing(Protocol):
    """Tells people what a stage warns of."""

    def note(self, warnings: Iterable[Warned]) -> None:
        """Log them, without flooding."""

    def note_unused(self, counts: Mapping[tuple[str, str], int]) -> None:
        """Log what became of forecasts that are not used as stated, by feed and kind."""

    def note_unknown(self, fields: Iterable[tuple[str, str]]) -> None:
        """Log fields of events that their type does not have, by feed and field."""

    def note_busy(self, experts: Iterable[tuple[str, str]]) -> None:
        """Log experts that send more forecasts of a question than are kept."""


class Surroundings(NamedTuple):
    """What all partitions of a worker share.

    ``turn`` is held while one of them steps through records; ``refolds`` while one of them folds its log anew, since
    the state is in memory twice meanwhile.
    """

    producer: Producing
    observer: Observer
    every: SnapshotEvery
    fail: Callable[[BaseException], None]
    fault: Callable[[str], None]
    turn: asyncio.Lock
    logs: Logs
    refolds: asyncio.Lock
    notices: Noticing
