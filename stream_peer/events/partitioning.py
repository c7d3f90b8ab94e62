"""Which partition a key belongs to: the murmur2 hash that Java, Python and most other Kafka clients use."""

from struct import Struct

_words = Struct("<I").iter_unpack
_MASK = 0xFFFFFFFF
_MULTIPLIER = 0x5BD1E995


def murmur2(data: bytes) -> int:
    """32-bit murmur2 with Kafka's seed, as an unsigned integer.

    Examples
    --------
    >>> murmur2(b"21")
    3321034988
    """
    length = len(data)
    value = 0x9747B28C ^ length
    whole = length & ~3
    for (quarter,) in _words(data[:whole]):
        word = quarter * _MULTIPLIER & _MASK
        word = (word ^ (word >> 24)) * _MULTIPLIER & _MASK
        value = (value * _MULTIPLIER & _MASK) ^ word
    if whole < length:
        value = (value ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _MASK
    value = (value ^ (value >> 13)) * _MULTIPLIER & _MASK
    return value ^ (value >> 15)


def partition_of(key: str | bytes, partitions: int) -> int:
    """Partition of a key among ``partitions``, as Kafka's default partitioner chooses it."""
    data = key.encode() if isinstance(key, str) else key
    return (murmur2(data) & 0x7FFFFFFF) % partitions
