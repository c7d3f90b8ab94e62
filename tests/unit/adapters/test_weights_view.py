from typing import NamedTuple

import msgspec

from stream_peer.adapters.feed_records import FeedRecords
from stream_peer.adapters.weights_view import news_of
from stream_peer.events.outputs import ErrorRateSummary, MixerShares, WeightedExpert, Weights, encode_output


class Record(NamedTuple):
    key: bytes
    value: bytes | None


def weights(revision: int, *experts: str, feed: str = "econ") -> Weights:
    return Weights(
        feed=feed,
        revision=revision,
        at="2026-03-01T12:00:00Z",
        settings="9f3c",
        status="ok",
        status_reasons=[],
        questions=1,
        resolved=0,
        error_rate=ErrorRateSummary(zero=0.1, one=0.2, low=0.1, high=0.2, status="ok", measured=None),
        mixer=MixerShares(mean=1, peer=0, truth_slow=0, truth_fast=0),
        stretch=0,
        select_shrink=0.0,
        certificate=None,
        experts=[expert(name) for name in experts],
    )


def expert(name: str) -> WeightedExpert:
    return WeightedExpert(
        id=name, mix=0.5, select=0.5, questions=1, coverage=1, peer_loss=0.1, outcome_loss=None, resolved=0, team=None
    )


def part(whole: Weights, number: int, parts: int, *experts: str) -> bytes:
    return encode_output(msgspec.structs.replace(whole, part=number, parts=parts, experts=[expert(e) for e in experts]))


def test_followers_are_told_of_each_newer_record_of_their_feed_once_it_is_whole() -> None:
    records = FeedRecords()
    records.add_weights(b"econ", encode_output(weights(3, "a")))
    found = [
        Record(b"econ", encode_output(weights(2, "b"))),
        Record(b"sport", encode_output(weights(9, "c", feed="sport"))),
        Record(b"econ/1", part(weights(5), 1, 2, "e")),
        Record(b"econ/0", part(weights(5), 0, 2, "d")),
        Record(b"econ/0", None),
        Record(b"econ", encode_output(weights(7, "f"))),
    ]

    told = list(news_of("econ", records, found))

    assert told == [weights(5, "d", "e"), weights(7, "f")]
