"""The proof of order, and the cutting of fetches."""

import pytest
from aiokafka import errors

from stream_peer.kafka.worker import faust_bridge
from stream_peer.kafka.worker.faust_bridge import BATCH_RECORDS, OrderProof, _cut
from stream_peer.kafka.worker.port import TopicPartition
from stream_peer.kafka.worker.process import now
from tests.unit.clock import Clock
from tests.unit.kafka.worker.fakes import records

HERE = TopicPartition("forecast-events", 0)


def test_a_fetch_after_a_seek_proves_the_hole_between_what_was_wanted_and_where_it_began() -> None:
    proof = OrderProof(now)

    before = proof.admits(HERE, 5, 7)
    sought = proof.asked([HERE])
    proof.sought(sought)
    proof.fetched(HERE, 7)

    assert not before
    assert sought == {HERE: 5}
    assert proof.admits(HERE, 5, 7)


def test_a_proof_holds_for_its_pair_only() -> None:
    proof = OrderProof(now)
    proof.admits(HERE, 5, 7)
    proof.sought(proof.asked([HERE]))
    proof.fetched(HERE, 7)

    assert not proof.admits(HERE, 5, 9)
    assert not proof.admits(HERE, 6, 7)


def test_a_fetch_without_a_seek_proves_nothing() -> None:
    proof = OrderProof(now)
    proof.admits(HERE, 5, 7)

    proof.fetched(HERE, 7)

    assert not proof.admits(HERE, 5, 7)


def test_nothing_is_found_from_a_seek_that_was_done_until_a_record_comes() -> None:
    proof = OrderProof(now)
    proof.ask(HERE, 5)

    asked = proof.asked([HERE])
    before = proof.found_nothing(HERE, 5)
    proof.sought(asked)
    after = proof.found_nothing(HERE, 5)
    proof.fetched(HERE, 9)

    assert (before, after, proof.found_nothing(HERE, 5)) == (False, True, False)


def test_the_same_seek_is_asked_for_at_most_every_half_second() -> None:
    clock = Clock()
    proof = OrderProof(clock)
    proof.admits(HERE, 5, 7)
    proof.asked([HERE])

    proof.admits(HERE, 5, 9)
    soon = proof.asked([HERE])
    clock.at += 0.6
    proof.admits(HERE, 5, 9)
    later = proof.asked([HERE])

    assert soon == {}
    assert later == {HERE: 5}


def test_only_assigned_partitions_are_sought_and_a_new_position_forgets_all() -> None:
    proof = OrderProof(now)
    proof.admits(HERE, 5, 7)
    elsewhere = proof.asked([])
    proof.admits(TopicPartition("forecast-events", 1), 5, 7)
    proof.clear()

    assert elsewhere == {}
    assert proof.asked([HERE, TopicPartition("forecast-events", 1)]) == {}


def test_long_fetches_are_cut_in_order() -> None:
    fetched = records(0, 2 * BATCH_RECORDS)

    batches = [(tp.partition, len(batch), batch[0].offset) for tp, batch in _cut({HERE: fetched})]

    assert batches == [(0, BATCH_RECORDS, 0), (0, BATCH_RECORDS, BATCH_RECORDS), (0, 1, 2 * BATCH_RECORDS)]


class Brokers:
    """Brokers that fail in some ways before they answer."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)

    async def __call__(self) -> str:
        if self.failures:
            raise self.failures.pop(0)
        return "an answer"


async def test_a_question_is_asked_again_while_brokers_are_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faust_bridge, "_ASK_AGAIN_SECONDS", 0)
    away = errors.KafkaConnectionError(), errors.KafkaTimeoutError(), errors.NodeNotReadyError()

    assert await faust_bridge.patiently(Brokers(*away)) == "an answer"


async def test_a_refusal_is_not_asked_for_again() -> None:
    with pytest.raises(errors.TopicAuthorizationFailedError):
        await faust_bridge.patiently(Brokers(errors.TopicAuthorizationFailedError()))
