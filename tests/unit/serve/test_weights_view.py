from typing import NamedTuple

from stream_peer.events.outputs import encode_output
from stream_peer.serve.feed_records import FeedRecords
from stream_peer.serve.weights_view import news_of
from tests.feed_outputs import part, weights


class Record(NamedTuple):
    key: bytes
    value: bytes | None


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
