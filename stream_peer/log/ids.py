"""Ids of experts that have changed: ids of renamed experts, and digests of erased ones."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping

from stream_peer.errors import RejectedEvent
from stream_peer.events.rejections import Reason

Given = dict[str, list[str]]
"""Later ids of renamed experts by the first id, the newest last."""


class Names:
    """The ids of the renamed experts of one feed. Events that name any of them count for the first one.

    Attributes
    ----------
    given : dict of str to list of str
        As stored.
    """

    __slots__ = ("_firsts", "given")

    def __init__(self, given: Mapping[str, Iterable[str]] | None = None) -> None:
        self.given: Given = {first: list(names) for first, names in (given or {}).items()}
        self._firsts = {name: first for first, names in self.given.items() for name in names}

    def first(self, expert_id: str) -> str:
        """The first id of an expert; its own if it was not renamed."""
        return self._firsts.get(expert_id, expert_id)

    def shown(self, first: str) -> str:
        """The newest id of an expert, found by its first."""
        names = self.given.get(first)
        return names[-1] if names else first

    def all_of(self, expert_id: str) -> list[str]:
        """All ids of an expert, the first one first."""
        first = self.first(expert_id)
        return list(dict.fromkeys((first, *self.given.get(first, ()))))

    def give(self, expert_id: str, name: str) -> None:
        """Rename an expert.

        Raises
        ------
        RejectedEvent
            If another expert was renamed from it, or to it.
        """
        first = self.first(expert_id)
        if not self._is_free(first, name):
            raise taken(name)
        self.given[first] = [*(one for one in self.given.get(first, ()) if one != name), name]
        self._firsts[name] = first

    def _is_free(self, first: str, name: str) -> bool:
        return name == first or (name not in self.given and self._firsts.get(name, first) == first)

    def drop(self, expert_id: str) -> None:
        """Drop all ids of an expert."""
        for name in self.given.pop(self.first(expert_id), ()):
            self._firsts.pop(name, None)

    def joined(self, given: Mapping[str, Iterable[str]]) -> "Names":
        """These names and those of an imported feed, which are older."""
        found = Names()
        for names in (given, self.given):
            for expert_id, name in _pairs(names):
                if found._is_free(found.first(expert_id), name):
                    found.give(expert_id, name)
        return found


def _pairs(given: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, str]]:
    return ((first, name) for first, names in given.items() for name in names)


def taken(name: str) -> RejectedEvent:
    """The rejection of a new id that another expert has."""
    msg = f"{name!r} is an expert of the feed already: two experts cannot be made one"
    return RejectedEvent(Reason.CONTRADICTORY, field="rename", message=msg)


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
        """Refuse the id in the feed for ever."""
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
    """The rejection of forecasts of erased experts; it names nobody."""
    of_them = "the expert" if experts == 1 else f"{refused} of the {experts} experts"
    msg = f"{of_them} asked to be forgotten in this feed; payload and key are left out"
    return RejectedEvent(Reason.FORGOTTEN, message=msg)
