"""An event loop on simulated time. Which process goes next is drawn from the seed; within one, order is asyncio's.

Every callback belongs to a `Process`, which tasks inherit as a context variable. A process that is killed never goes
on: no ``finally`` of it runs, as after ``kill -9``. One that is frozen goes on when it is thawed.
"""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from random import Random
from typing import Any

STEP_SECONDS = 0.000_05  # that a callback takes
_LOOK_SECONDS = 0.2
_CURRENT: ContextVar["Process | None"] = ContextVar("process", default=None)


class _Handle:
    """A callback to come; ``asyncio`` cancels it."""

    __slots__ = ("arguments", "callback", "context", "is_cancelled", "moment", "process")

    def __init__(self, moment: float, callback: Any, arguments: Any, context: Context, process: "Process") -> None:
        self.moment, self.callback, self.arguments = moment, callback, arguments
        self.context, self.process = context, process
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True

    def cancelled(self) -> bool:
        return self.is_cancelled

    def when(self) -> float:
        return self.moment


class Process:
    """Callbacks that live and die together."""

    def __init__(self, loop: "SimulatedLoop", name: str) -> None:
        self.loop, self.name = loop, name
        self.ready: deque[_Handle] = deque()
        self.tasks: list[object] = []  # kept: collecting a coroutine would run its ``finally``
        self.is_alive, self.is_frozen = True, False
        self.stands_since = 0.0
        self.steps = 0
        self._strikes: list[tuple[int, Callable[[], None]]] = []

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """A task of this process."""
        context = copy_context()
        context.run(_CURRENT.set, self)
        self.loop.create_task(work, context=context)

    def strike_after(self, steps: int, what: Callable[[], None]) -> None:
        """Let something happen to the process after so many of its steps: between any two of its awaits."""
        self._strikes.append((self.steps + steps, what))

    def kill(self) -> None:
        """End it: nothing of it goes on."""
        self.is_alive, self.stands_since = False, self.loop.now
        self.ready.clear()

    def freeze(self) -> None:
        """Stop it, until `thaw`."""
        self.is_frozen, self.stands_since = True, self.loop.now

    def thaw(self) -> None:
        """Let it go on where it stood."""
        self.is_frozen = False

    @property
    def has_stood_for(self) -> float:
        """Seconds since it was killed or frozen; 0: it goes."""
        return 0.0 if self.is_alive and not self.is_frozen else self.loop.now - self.stands_since

    def stepped(self) -> None:
        """One of its callbacks was run."""
        self.steps += 1
        due = [what for steps, what in self._strikes if self.steps >= steps]
        if due:
            self._strikes = [strike for strike in self._strikes if self.steps < strike[0]]
            for what in due:
                what()


class SimulatedLoop(asyncio.AbstractEventLoop):
    """The part of an event loop that tasks, timers and locks need."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.now = 0.0
        self.world = Process(self, "world")
        self.errors: list[str] = []
        self._processes = [self.world]
        self.all_processes: list[Process] = []
        self._timers: list[tuple[float, int, _Handle]] = []
        self._timer_number = 0

    def process(self, name: str) -> Process:
        """A new process."""
        made = Process(self, name)
        self._processes = [*(each for each in self._processes if each.is_alive), made]
        self.all_processes.append(made)
        return made

    # --- what asyncio asks for ---

    def time(self) -> float:
        return self.now

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> Any:  # type: ignore[override]
        handle = self._handle(self.now, callback, args, context)
        if handle.process.is_alive:
            handle.process.ready.append(handle)
        return handle

    def call_at(self, when: float, callback: Any, *args: Any, context: Context | None = None) -> Any:  # type: ignore[override]
        handle = self._handle(when, callback, args, context)
        self._timer_number += 1
        heapq.heappush(self._timers, (when, self._timer_number, handle))
        return handle

    def call_later(self, delay: float, callback: Any, *args: Any, context: Context | None = None) -> Any:  # type: ignore[override]
        return self.call_at(self.now + delay, callback, *args, context=context)

    def _handle(self, when: float, callback: Any, arguments: Any, context: Context | None) -> _Handle:
        context = copy_context() if context is None else context
        return _Handle(when, callback, arguments, context, _process_of(context) or self.world)

    def create_future(self) -> "asyncio.Future[Any]":
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: str | None = None, context: Context | None = None) -> Any:
        task: Any = asyncio.Task(coro, loop=self, name=name or "task", context=context)
        task._log_destroy_pending = False
        process = (_CURRENT.get() if context is None else _process_of(context)) or self.world
        process.tasks.append(task)
        return task

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def call_exception_handler(self, context: Any) -> None:
        self.errors.append(str(context.get("exception") or context.get("message")))

    # --- running ---

    def later(self, delay: float, callback: Callable[..., None], *args: Any) -> None:
        """Call back in the world, outside all processes."""
        self.call_at(self.now + delay, callback, *args, context=_WORLD)

    def run(self, is_done: Callable[[], bool], limit: float) -> bool:
        """Run until it is done, looked at now and then, or the simulated time is up; return whether it is done."""
        asyncio.events._set_running_loop(self)
        look = self.now
        try:
            while self.now < look or not is_done():
                if self.now >= look:
                    look = self.now + _LOOK_SECONDS
                self._wake()
                able = [process for process in self._processes if process.ready and not process.is_frozen]
                if able:
                    self._step(able[0] if len(able) == 1 else able[int(self.random.random() * len(able))])
                elif self._timers and self._timers[0][0] <= limit:
                    self.now = max(self.now, self._timers[0][0])
                else:
                    return is_done()
            return True
        finally:
            asyncio.events._set_running_loop(None)

    def _wake(self) -> None:
        while self._timers and (self._timers[0][0] <= self.now or self._timers[0][2].is_cancelled):
            handle = heapq.heappop(self._timers)[2]
            if handle.process.is_alive and not handle.is_cancelled:
                handle.process.ready.append(handle)

    def _step(self, process: Process) -> None:
        handle = process.ready.popleft()
        if not handle.is_cancelled:
            self.now += STEP_SECONDS
            handle.context.run(handle.callback, *handle.arguments)
            process.stepped()


_WORLD = Context()


def _process_of(context: Context) -> Process | None:
    found: Process | None = context.get(_CURRENT, None)
    return found
