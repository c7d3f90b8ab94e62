"""Compares two tapes of one life, and says where they first differ.

Equal are, for each (topic, partition, key, revision), value, headers, time and tombstone; for each key the order; all
bytes of the feed-log and of dead letters; the feeds' sums each 100 records. Of a life that only ``ends`` alike, what
``order_free`` leaves of the last record of each key is equal, and weights, both to 1e-9.

Which revisions of ``weights`` and ``error-rates`` there are follows the moments of publishing. They are compared as
well, unless ``moments`` is off. Where a replay publishes at other moments than a worker today:

* A replay publishes changed feeds when the time of a partition's feed-log moves on, before the record that moves it. A
  worker does so after a slice of records (50 ms of work), each feed at most every ``publish_every`` by its own clock.
* A worker also publishes every changed feed, whether there is news or not, with each snapshot of its state: after so
  many records or bytes or seconds, and when a partition is let go. A replay does that once, at the end.
* Both leave out what moved no weight by 1e-4 and no alarm. What was published last is not in the state: after a restart
  a worker publishes a feed's next change in any case.
* After a rebuild both publish every changed feed; a worker writes what it owes of questions in slices before that, a
  replay with it.
* A replay folds a record of the feed-log the moment it is written. A worker's feed stage reads it later, together with
  others: between two questions' records it may publish more often or less often, never another value of a revision.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from stream_peer.events.topics import KEYED_BY_FEED
from tests.golden.records import KINDS, Life, Numbers, Tape, Written, text_of

TOLERANCE = 1e-9
_LARGE = 20_000
OrderFree = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]


class Difference(NamedTuple):
    """What differs, and how many records of the life were sent by then."""

    after: int
    kind: str
    text: str


def differences(base: Tape, here: Tape, life: Life, order_free: OrderFree, *, moments: bool = True) -> list[Difference]:
    """All differences, the first one first."""
    if life.ends:
        return list(_of_ends(base, here, order_free))
    before, after = base.places(), here.places()
    found = [
        difference
        for place in before.keys() | after.keys()
        for difference in _of_place(before.get(place, []), after.get(place, []), moments=moments)
    ]
    return sorted([*found, *_of_numbers(base, here)], key=lambda one: (one.after, KINDS.index(one.kind), one.text))


def missing(plain: Tape, other: Tape) -> list[Difference]:
    """What of a tape is not in another one that publishes more often: that of owners who are killed."""
    before, after = plain.places(), other.places()
    found = []
    for place in before.keys() | after.keys():
        ours, theirs = before.get(place, []), after.get(place, [])
        if place[0] in KEYED_BY_FEED:
            known = {_content(record) for record in theirs}
            theirs = [record for record in ours if _content(record) in known]
        found += list(_of_place(ours, theirs, moments=True))
    return sorted([*found, *_of_numbers(plain, other)])


def _of_place(base: Sequence[Written], here: Sequence[Written], *, moments: bool) -> Iterator[Difference]:
    """Of one key: its first difference."""
    if not moments and (base or here)[0].topic in KEYED_BY_FEED:
        base, here = _in_both(base, here), _in_both(here, base)
    for ordinal in range(max(len(base), len(here))):
        if ordinal >= min(len(base), len(here)):
            side, record = ("BASE", base[ordinal]) if ordinal < len(base) else ("here", here[ordinal])
            yield Difference(record.after, record.kind, f"{_named(record)}\n  only {side}")
            return
        old, new = base[ordinal], here[ordinal]
        if _content(old) != _content(new):
            yield Difference(min(old.after, new.after), old.kind, f"{_named(old)}{_fields(old, new)}")
            return


def _in_both(records: Sequence[Written], others: Sequence[Written]) -> list[Written]:
    """Records of revisions that are on both sides, once; all tombstones."""
    known = {record.revision for record in others}
    by_revision = {record.revision: record for record in records if record.revision in known}
    return list(by_revision.values())


def _content(record: Written) -> tuple[Any, ...]:
    return record.value, record.at, tuple(tuple(header) for header in record.headers), text_of(record.key)


def _named(record: Written) -> str:
    return f"{record.topic}-{record.partition}, key {text_of(record.key)}, revision {record.revision}:"


def _fields(old: Written, new: Written) -> str:
    """The first fields that differ."""
    told = [f"{name}: {one!r} at BASE, {two!r} here" for name, one, two in _pairs(old, new) if one != two]
    return "".join(f"\n  {line}" for line in told[:5]) + ("\n  and more" if len(told) > 5 else "")


def _pairs(old: Written, new: Written) -> Iterator[tuple[str, Any, Any]]:
    yield "time", old.at, new.at
    one, two = dict(old.headers), dict(new.headers)
    for name in {**one, **two}:
        yield f"header {name}", one.get(name), two.get(name)
    if old.decoded() is None or new.decoded() is None or old.decoded() == new.decoded():
        yield "bytes", old.value, new.value
        return
    flat, other = dict(leaves(old.decoded())), dict(leaves(new.decoded()))
    for path in {**flat, **other}:
        yield path, flat.get(path, "nothing"), other.get(path, "nothing")


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every number and text in a decoded value, with its path."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        yield f"{path}.length", len(value)
        for place, inner in enumerate(value):
            yield from leaves(inner, f"{path}.{place}")
    else:
        yield path, value


def _of_numbers(base: Tape, here: Tape) -> Iterator[Difference]:
    """The first look at which sums differ."""
    for (after, old), (_, new) in zip(base.looks, here.looks, strict=False):
        if old != new:
            yield Difference(after, "numbers", "sums:" + _first(old, new))
            return
    if len(base.looks) != len(here.looks):
        yield Difference(0, "numbers", f"{len(base.looks)} looks at BASE, {len(here.looks)} here")


def _first(old: Numbers, new: Numbers) -> str:
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    told = [f"\n  {name}: {old.get(name, 0)} at BASE, {new.get(name, 0)} here" for name in names[:5]]
    return "".join(told) + (f"\n  and {len(names) - 5} more columns" if len(names) > 5 else "")


# --- ends and values, to a tolerance ---


def ends(tape: Tape, order_free: OrderFree) -> dict[str, Mapping[str, Any]]:
    """By topic and key: what of the last output does not depend on the order of events, and weights."""
    found: dict[str, Mapping[str, Any]] = {}
    for record in tape.written:
        value = record.decoded()
        if record.kind not in ("questions", "feeds") or record.topic == "forecast-events":
            continue
        name = f"{record.topic} {text_of(record.key)}"
        found.pop(name, None)
        if value is not None:
            found[name] = {**order_free(record.topic, value), **(_weights(value) if record.topic == "weights" else {})}
    return found


def _weights(value: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"weights": [{name: expert[name] for name in ("id", "mix", "select")} for expert in value["experts"]]}


def _of_ends(base: Tape, here: Tape, order_free: OrderFree) -> Iterator[Difference]:
    old, new = ends(base, order_free), ends(here, order_free)
    for name in sorted(old.keys() | new.keys()):
        for text in apart(old.get(name, {}), new.get(name, {})):
            yield Difference(here.after, "questions", f"the last {name}:\n  {text}")


def apart(old: Any, new: Any) -> list[str]:
    """Where two decoded values are further from each other than the tolerance."""
    one, two = dict(leaves(old)), dict(leaves(new))
    return [
        f"{path}: {one.get(path)!r} at BASE, {two.get(path)!r} here"
        for path in {**one, **two}
        if not _near(one.get(path), two.get(path))
    ]


def _near(old: Any, new: Any) -> bool:
    if isinstance(old, float) and isinstance(new, float | int) and not isinstance(new, bool):
        return math.isclose(old, new, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return bool(old == new)


def some_values(tape: Tape, most: int) -> list[list[Any]]:
    """A few outputs of each topic: topic, key, revision and value, to be compared to the tolerance elsewhere."""
    found = []
    for topic in sorted({record.topic for record in tape.written if record.kind in ("questions", "feeds")}):
        of_topic = [one for one in tape.written if one.topic == topic and len(one.value or b"") < _LARGE]
        of_topic = [one for one in of_topic if one.revision is not None]
        step = max(1, len(of_topic) // most)
        found += [[topic, text_of(one.key), one.revision, one.decoded()] for one in of_topic[step - 1 :: step][:most]]
    return found


def values_apart(recorded: Sequence[Sequence[Any]], tape: Tape) -> list[str]:
    """Which of ``some_values`` are not what a tape has."""
    known = {(one.topic, text_of(one.key), one.revision): one for one in tape.written if one.revision is not None}
    found = []
    for topic, key, revision, value in recorded:
        record = known.get((topic, key, revision))
        told = ["it is not there"] if record is None else apart(value, record.decoded())
        found += [f"{topic} {key} revision {revision}: {text}" for text in told]
    return found
