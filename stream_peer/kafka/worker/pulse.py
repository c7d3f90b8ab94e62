"""Beside folding: telling the watchdog that the loop turns, and looking after progress, lag and ticks."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from mode import Service

from stream_peer.kafka.worker.lag import Lags
from stream_peer.kafka.worker.notices import Notices
from stream_peer.kafka.worker.partition import OwnedPartition
from stream_peer.kafka.worker.producer import BatchProducer
from stream_peer.kafka.worker.question_app import QUESTION
from stream_peer.kafka.worker.skew import ClockSkew
from stream_peer.kafka.worker.ticks import Ticker
from stream_peer.kafka.worker.transactions import OpenTransactions
from stream_peer.kafka.worker.watchdog import Vitals, Watchdog
from stream_peer.log.observer import Observer
from stream_peer.log.signatures import Signatures

_BEAT_SECONDS = 0.05
_LOOK_SECONDS = 0.5


class Stalls:
    """How long work may stand still, in seconds."""

    def __init__(self, session: float, rebalance_timeout: float, broker_patience: float) -> None:
        self.folding = max(session / 2, 10.0)
        self.refolding = self.folding + broker_patience  # nothing comes from a log whose broker is away
        self.joining = session + rebalance_timeout + 30.0


class Pulse(Service):
    """Started after the producer and before the apps; the watchdog runs while it does.

    ``signatures`` sign ticks. ``skew``: compares our clock with the brokers'; None: they do not stamp what is read.
    """

    def __init__(
        self,
        apps: Sequence[Any],
        producer: BatchProducer,
        vitals: Vitals,
        watchdog: Watchdog,
        stalls: Stalls,
        signatures: Signatures,
        skew: ClockSkew | None = None,
    ) -> None:
        super().__init__()
        self._apps = apps
        self._producer = producer
        self._vitals = vitals
        self._watchdog = watchdog
        self._stalls = stalls
        self._ticker = Ticker(signatures)
        self._lags = Lags()
        self._transactions = OpenTransactions()
        self._skew = skew
        self._retries = 0
        self._observer: Observer = apps[0].observer
        self._notices: Notices = apps[0].notices

    async def on_start(self) -> None:
        """Begin to watch."""
        self._watchdog.start()

    async def on_stop(self) -> None:
        """Say what was left out of the log."""
        self._notices.close(all_of_them=True)

    @Service.task
    async def _beat(self) -> None:
        while not self.should_stop:
            self._vitals.beat()
            await asyncio.sleep(_BEAT_SECONDS)

    @Service.task
    async def _ask_broker(self) -> None:
        pause = self._vitals.limits.broker / 10
        while not self.should_stop:
            if await self._producer.answers():
                self._vitals.broker_answered()
            await self.sleep(pause)

    @Service.task
    async def _look(self) -> None:
        while not self.should_stop:
            names: set[str] = set()
            places: set[Any] = set()
            caught_up: list[OwnedPartition] = []
            for app in self._apps:
                if app.started and app.consumer is not None:
                    names |= self._look_at_joining(app, places) | self._look_at_membership(app)
                    for partition in [] if app.rebalancing else app.ownership.partitions():
                        names.add(await self._look_at(app, partition, caught_up))
                        places.add(partition.tp)
            self._vitals.retain(names)
            self._transactions.retain(places)
            self._tell_of_clients()
            ticks = self._ticker.due(caught_up, time.time_ns() // 1_000_000)
            await self._producer.send(ticks)
            self._notices.close()
            await self.sleep(_LOOK_SECONDS)

    def _tell_of_clients(self) -> None:
        if self._skew is not None:
            self._observer.skewed(self._skew.seconds)
        if self._producer.retries > self._retries:
            self._observer.retried(self._producer.retries - self._retries)
            self._retries = self._producer.retries

    async def _look_at(self, app: Any, partition: OwnedPartition, caught_up: list[OwnedPartition]) -> str:
        end = app.consumer.log_end(partition.tp)
        if self._skew is not None and partition.stage_name == QUESTION:
            self._skew.look(partition, end)
        lag, position = await self._lags.of(partition, end, app.consumer)
        has_read = lag == 0 and partition.idle
        partition.waiting = self._transactions.look(partition.tp, end, has_read=has_read)
        place = partition.stage_name, partition.tp.partition
        self._observer.lag(*place, None if end is None else lag, partition.oldest, partition.waiting or 0.0)
        if has_read and partition.stage_name == QUESTION:
            caught_up.append(partition)
        name = f"{partition.stage_name} {partition.tp.partition}"
        refold = partition.refolding
        if refold is None:
            self._vitals.progress(name, (partition.marker, position) if lag else None, self._stalls.folding)
        else:
            self._vitals.progress(name, partition.marker if refold.total else None, self._stalls.refolding)
        return name

    def _look_at_membership(self, app: Any) -> set[str]:
        """A client that is in no group any more, and does not come back, will never be given work again."""
        name = f"{app.conf.id} coming back into its group"
        is_out = bool(app.rebalancing_count) and not app.rebalancing and not app.consumer.is_member
        self._vitals.progress(name, app.rebalancing_count if is_out else None, self._stalls.joining)
        return {name}

    def _look_at_joining(self, app: Any, places: set[Any]) -> set[str]:
        """A rebalance or recovery that does not move on is fatal, unless a changelog holds an open transaction."""
        if not app.rebalancing and app.rebalancing_count:
            return set()
        name = f"{app.conf.id} joining"
        remaining = app.tables.recovery.active_remaining() if app.in_recovery else {}
        places |= set(remaining)
        waits = [tp for tp, records in remaining.items() if self._waits_in_recovery(app, tp, records)]
        marker = app.rebalancing_count, tuple(sorted(remaining.items()))
        self._vitals.progress(name, None if waits else marker, self._stalls.joining)
        for tp, records in remaining.items():
            self._observer.recovering(app.stage_name_of(tp.topic), tp.partition, max(0, records))
        return {name}

    def _waits_in_recovery(self, app: Any, changelog: Any, records: int) -> bool:
        """Whether records up to our claim are still to come, and some of them lie behind an open transaction."""
        return self._transactions.look(changelog, app.consumer.log_end(changelog), has_read=records > 0) is not None
