"""Connections: a bounded number of them; what is wrong with a request before it is one is a problem document too."""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import structlog
from aiohttp import web
from aiohttp.http_exceptions import LineTooLong

from stream_peer.serve.http.middlewares import HEADERS, of_http_exception
from stream_peer.serve.http.problems import problem

log = structlog.get_logger(__name__)

_LIMITS: Mapping[str, Any] = {
    "max_line_size": 8_190,  # of the request line: an id has at most 256 bytes, three times as many characters
    "max_field_size": 8_190,
    "max_headers": 64,
    "keepalive_timeout": 75.0,  # also for a request that does not come to its end
    "lingering_time": 0.5,  # of reading a body that nobody wants
    "handler_cancellation": True,  # a client that closes its connection ends what is computed for it
}

MOST_CONNECTIONS = 256
"""At once. Each takes a file descriptor, and the brokers' clients need some as well: of 1,024 on many machines."""
MOST_WAITING = 8
"""Requests of a connection that wait for the answer to the one before. No ordinary client sends any ahead."""
TAKING_SECONDS = 30.0
"""That a client has to take an answer, which is kept in memory for so long."""


class Connection(web.RequestHandler):
    """One connection. aiohttp calls ``handle_error`` for what is no request, and for errors outside of all handlers."""

    __slots__ = ("_wire",)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, in the place of another one if there are too many."""
        self._wire = cast(asyncio.Transport, transport)
        super().connection_made(transport)
        make_room(self._manager)

    def data_received(self, data: bytes) -> None:
        """Read requests; end a connection that sends too many ahead, which would keep the event loop busy."""
        super().data_received(data)
        if len(self._messages) > MOST_WAITING:
            log.debug("http_too_many_requests_ahead", waiting=len(self._messages))
            self.abort()

    @property
    def is_idle(self) -> bool:
        """Whether it has no request to answer."""
        return not self._request_in_progress

    @property
    def is_ending(self) -> bool:
        """Whether it is closed already, but for what the event loop has still to do."""
        return self._wire.is_closing()

    def abort(self) -> None:
        """End at once, whatever was not taken yet: a mere close would wait for a client that reads nothing."""
        self._wire.abort()

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send an answer to a client who takes it."""
        try:
            async with asyncio.timeout(TAKING_SECONDS):
                return await super().finish_response(request, resp, start_time)
        except TimeoutError:
            self.abort()
            return resp, True

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Say what is wrong, and close."""
        if request.writer.output_size > 0:
            msg = "an answer was begun already"
            raise ConnectionError(msg)
        if isinstance(exc, LineTooLong):
            told = problem(431, f"no line of a request may be longer than {_LIMITS['max_line_size']} bytes")
        elif status == 400:
            log.debug("http_not_understood", reason=message)
            told = problem(400, "this is no request that can be understood")
        else:
            log.error("http_failed", path=request.path, reason=repr(exc), exc_info=exc)
            told = problem(status, "the worker failed to answer; its log says why")
        for name, value in HEADERS.items():
            told.headers.setdefault(name, value)
        told.force_close()
        return told


def make_room(server: Any) -> None:
    """End the oldest of too many connections, if it can be an idle one, never the newest: a probe always gets in."""
    opened = [one for one in server.connections if not one.is_ending]
    if len(opened) > MOST_CONNECTIONS:
        log.debug("http_connection_given_up", connections=len(opened))
        next((one for one in opened[:-1] if one.is_idle), opened[0]).abort()


class _Server(web.Server):
    """Makes connections of ours, and tells problems that come before all middlewares, such as an odd Expect."""

    @classmethod
    def of(cls, made: web.Server) -> "_Server":
        """A server of ours that does what another would."""
        handle = made.request_handler

        async def told(request: Any) -> web.StreamResponse:
            try:
                return await handle(request)
            except web.HTTPException as error:
                return of_http_exception(error, request.rel_url)

        limits = made._kwargs  # noqa: SLF001 - aiohttp leaves no other way to connections of one's own
        return cls(
            told,
            request_factory=made.request_factory,
            handler_cancellation=made.handler_cancellation,
            loop=asyncio.get_running_loop(),
            **limits,
        )

    def __call__(self) -> web.RequestHandler:
        return Connection(self, loop=self._loop, **self._kwargs)


class Runner(web.AppRunner):
    """Runs an application on connections of ours, within the limits of this module.

    Parameters
    ----------
    application : Application
    shutdown_seconds : float
        That requests have to end when the worker does.
    """

    __slots__ = ()

    def __init__(self, application: web.Application, shutdown_seconds: float) -> None:
        super().__init__(application, access_log=None, shutdown_timeout=shutdown_seconds, **_LIMITS)

    async def _make_server(self) -> web.Server:
        return _Server.of(await super()._make_server())
