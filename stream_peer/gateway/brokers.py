"""Writes events, waits for the acknowledgement, and knows whether brokers answer."""

import asyncio
from collections.abc import Sequence

import structlog
from msgspec.structs import replace

from stream_peer.errors import BrokerUnavailableError, StreamPeerError
from stream_peer.kafka.client.preflight import preflight
from stream_peer.kafka.client.write import EventWriter, SignedRecord
from stream_peer.settings.process import Settings

log = structlog.get_logger(__name__)

DELIVERY_SECONDS = 10.0
"""Seconds in which brokers acknowledge an event, or its client is asked to post it again; an answer may take longer."""
_LOOK_SECONDS = 2.0  # between looks at the brokers
_PATIENCE_SECONDS = 2.0  # of such a look


class Brokers:
    """The brokers as the gateway meets them. ``watch`` connects, and looks again and again whether they answer.

    After a fault the producer is given up and another one connects: what became of its events is not known.

    Parameters
    ----------
    settings : Settings
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = replace(settings, broker_patience=_PATIENCE_SECONDS)
        self._writer: EventWriter | None = None
        self._fault = "no broker has answered yet"
        self._look = asyncio.Event()
        self._closing: set[asyncio.Task[None]] = set()

    def live(self) -> tuple[bool, str]:
        """Who answers lives."""
        return True, ""

    def started(self) -> tuple[bool, str]:
        """Brokers that are away are no reason to start again."""
        return True, ""

    def ready(self) -> tuple[bool, str]:
        """Whether brokers take events, and if not, why."""
        return not self._fault, self._fault

    def send(self, records: Sequence[SignedRecord]) -> "asyncio.Future[None]":
        """Write records in their order: done when every in-sync replica has all of them, or with the fault.

        Raises
        ------
        BrokerUnavailableError
            If no broker answers.
        """
        writer, loop = self._writer, asyncio.get_running_loop()
        if writer is None or self._fault:
            raise BrokerUnavailableError(self._fault)
        written = loop.create_future()

        def settle(fault: StreamPeerError | None) -> None:
            if fault is None:
                written.set_result(None)
                return
            self._give_up(writer, fault)
            written.set_exception(fault)

        def told(fault: StreamPeerError | None) -> None:
            loop.call_soon_threadsafe(settle, fault)

        writer.send(records, told)
        return written

    async def watch(self) -> None:
        """Look at the brokers for as long as the gateway runs."""
        while True:
            self._look.clear()
            try:
                await self._look_once()
            except StreamPeerError as error:
                self._note(str(error))
            try:
                await asyncio.wait_for(self._look.wait(), _LOOK_SECONDS)
            except TimeoutError:
                continue

    async def _look_once(self) -> None:
        writer = self._writer
        if writer is None:
            writer = self._writer = await asyncio.to_thread(EventWriter, self._settings, DELIVERY_SECONDS)
        else:
            await asyncio.to_thread(preflight, self._settings)
        if writer is self._writer:  # and was not given up meanwhile
            self._note("")

    async def end(self) -> None:
        """Write what was taken, and disconnect."""
        if self._writer is not None:
            self._close(self._writer)
        await asyncio.gather(*self._closing)

    def _give_up(self, writer: EventWriter, fault: StreamPeerError) -> None:
        if writer is self._writer:
            self._writer = None
            self._note(str(fault))
            self._close(writer)
            self._look.set()

    def _close(self, writer: EventWriter) -> None:
        closing = asyncio.get_running_loop().create_task(asyncio.to_thread(writer.close))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    def _note(self, fault: str) -> None:
        if fault and not self._fault:
            log.warning("gateway_not_ready", reason=fault)
        if self._fault and not fault:
            log.info("gateway_ready")
        self._fault = fault
