"""Reproducible random numbers: each depends on a secret seed and its purpose, and on nothing else."""

import hashlib

from stream_peer.events.times import Milliseconds


def feed_seed(secret: bytes, feed: str, seed_setting: str = "") -> bytes:
    """The seed of a feed, from the secret of the release and the feed's setting; it does not reveal the secret."""
    return hashlib.blake2b(_joined(secret, feed.encode(), seed_setting.encode()), digest_size=32).digest()


def fingerprint(secret: bytes) -> str:
    """Eight hex digits that differ for different secrets, and may be shown.

    Examples
    --------
    >>> fingerprint(b"secret")
    '04342721'
    """
    return hashlib.blake2b(secret, digest_size=4, person=b"fingerprint").hexdigest()


def draw(seed: bytes, feed: str, question_id: str, boundary: Milliseconds, purpose: str) -> float:
    """A number in [0, 1), uniform to 53 bits: always the same for the same round and purpose.

    Examples
    --------
    >>> seed = feed_seed(b"secret", "econ")
    >>> draw(seed, "econ", "q1", 0, "tie") == draw(seed, "econ", "q1", 0, "tie")
    True
    >>> draw(seed, "econ", "q1", 0, "tie") == draw(seed, "econ", "q1", 0, "select")
    False
    """
    return draw_after(prefix_of(seed, feed), question_id, boundary, purpose)


def prefix_of(seed: bytes, feed: str) -> bytes:
    """The bytes that all draws of a feed hash first."""
    return _joined(seed, feed.encode())


def draw_after(prefix: bytes, question_id: str, boundary: Milliseconds, purpose: str) -> float:
    """``draw``, with the feed's ``prefix_of`` computed before."""
    question, moment, use = question_id.encode(), b"%d" % boundary, purpose.encode()
    parts = b"%b%d:%b%d:%b%d:%b" % (prefix, len(question), question, len(moment), moment, len(use), use)
    digest = hashlib.blake2b(parts, digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) * 2.0**-53


def group_of(seed: bytes, feed: str, expert_id: str, n_groups: int, of_round: str = "") -> int:
    """The number of an expert's group: a fixed one, or that of one round.

    Examples
    --------
    >>> seed = feed_seed(b"secret", "econ")
    >>> {group_of(seed, "econ", f"expert-{number}", 3) for number in range(100)}
    {0, 1, 2}
    """
    parts = _joined(seed, feed.encode(), expert_id.encode(), of_round.encode(), b"group")
    return int.from_bytes(hashlib.blake2b(parts, digest_size=8).digest(), "big") % n_groups


def _joined(*parts: bytes) -> bytes:
    """Join parts, each after its length: different lists of parts never give the same bytes."""
    return b"".join([b"%d:%b" % (len(part), part) for part in parts])
