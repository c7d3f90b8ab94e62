"""Erased experts: their ids are refused, and only a digest of each is kept."""

import hashlib
from collections.abc import Iterable

from stream_peer.errors import RejectedEvent
from stream_peer.events.rejections import Reason

_DIGEST_BYTES = 16


def digest_of_id(secret: bytes, feed: str, expert_id: str) -> bytes:
    """The digest of an erased expert's id: it recognises the id and does not reveal it.

    Both stages make the same digest: an expert that is erased in an exported feed is refused wherever it is imported.
    """
    named = b"".join(len(part).to_bytes(4, "little") + part for part in (feed.encode(), expert_id.encode()))
    return hashlib.blake2b(named, digest_size=_DIGEST_BYTES, key=secret[:64]).digest()


class ErasedExperts:
    """Ids that are refused, feed by feed.

    Parameters
    ----------
    secret : bytes
        The release's: without it nobody can try out which ids the digests stand for.
    digests : iterable of bytes
        As stored.
    """

    __slots__ = ("_secret", "digests")

    def __init__(self, secret: bytes, digests: Iterable[bytes] = ()) -> None:
        self._secret = secret
        self.digests = set(digests)

    def add(self, feed: str, expert_id: str) -> None:
        """From here on the id is refused in the feed, for good."""
        self.digests.add(digest_of_id(self._secret, feed, expert_id))

    def among(self, feed: str, experts: Iterable[str]) -> list[str]:
        """Those of some experts that are refused in a feed."""
        if not self.digests:
            return []
        return [expert_id for expert_id in experts if digest_of_id(self._secret, feed, expert_id) in self.digests]

    def stored(self) -> list[bytes]:
        """The digests, in a fixed order."""
        return sorted(self.digests)


def erased_rejection(refused: int, experts: int) -> RejectedEvent:
    """Why a forecast is refused, or some of the forecasts of one message; it names nobody."""
    of_them = "the expert" if experts == 1 else f"{refused} of the {experts} experts"
    msg = f"{of_them} asked to be forgotten in this feed; payload and key are left out"
    return RejectedEvent(Reason.FORGOTTEN, message=msg)
