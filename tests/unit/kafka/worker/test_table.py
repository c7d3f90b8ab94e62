"""Recovery through the table."""

from types import SimpleNamespace
from typing import Any

from stream_peer.kafka.worker.faust_bridge import BatchSchema, FoldTable
from stream_peer.kafka.worker.port import TopicPartition, Unread


class Reader:
    """A listener that breaks at offset 7."""

    def __init__(self) -> None:
        self.read: list[Any] = []
        self.errors: list[BaseException] = []

    def recover(self, changelog: TopicPartition, records: list[int]) -> None:
        if 7 in records:
            raise ZeroDivisionError
        self.read.append((changelog, records))

    def unread(self, changelog: TopicPartition) -> Unread:
        return Unread(42, None)

    def failed(self, error: BaseException) -> None:
        self.errors.append(error)


def table_of(reader: Reader) -> Any:
    table = FoldTable.__new__(FoldTable)
    table.app = SimpleNamespace(listener=reader)
    return table


def batch(*offsets: int) -> Any:
    return SimpleNamespace(message=SimpleNamespace(tp=TopicPartition("changelog", 2), value=list(offsets)))


def test_batches_are_read_and_recovery_goes_on_from_what_is_known() -> None:
    reader = Reader()

    table_of(reader).apply_changelog_batch([batch(1, 2), batch(3)])

    assert reader.read == [(TopicPartition("changelog", 2), [1, 2]), (TopicPartition("changelog", 2), [3])]
    assert table_of(reader).persisted_offset(TopicPartition("changelog", 2)) == 41


def test_an_error_ends_the_process_instead_of_leaving_half_a_state() -> None:
    reader = Reader()

    table_of(reader).apply_changelog_batch([batch(1), batch(7), batch(8)])

    assert [type(error) for error in reader.errors] == [ZeroDivisionError]


def test_a_batch_passes_the_schema_untouched() -> None:
    message = SimpleNamespace(value=[1, 2])

    assert BatchSchema().loads_value(None, message, loads=None) == [1, 2]
