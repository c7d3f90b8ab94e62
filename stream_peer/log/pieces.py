"""Values that are cut to fit into state records of bounded size."""

from collections.abc import Mapping

LARGEST = 380_000
"""Bytes of a piece: two versions of it stay below a broker's usual limit of 1 MB."""
_COUNT = 4  # bytes that say how many pieces there are, before the first


def cut(kind: bytes, name: bytes, value: bytes, before: int = 0) -> dict[bytes, bytes | None]:
    r"""State records that hold a value: ``kind/name``, ``kind1/name``, …; those of ``before`` that are over are gone.

    Examples
    --------
    >>> cut(b"e", b"econ/q1", b"value", before=2)
    {b'e/econ/q1': b'\x01\x00\x00\x00value', b'e1/econ/q1': None}
    """
    count = max(1, -(-len(value) // LARGEST))
    rows: dict[bytes, bytes | None] = {}
    for number in range(count):
        piece = value[number * LARGEST : (number + 1) * LARGEST]
        rows[_key(kind, name, number)] = piece if number else count.to_bytes(_COUNT, "little") + piece
    rows.update({_key(kind, name, number): None for number in range(count, before)})
    return rows


def join_chunks(kind: bytes, entries: Mapping[bytes, bytes]) -> dict[bytes, tuple[bytes, int]]:
    """All values of a kind by name, each with the number of records that hold it."""
    values = {}
    prefix = kind + b"/"
    for key, first in entries.items():
        if key.startswith(prefix):
            name = key[len(prefix) :]
            count = int.from_bytes(first[:_COUNT], "little")
            rest = (entries[_key(kind, name, number)] for number in range(1, count))
            values[name] = (b"".join((first[_COUNT:], *rest)), count)
    return values


def whole(record: bytes) -> memoryview:
    """The value of a single state record, without a copy."""
    return memoryview(record)[_COUNT:]


def removed(kind: bytes, name: bytes, before: int) -> dict[bytes, bytes | None]:
    """State records that say that a value is gone."""
    return {_key(kind, name, number): None for number in range(before)}


def _key(kind: bytes, name: bytes, number: int) -> bytes:
    return b"%b%b/%b" % (kind, b"%d" % number if number else b"", name)
