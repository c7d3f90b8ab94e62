"""Looks again and again, while a worker runs, whether its topics are as planned."""

import threading
from collections.abc import Callable, Mapping

import structlog

from stream_peer.errors import NotAuthorisedError, StreamPeerError, TopicsError

log = structlog.get_logger(__name__)

EVERY_SECONDS = 30.0

Check = Callable[[Mapping[str, str]], Mapping[str, str]]
"""Looks at the topics: ids before to ids now."""


class TopicsWatch:
    """A thread of its own: the clients that it uses wait.

    Parameters
    ----------
    check : callable
        Gets the ids that the topics had, and returns those that they have. Raises what is not as planned, as before the
        start, and which topics that are folded were deleted.
    ids : mapping
        The ids of the topics at the start. Brokers before 2.8 give none.

    Attributes
    ----------
    fault : str
        What is not as planned, and what to do; empty: nothing.
    """

    def __init__(self, check: Check, ids: Mapping[str, str], every: float = EVERY_SECONDS) -> None:
        self.fault = ""
        self._check = check
        self._ids = dict(ids)
        self._every = every
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="topics-watch", daemon=True)

    def __enter__(self) -> "TopicsWatch":
        """Begin to watch."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End watching; a look that waits for a broker is not waited for."""
        self._done.set()

    def look(self) -> None:
        """Look once. Where no broker answers nothing new is known."""
        try:
            ids = self._check(self._ids)
        except (TopicsError, NotAuthorisedError) as error:
            self._tell(" ".join(str(error).split()))
        except StreamPeerError as error:
            log.debug("topics_not_checked", reason=str(error))
        else:
            self._tell("")
            self._say_recreated(ids)

    def _say_recreated(self, ids: Mapping[str, str]) -> None:
        """Say which outputs were recreated: it is no fault of what is folded, but what they held is gone."""
        for topic in sorted(name for name, found in ids.items() if self._ids.get(name, found) != found):
            log.warning("topic_recreated", topic=topic, action="publish what changes from now on")
        self._ids.update(ids)

    def _tell(self, fault: str) -> None:
        if fault and fault != self.fault:
            log.error("topics_changed", reason=fault)
        elif self.fault and not fault:
            log.info("topics_as_planned")
        self.fault = fault

    def _watch(self) -> None:
        while not self._done.wait(self._every):
            self.look()
