"""Single promises of the changelog; the whole of it is modelled in tests/property/test_state_log.py."""

import pytest

from stream_peer.engine.stage import Snapshot
from stream_peer.engine.state_log import NOTHING_APPLIED, Fold, HeadRecord, Row, Writer, claim_row
from stream_peer.errors import ForeignWriterError, StateError


class Log:
    """One changelog partition."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def owner(self, name: str) -> tuple[Fold, Writer]:
        self.rows.append(claim_row(0, name))
        fold = self.read()
        fold.recovered()
        return fold, Writer(fold, 0, name, fold.next)

    def read(self) -> Fold:
        fold = Fold()
        for offset, row in enumerate(self.rows):
            fold.add(offset, *row)
        return fold

    def write(self, writer: Writer, applied: int, *, head: bool = True, **entries: bytes | None) -> None:
        snapshot = Snapshot({key.encode(): value for key, value in entries.items()}, b"head")
        rows = writer.entry_rows(snapshot, applied)
        rows += [writer.head_row(snapshot, applied)] if head else []
        writer.appended(len(self.rows), len(rows))
        self.rows += rows
        if head:
            writer.committed(snapshot, applied)


def test_an_empty_changelog_holds_no_state() -> None:
    assert Log().read().recovered() == (NOTHING_APPLIED, None, {})


def test_entries_that_no_head_covers_are_rolled_back_to_the_version_before() -> None:
    log = Log()
    _, writer = log.owner("a")
    log.write(writer, 9, x=b"1")
    log.write(writer, 19, head=False, x=b"2", y=b"3")

    assert log.read().recovered() == (9, b"head", {b"x": b"1"})


def test_records_of_a_former_owner_are_ignored_and_their_keys_written_again() -> None:
    log = Log()
    _, former = log.owner("a")
    log.write(former, 9, x=b"1")
    _, writer = log.owner("b")
    log.rows += former.entry_rows(Snapshot({b"x": b"zombie"}, b""), 19)

    with pytest.raises(ForeignWriterError, match="offset 4 was expected and 5 came"):
        log.write(writer, 14, y=b"2")
    _, healed = log.owner("c")
    must, before = healed.must_rewrite, len(log.rows)
    log.write(healed, 9)

    assert must
    assert [row.key for row in log.rows[before:]] == [b"0/x", b"0/head"]
    assert log.read().recovered() == (9, b"head", {b"x": b"1"})


def test_what_is_gone_stays_gone_and_its_last_value_leaves_the_log() -> None:
    log = Log()
    _, writer = log.owner("a")
    log.write(writer, 9, x=b"a long value that shall not stay")
    log.write(writer, 19, x=None)
    log.write(writer, 29, y=b"2")

    newest = {row.key: row.value for row in log.rows}
    assert newest[b"0/x"] is None
    assert log.read().recovered().entries == {b"y": b"2"}


def test_what_was_made_and_removed_between_two_snapshots_is_never_written() -> None:
    log = Log()
    _, writer = log.owner("a")
    log.write(writer, 9, x=None, y=b"2")

    assert [row.key for row in log.rows] == [b"0/claim/a", b"0/y", b"0/head"]


def test_a_tombstone_is_not_believed() -> None:
    log = Log()
    _, writer = log.owner("a")
    log.write(writer, 9, x=b"1")
    log.rows.append(Row(b"0/x", None))
    fold, healed = log.owner("b")
    log.write(healed, 9)

    assert fold.foreign == 1
    assert log.rows[-2].key == b"0/x"
    assert log.read().recovered().entries == {b"x": b"1"}


def test_a_key_that_came_back_is_not_buried() -> None:
    log = Log()
    _, writer = log.owner("a")
    log.write(writer, 9, x=b"1")
    log.write(writer, 19, x=None)
    log.write(writer, 29, x=b"3")
    log.write(writer, 39, y=b"2")

    assert None not in [row.value for row in log.rows]
    assert log.read().recovered().entries == {b"x": b"3", b"y": b"2"}


def test_a_broker_that_does_not_say_where_is_believed() -> None:
    _, writer = Log().owner("a")

    writer.appended(-1, 3)
    writer.appended(4, 1)


def test_a_stage_may_not_take_the_names_of_head_and_claims() -> None:
    _, writer = Log().owner("a")

    with pytest.raises(StateError, match="head"):
        writer.entry_rows(Snapshot({b"head": b""}, b""), 0)


def test_a_head_of_another_layout_is_refused() -> None:
    import msgspec

    fold = Fold()
    fold.add(0, *claim_row(0, "a"))
    head = msgspec.msgpack.encode(HeadRecord(99, "a", 5, b""))

    with pytest.raises(StateError, match="schema 99"):
        fold.add(1, b"0/head", head)
