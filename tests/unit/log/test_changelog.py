"""Single promises of the changelog; the whole of it is modelled in tests/property/test_state_log.py."""

import msgspec
import pytest

from stream_peer.errors import ForeignWriterError, NewerStateError, StateError, UnreadableStateError
from stream_peer.log.changelog import (
    NOTHING_APPLIED,
    ChangelogReader,
    ChangelogRow,
    LateTokenError,
    LogOrigin,
    Writer,
    token_row,
)
from stream_peer.log.stage import Snapshot


class Log:
    """One changelog partition."""

    def __init__(self) -> None:
        self.rows: list[ChangelogRow] = []

    def owner(self, name: str) -> tuple[ChangelogReader, Writer]:
        self.rows.append(token_row(0, name))
        fold = self.read()
        fold.recovered()
        return fold, Writer(fold, 0, name, fold.next)

    def owner_of_another(self, name: str, topic_id: str) -> tuple[ChangelogReader, Writer]:
        """An owner who found the input's topic made anew."""
        self.rows.append(token_row(0, name))
        fold = self.read()
        recovered = fold.recovered()
        return fold, Writer(fold, 0, name, fold.next, fold.origin.successor(topic_id, recovered.applied))

    def read(self) -> ChangelogReader:
        fold = ChangelogReader()
        for offset, row in enumerate(self.rows):
            fold.add(offset, *row)
        return fold

    def write(self, writer: Writer, applied: int, *, head: bool = True, **entries: bytes | None) -> None:
        snapshot = Snapshot({key.encode(): value for key, value in entries.items()}, b"head")
        rows = list(writer.entry_rows(snapshot, applied))
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


def test_the_size_is_that_of_what_counts_for_whoever_writes_and_for_whoever_recovers() -> None:
    log = Log()
    _, writer = log.owner("a")
    assert writer.size == (0, 0)
    log.write(writer, 9, x=b"1", y=b"22", z=b"333")
    assert writer.size == (4, 6 + len(b"head"))
    log.write(writer, 19, x=b"55555", y=None)
    assert writer.size == (3, 8 + len(b"head"))
    log.write(writer, 29, head=False, x=None, y=b"4", w=b"7")

    fold, following = log.owner("b")

    assert following.size == fold.size == (3, 8 + len(b"head"))
    entries = fold.recovered().entries
    assert fold.size == (len(entries) + 1, sum(map(len, entries.values())) + len(b"head"))


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


def test_records_of_a_former_owner_that_come_late_are_passed_and_their_keys_written_again() -> None:
    log = Log()
    _, former = log.owner("a")
    log.write(former, 9, x=b"1")
    fold, writer = log.owner("b")
    snapshot = Snapshot({b"x": b"2"}, b"head")
    (ours,) = writer.entry_rows(snapshot, 14)
    late = list(former.entry_rows(Snapshot({b"x": b"zombie", b"y": b"zombie"}, b""), 19))
    log.rows += [ours, *late, writer.head_row(snapshot, 14)]
    writer.appended(4, 1)

    writer.passed([row.key for row in late], 7)
    writer.appended(7, 1)
    writer.committed(snapshot, 14)
    must, before = writer.must_rewrite, len(log.rows)
    log.write(writer, 14)

    assert must
    assert not writer.must_rewrite
    assert [row.key for row in log.rows[before:]] == [b"0/x", b"0/y", b"0/head"]
    compacted = {row.key: row for row in log.rows}
    log.rows = [row for number, row in enumerate(log.rows) if b"claim" in row.key or compacted[row.key] is row]
    assert log.read().recovered() == fold.recovered() == (14, b"head", {b"x": b"2"})


def test_the_key_of_several_late_records_is_kept_once() -> None:
    _, writer = Log().owner("a")

    writer.passed([b"0/y", b"0/x", b"0/y"], 4)
    writer.passed([b"0/x"], 5)

    assert list(writer._late) == [b"y", b"x"]


def test_behind_a_late_fencing_token_an_owner_writes_with_another_one() -> None:
    log = Log()
    log.owner("a")
    fold, writer = log.owner("b")
    log.write(writer, 4, x=b"1")
    log.rows.append(token_row(0, "a"))

    with pytest.raises(LateTokenError, match="another fencing token came to the changelog before offset 5"):
        writer.passed([log.rows[-1].key], 5)
    log.rows.append(token_row(0, "c"))
    writer.fence_again("c", 5)
    log.write(writer, 9, x=b"2")

    assert log.read().recovered() == fold.recovered() == (9, b"head", {b"x": b"2"})
    assert fold.token == "c"
    assert writer.is_fenced_again


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


def test_what_is_gone_stays_gone_if_compaction_removes_that_in_the_middle_of_recovery() -> None:
    log = Log()
    _, writer = log.owner("a")
    log.write(writer, 9, x=b"1", y=b"2")
    log.write(writer, 19, x=None)
    log.write(writer, 29, y=b"3")
    fold = ChangelogReader()
    for offset, row in enumerate(log.rows):
        is_read_before = offset < 4
        is_last = row is {each.key: each for each in log.rows}[row.key]
        if is_read_before or is_last:
            fold.add(offset, *row)

    assert fold.recovered() == (29, b"head", {b"y": b"3"})
    assert not fold.must_rewrite


def test_a_tombstone_without_the_token_is_not_believed() -> None:
    log = Log()
    _, writer = log.owner("a")
    log.write(writer, 9, x=b"1")
    log.rows.append(ChangelogRow(b"0/x", None))
    fold, healed = log.owner("b")
    log.write(healed, 9)

    assert fold.fenced_out == 1
    assert log.rows[-2].key == b"0/x"
    assert log.read().recovered().entries == {b"x": b"1"}


def test_a_key_that_came_back_is_known_again() -> None:
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


def test_a_stage_may_not_take_the_names_of_head_and_tokens() -> None:
    _, writer = Log().owner("a")

    with pytest.raises(StateError, match="head"):
        list(writer.entry_rows(Snapshot({b"head": b""}, b""), 0))


def test_a_head_of_a_later_layout_is_refused_whatever_else_it_holds() -> None:
    fold = ChangelogReader()
    fold.add(0, *token_row(0, "a"))
    head = msgspec.msgpack.encode({"schema": 99, "reached": 5})

    with pytest.raises(NewerStateError, match="schema 99") as caught:
        fold.add(1, b"0/head", head)

    assert caught.value.exit_code == 78


def test_a_head_that_cannot_be_decoded_is_a_fault_of_the_state_and_no_traceback() -> None:
    fold = ChangelogReader()
    fold.add(0, *token_row(0, "a"))

    with pytest.raises(UnreadableStateError, match="cannot be read") as caught:
        fold.add(1, b"0/head", b"\xc1")

    assert caught.value.exit_code == 78


def test_a_head_from_before_topics_had_ids_is_read() -> None:
    fold = ChangelogReader()
    fold.add(0, *token_row(0, "a"))
    fold.add(1, b"0/head", msgspec.msgpack.encode({"schema": 1, "claim": "a", "applied": 5, "value": b"h"}))

    assert fold.recovered() == (5, b"h", {})
    assert fold.origin == LogOrigin("", 0, 0)


@pytest.mark.case("C29")
def test_offsets_that_begin_anew_are_later_than_all_before_and_the_state_stays() -> None:
    log = Log()
    _, writer = log.owner("a")
    log.write(writer, 9, x=b"1", y=b"1")
    _, writer = log.owner_of_another("b", "new")
    log.write(writer, -1)
    anew = log.read()
    log.write(writer, 0, x=b"2")

    assert anew.recovered() == (-1, b"head", {b"x": b"1", b"y": b"1"})
    assert log.read().recovered() == (0, b"head", {b"x": b"2", b"y": b"1"})
    assert log.read().origin == LogOrigin("new", 11)


@pytest.mark.case("C29")
def test_state_that_is_dropped_is_gone_with_the_new_head_and_not_before() -> None:
    log = Log()
    _, writer = log.owner("a")
    log.write(writer, 9, x=b"1", y=b"1")
    _, writer = log.owner_of_another("b", "new")
    log.write(writer, -1, head=False, x=None, y=b"of the new log")
    died = log.read().recovered()
    _, writer = log.owner_of_another("c", "new")
    log.write(writer, -1, x=None, y=b"of the new log")

    assert died == (9, b"head", {b"x": b"1", b"y": b"1"})
    assert log.read().recovered() == (-1, b"head", {b"y": b"of the new log"})


@pytest.mark.case("C29")
def test_a_topic_that_is_made_anew_twice_goes_on_from_the_second() -> None:
    log = Log()
    _, writer = log.owner("a")
    log.write(writer, 9, x=b"1")
    for name in ("b", "c"):
        _, writer = log.owner_of_another(name, f"id of {name}")
        log.write(writer, 3, x=name.encode())

    assert log.read().recovered() == (3, b"head", {b"x": b"c"})
    assert log.read().origin == LogOrigin("id of c", 16)


@pytest.mark.case("C29")
def test_a_head_that_speaks_of_a_new_log_is_refused_by_releases_that_take_positions_for_offsets() -> None:
    log = Log()
    _, writer = log.owner("a")
    before = writer.head_row(Snapshot({}, b""), 9).value or b""
    log.write(writer, 9)
    _, writer = log.owner_of_another("b", "new")
    after = writer.head_row(Snapshot({}, b""), 0).value or b""

    assert [msgspec.msgpack.decode(head)["schema"] for head in (before, after)] == [1, 2]


@pytest.mark.case("C34")
def test_where_a_value_became_shorter_the_next_snapshot_writes_it_without_the_longer_one_before() -> None:
    log = Log()
    _, writer = log.owner("a")
    log.write(writer, 9, history=b"long" * 100, other=b"1")
    log.write(writer, 19, history=b"stub", other=b"22")
    _, successor = log.owner("b")
    before = len(log.rows)

    log.write(successor, 29)
    log.write(successor, 39)

    assert [row.key for row in log.rows[before:]] == [b"0/history", b"0/head", b"0/head"]
    assert b"long" not in (log.rows[before].value or b"")
    assert log.read().recovered() == (39, b"head", {b"history": b"stub", b"other": b"22"})


def test_a_longer_version_before_stays_until_the_head_covers_the_shorter_one() -> None:
    log = Log()
    _, writer = log.owner("a")
    log.write(writer, 9, history=b"long")
    log.write(writer, 19, head=False, history=b"stu")

    assert log.read().recovered() == (9, b"head", {b"history": b"long"})
