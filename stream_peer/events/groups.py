"""Questions that are not yes/no: a group of yes/no questions, one for each option or threshold.

The id of a part is that of its group, ``::=`` and an option ("is it this one?"), or ``::<=`` and a threshold ("is it at
most this?"). All parts belong to the partition of their group, where its events arrive.
"""

import re
from collections.abc import Sequence
from math import isfinite
from typing import Literal, NamedTuple

from stream_peer.events.partitioning import partition_of
from stream_peer.events.times import from_iso, to_iso, to_milliseconds

_PART = re.compile(r"(.+?)::(<?=)(.+)", re.DOTALL)
_MIDNIGHT = "T00:00:00Z"
_SHOWN = 8


class Value(NamedTuple):
    """What a threshold or an outcome is compared by."""

    kind: Literal["number", "time"]
    size: float

    def __str__(self) -> str:
        if self.kind == "time":
            return to_iso(int(self.size)).removesuffix(_MIDNIGHT)
        return repr(self.size).removesuffix(".0")


def value_of(said: float | str) -> Value:
    """A number, or a moment in ISO 8601.

    Raises
    ------
    ValueError, OverflowError
        If it is neither.

    Examples
    --------
    >>> [str(value_of(said)) for said in (3, "2.50", "2026-12-31", "2026-12-31T09:00+02")]
    ['3', '2.5', '2026-12-31', '2026-12-31T07:00:00Z']
    """
    try:
        number = float(said) + 0.0  # there is one zero
    except ValueError:
        return Value("time", to_milliseconds(from_iso(str(said))))
    if not isfinite(number):
        raise ValueError(said)
    return Value("number", number)


def option_id(group: str, option: str) -> str:
    """The id of the question whether it is this option."""
    return f"{group}::={option}"


def threshold_id(group: str, threshold: Value) -> str:
    """The id of the question whether it is at most this; one threshold has one id, however it is spelled."""
    return f"{group}::<={threshold}"


def group_id_of(question_id: str) -> str | None:
    """The group of a part; None of a question that is none.

    Examples
    --------
    >>> group_id_of("chair::=Ada"), group_id_of("cpi::<=2.5"), group_id_of("plain"), group_id_of("cpi::<=low")
    ('chair', 'cpi', None, None)
    """
    return _split(question_id)[0] or None


def name_of(part: str) -> str:
    """The option or threshold of a part."""
    return _split(part)[2]


def limit_of(part: str) -> Value | None:
    """The threshold of a part; None of an option."""
    _, sign, name = _split(part)
    return value_of(name) if sign == "<=" else None


def _split(question_id: str) -> tuple[str, str, str]:
    """Group, sign and name of a part; all empty of a question that is none."""
    found = _PART.fullmatch(question_id) if "::" in question_id else None
    if found is None or (found[2] == "<=" and not _is_value(found[3])):
        return "", "", ""
    return found[1], found[2], found[3]


def _is_value(name: str) -> bool:
    try:
        value_of(name)
    except (ValueError, OverflowError):
        return False
    return True


def home_of(question_id: str, partitions: int) -> int:
    """The partition of ``forecast-events`` that a question belongs to: a part to that of its group."""
    return partition_of(group_id_of(question_id) or question_id, partitions)


def outcomes_of(parts: Sequence[str], said: str | Value) -> dict[str, int]:
    """What the outcome of a group, an option or a value, is for each of its parts.

    Raises
    ------
    ValueError
        If it is none of the options, or cannot be compared with the thresholds. The message is for the sender.

    Examples
    --------
    >>> outcomes_of(["chair::=Ada", "chair::=Bo"], "Bo")
    {'chair::=Ada': 0, 'chair::=Bo': 1}
    >>> outcomes_of(["cpi::<=2", "cpi::<=3"], value_of(2.7))
    {'cpi::<=2': 0, 'cpi::<=3': 1}
    """
    found = {part: outcome for part in parts if (outcome := outcome_of(part, said)) is not None}
    if not found or (isinstance(said, str) and 1 not in found.values()):
        names = [name_of(part) for part in parts]
        shown = ", ".join(map(repr, names[:_SHOWN])) + (", …" if len(names) > _SHOWN else "")
        msg = f"{str(said)!r} can be no outcome of this group, whose options or thresholds are {shown}"
        raise ValueError(msg)
    return found


def outcome_of(part: str, said: str | Value) -> int | None:
    """What the outcome of its group, an option or a value, is for one part; None: the part is of another kind."""
    limit = limit_of(part)
    if isinstance(said, str):
        return int(name_of(part) == said) if limit is None else None
    return int(said.size <= limit.size) if limit is not None and said.kind == limit.kind else None
