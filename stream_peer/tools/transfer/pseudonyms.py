"""Names in place of ids: always the same for the same id and key, and without the key no way back."""

import hashlib
from typing import Literal

from stream_peer.errors import FeedTransferError

_LEAST_KEY_BYTES = 16
_DIGEST_BYTES = 12

Kind = Literal["expert", "question", "team"]
_PREFIX = {"expert": "e-", "question": "q-", "team": "t-"}


class Pseudonyms:
    """Pseudonyms under a key: ``e-`` and 24 hexadecimal digits for an expert, ``q-`` for a question, ``t-`` for a team.

    Keyed BLAKE2b of kind and id, 96 bits; a key longer than 64 bytes is hashed first.

    Raises
    ------
    FeedTransferError
        If the key is too short to keep anything secret.

    Examples
    --------
    >>> names = Pseudonyms(b"a key of some length")
    >>> names.of("expert", "ann") == names.of("expert", "ann") != names.of("question", "ann")
    True
    """

    def __init__(self, key: bytes, *, questions: bool = False) -> None:
        if len(key) < _LEAST_KEY_BYTES:
            raise FeedTransferError(
                f"the key of the pseudonyms has {len(key)} bytes; at least {_LEAST_KEY_BYTES} are needed"
            )
        self._key = key if len(key) <= hashlib.blake2b.MAX_KEY_SIZE else hashlib.blake2b(key).digest()
        self._questions = questions

    @property
    def fingerprint(self) -> str:
        """Eight hexadecimal digits that tell keys apart, and may be shown."""
        return hashlib.blake2b(self._key, digest_size=4, person=b"pseudonyms").hexdigest()

    def of(self, kind: Kind, name: str) -> str:
        """The pseudonym of an id."""
        named = kind.encode() + b"\0" + name.encode()
        return _PREFIX[kind] + hashlib.blake2b(named, digest_size=_DIGEST_BYTES, key=self._key).hexdigest()

    def expert(self, expert_id: str) -> str:
        """That of an expert."""
        return self.of("expert", expert_id)

    def team(self, team: str) -> str:
        """That of a team."""
        return self.of("team", team)

    def question(self, question_id: str) -> str:
        """That of a question, or its id where only experts get one."""
        return self.of("question", question_id) if self._questions else question_id
