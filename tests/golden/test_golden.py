"""What the service writes of the golden lives is what it wrote when they were recorded, byte for byte."""

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.golden import comparing, lives, recorded, stages, state
from tests.golden.records import KINDS, Life, Tape, read_life, read_tape, write_life, write_tape

RECORDED = recorded.read()
OF_DATA = [pytest.param(name, marks=pytest.mark.data) for name in lives.data_names()]
WHOLE = [name for name in lives.lives() if name not in ("moved", "import-events")]


@cache
def life_of(name: str) -> Life:
    own = lives.lives()
    return own[name]() if name in own else lives.data_lives(Path(os.environ["STREAM_PEER_DATA"]))[name]()


@cache
def tape_of(name: str) -> Tape:
    return stages.fold(life_of(name))


def skip_elsewhere() -> None:
    """Other vectors or libraries may round other last bits: there only values are compared."""
    made_on, here = RECORDED["machine"], recorded.machine()
    other = [f"{name} {here[name]}, not {made_on[name]}" for name in here if here[name] != made_on[name]]
    if other:
        pytest.skip(f"digests were recorded on another machine: {'; '.join(other)}")


@pytest.mark.parametrize("name", [*WHOLE, *OF_DATA])
def test_a_life_is_the_one_that_was_recorded(name: str) -> None:
    assert life_of(name).digest == RECORDED[name]["life"], "other events are sent: python -m tests.golden write"


@pytest.mark.parametrize("name", [*WHOLE, *OF_DATA])
def test_values_are_those_that_were_recorded(name: str) -> None:
    assert comparing.values_apart(RECORDED[name]["values"], tape_of(name)) == []


@pytest.mark.parametrize("name", [*WHOLE, *OF_DATA])
def test_all_bytes_are_those_that_were_recorded(name: str) -> None:
    skip_elsewhere()
    for kind in KINDS:
        was, now = RECORDED[name]["digests"][kind].split(), tape_of(name).digests[kind]
        first = next((look for look, (old, new) in enumerate(zip(was, now, strict=False), 1) if old != new), None)
        assert first is None, f"{kind} differ after {first * 100} records or before: make golden BASE=COMMIT shows how"
        assert len(was) == len(now)


@pytest.mark.parametrize("name", ["moved", "import-events"])
def test_a_feed_that_moved_ends_as_it_did(name: str) -> None:
    assert life_of(name).digest == RECORDED[name]["life"]
    was, now = RECORDED[name]["ends"], comparing.ends(tape_of(name), stages.order_free)
    assert comparing.apart(_by_first_ids(was), _by_first_ids(now)) == []


def _by_first_ids(ends: Any) -> Any:
    """A question may have been published before an expert was renamed, or once more behind it."""
    return json.loads(json.dumps(ends).replace('"id": "e0-6"', '"id": "e0"'))


@pytest.mark.parametrize(
    ("name", "every"), [("short", 31), ("long", stages.KILLED_EVERY), ("crowd", 331), ("wide", 3), ("edges", 13)]
)
def test_owners_who_are_killed_write_the_same(name: str, every: int) -> None:
    assert comparing.missing(tape_of(name), stages.fold(life_of(name), kill=every)) == []


def test_question_state_of_the_release_that_recorded_it_is_taken_up() -> None:
    after = stages.fold(life_of("short"), questions=state.read())
    assert comparing.missing(tape_of("short"), after) == []
    assert comparing.missing(after, tape_of("short")) == []


def test_lives_and_tapes_are_the_same_once_read(tmp_path: Path) -> None:
    life, tape = life_of("short"), tape_of("short")
    write_life(life, tmp_path)
    assert read_life(tmp_path / "short.jsonl").digest == life.digest
    write_tape(life, tape, tmp_path)
    assert read_tape(tmp_path / "short.jsonl").digests == tape.digests


def test_the_first_difference_is_found() -> None:
    tape, other = tape_of("short"), Tape()
    place = next(n for n, one in enumerate(tape.written) if one.topic == "weights" and one.after > 200)
    for number, record in enumerate(tape.written):
        value = record.value or b""
        other.take(record._replace(value=value.replace(b'"mix":0.', b'"mix":1.', 1)) if number == place else record)
    other.looks = tape.looks
    (found,) = comparing.differences(tape, other, life_of("short"), stages.order_free)
    assert found.after == tape.written[place].after
    assert "experts.0.mix" in found.text
    assert comparing.values_apart(comparing.some_values(tape, 1000), other) != []


def test_committed_files_are_small() -> None:
    files = [path for path in lives.HERE.iterdir() if path.is_file()]
    assert max(path.stat().st_size for path in files) < 1_000_000
    assert state.FILE.stat().st_size < 200_000
