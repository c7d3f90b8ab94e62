"""The client and the service's reader find the last weights published, however partitions come in between."""

import json
import random
from collections import defaultdict
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from stream_peer.events.outputs import encode_output
from stream_peer.serve.feed_records import FeedRecords
from stream_peer_client.newest import Newest
from tests.feed_outputs import part, weights

FEEDS = ("econ", "sport")
MOST_PARTS = 3

Written = tuple[bytes, bytes | None]
"""Key and value."""


def published(feed: str, revision: int, parts: int) -> list[Written]:
    experts = [f"e{revision}-{number}" for number in range(parts)]
    whole = weights(revision, *experts, feed=feed)
    if parts == 1:
        return [(feed.encode(), encode_output(whole))]
    return [(f"{feed}/{number}".encode(), part(whole, number, parts, name)) for number, name in enumerate(experts)]


def deleted(feed: str) -> list[Written]:
    return [(key.encode(), None) for key in (feed, *(f"{feed}/{number}" for number in range(MOST_PARTS)))]


def plain(record: object) -> object:
    return None if record is None else json.loads(encode_output(record))


@given(
    steps=st.lists(st.tuples(st.sampled_from(FEEDS), st.integers(0, MOST_PARTS)), max_size=12),
    repeated=st.integers(0, 3),
    order=st.randoms(use_true_random=False),
)
def test_the_last_that_was_published_is_found(
    steps: Sequence[tuple[str, int]], repeated: int, order: random.Random
) -> None:
    last: dict[str, list[Written]] = {}
    written: list[list[Written]] = []
    for revision, (feed, parts) in enumerate(steps):
        last[feed] = published(feed, revision, parts) if parts else deleted(feed)
        written.append(last[feed])
    written += written[len(written) - min(repeated, len(written)) :]  # a worker that restarts repeats the last ones
    logs: dict[bytes, list[Written]] = defaultdict(list)
    for key, value in (record for records in written for record in records):
        logs[key].append((key, value))
    client, service = Newest(), FeedRecords()
    while logs:
        key = order.choice(sorted(logs))
        record = logs[key].pop(0)
        client.add(*record)
        service.add_weights(*record)
        if not logs[key]:
            del logs[key]

    for feed in FEEDS:
        found = client.weights(feed)
        assert plain(found) == plain(service.weights(feed))
        assert (feed in client) == (found is not None) == any(value is not None for _, value in last.get(feed, []))
        ids = [expert.id for expert in found.experts] if found is not None else []
        assert ids == [e["id"] for _, value in last.get(feed, []) if value for e in json.loads(value)["experts"]]
