"""Writes events, waits for the acknowledgement, and knows whether brokers answer."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

import structlog
from msgspec.structs import replace

from stream_peer.errors import BrokerUnavailableError, StreamPeerError
from stream_peer.kafka.client.preflight import preflight
from stream_peer.kafka.client.write import EventWriter, SignedRecord
from stream_peer.settings.process import Settings

log = structlog.get_logger(__name__)

DELIVERY_SECONDS = 10.0
"""Seconds in which brokers acknowledge an event, or its client is asked to post it again; an answer may take longer."""
_LINGER_SECONDS = 0.005  # in which posts come together: each waking of the producer's thread costs as much as a record
_LOOK_SECONDS = 2.0  # between looks at the brokers
_PATIENCE_SECONDS = 2.0  # of such a look


class Sending:
    """What is sent of a post, in parts. It ends when the post has no more and each part is settled.

    Parameters
    ----------
    ended : callable
        Called at the end, whether or not somebody still waits.
    """

    def __init__(self, ended: Callable[[], None]) -> None:
        self._ended = ended
        self._left = 1  # the post itself
        self._fault: StreamPeerError | None = None
        self._end = asyncio.get_running_loop().create_future()

    def begin(self) -> None:
        """Count a part that is sent; `settle` is called once for it."""
        self._left += 1

    def settle(self, fault: StreamPeerError | None) -> None:
        """Count a part as done: every in-sync replica has it, or ``fault`` says why not.

        It is called once for the post itself, too, when that has no more parts.
        """
        self._fault = self._fault or fault
        self._left -= 1
        if not self._left:
            self._ended()
            if not self._end.done():  # cancelled, once a client has gone away
                self._end.set_result(None)

    async def written(self) -> None:
        """Wait for the end.

        Raises
        ------
        StreamPeerError
            The first fault of a part.
        """
        await self._end
        if self._fault is not None:
            raise self._fault


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
        self._waiting: list[tuple[Sequence[SignedRecord], Sending]] = []
        self._told: deque[tuple[EventWriter, Sending, StreamPeerError | None]] = deque()
        self._will_settle = False
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

    def send(self, records: Sequence[SignedRecord], sending: Sending) -> None:
        """Write a part of a post, in its order and behind all that was sent before.

        Raises
        ------
        BrokerUnavailableError
            If no broker answers.
        """
        if self._writer is None or self._fault:
            raise BrokerUnavailableError(self._fault)
        sending.begin()
        self._waiting.append((records, sending))
        if len(self._waiting) == 1:
            asyncio.get_running_loop().call_later(_LINGER_SECONDS, self._send_waiting)

    def _send_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for records, sending in waiting:
            writer = self._writer
            if writer is None:
                sending.settle(BrokerUnavailableError(self._fault))
            else:
                writer.send(records, partial(self._tell, asyncio.get_running_loop(), writer, sending))

    def _tell(
        self,
        loop: asyncio.AbstractEventLoop,
        writer: EventWriter,
        sending: Sending,
        fault: StreamPeerError | None,
    ) -> None:
        """Called by the producer's thread: wakes the loop once for all that one answer of a broker settles."""
        self._told.append((writer, sending, fault))
        if not self._will_settle:  # else what was appended just now is still to be found
            self._will_settle = True
            loop.call_soon_threadsafe(self._settle_told)

    def _settle_told(self) -> None:
        self._will_settle = False
        while self._told:
            writer, sending, fault = self._told.popleft()
            if fault is not None:
                self._give_up(writer, fault)
            sending.settle(fault)

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
        self._send_waiting()
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
