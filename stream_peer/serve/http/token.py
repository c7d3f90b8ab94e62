"""Bearer tokens: a request needs one of them. Their file may change while the worker runs."""

import codecs
import errno
import hmac
import stat
from pathlib import Path
from typing import Protocol

import structlog

log = structlog.get_logger(__name__)

_SCHEME = "bearer "


class Gate(Protocol):
    """Decides which requests are answered."""

    def admits(self, authorization: str | None) -> bool:
        """Whether the value of an ``Authorization`` header is good enough; None: there was none."""


class Everybody:
    """Lets everybody ask."""

    def admits(self, authorization: str | None) -> bool:
        """Yes."""
        del authorization
        return True


class TokenFile:
    """Lets those ask who know a token: a line of a file, which is read again whenever it has changed.

    A file that cannot be read, or holds none, lets nobody: a mistake must not open the door.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: object = None
        self._tokens: list[bytes] = []

    def admits(self, authorization: str | None) -> bool:
        """Whether it bears one of the tokens; how long that takes says nothing of how near it came."""
        self._read()
        if authorization is None or authorization[: len(_SCHEME)].lower() != _SCHEME:
            return False
        given = authorization[len(_SCHEME) :].strip().encode(errors="surrogateescape")
        return sum(hmac.compare_digest(given, token) for token in self._tokens) > 0  # all are compared, always

    def _read(self) -> None:
        try:
            seen: object = _state_of(self._path)
            if seen != self._seen:
                content = self._path.read_bytes().removeprefix(codecs.BOM_UTF8)  # which some editors write unasked
                self._tokens = [line.strip() for line in content.splitlines() if line.strip()]
                self._seen = seen
                if not self._tokens:
                    log.warning("http_token_missing", file=str(self._path), reason="it holds no token: nobody may ask")
        except OSError as error:
            if self._tokens or self._seen is None:
                log.warning("http_token_missing", file=str(self._path), reason=error.strerror)
            self._tokens, self._seen = [], error.errno


def _state_of(path: Path) -> tuple[int, int, int]:
    """What differs once a file has changed."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):  # a pipe would be waited for, and all else with it
        raise OSError(errno.EINVAL, "it is no regular file")
    return found.st_mtime_ns, found.st_size, found.st_ino
