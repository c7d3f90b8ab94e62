"""Outputs as records: above ``LARGEST`` bytes in parts, each with some of the experts, keyed ``key/part``."""

import msgspec

from stream_peer.events import topics
from stream_peer.events.output_parts import groups_of_part
from stream_peer.events.outputs import PeerLosses, Published, Weights, encode_output, output_headers
from stream_peer.events.times import Milliseconds
from stream_peer.feeds.feed import Feed
from stream_peer.feeds.views import FeedView, feed_view, list_experts
from stream_peer.log.stage import Output

LARGEST = 900_000
_LONGEST_EXPERT = 4_000
"""Bytes of an expert in weights, at most: its id and its team may be escaped, six bytes for one."""


def feed_outputs(feed: Feed, view: FeedView) -> list[Output]:
    """``weights`` and ``error-rates`` of a feed, as records."""
    at, key = feed.path_state.at, feed.name
    return [
        *published(topics.WEIGHTS, key, view.weights, at),
        *published(topics.ERROR_RATES, key, view.error_rates, at),
    ]


def feed_tombstones(feed: Feed, at: Milliseconds) -> list[Output]:
    """Records that say that a feed's outputs are gone, those of parts included.

    The weights may have had more parts than they have now: there are as many records as they can ever have had.
    """
    outputs = feed_outputs(feed, feed_view(feed, list_experts(feed)))
    most = 1 + (len(feed.experts) + len(feed.roster.erased)) * _LONGEST_EXPERT // LARGEST
    keys = [(output.topic, key) for output in outputs for key in (output.key, feed.name.encode())]
    keys += [(topics.WEIGHTS, f"{feed.name}/{part}".encode()) for part in range(most) if most > 1]
    return [Output(topic, key, None, at) for topic, key in dict.fromkeys(keys)]


def published(topic: str, key: str, record: Published, at: Milliseconds) -> list[Output]:
    """What is written of an output: one record, or several with some of the experts each if it is too large."""
    headers = output_headers(record.settings)
    whole = encode_output(record)
    if len(whole) <= LARGEST or not isinstance(record, Weights | PeerLosses):
        return [Output(topic, key.encode(), whole, at, headers=headers)]
    parts = -(-len(whole) // LARGEST)
    while True:
        encoded = [encode_output(_part(record, part, parts)) for part in range(parts)]
        if max(map(len, encoded)) <= LARGEST:
            return [
                Output(topic, f"{key}/{part}".encode(), value, at, headers=headers)
                for part, value in enumerate(encoded)
            ]
        parts += 1


def _part(record: Weights | PeerLosses, part: int, parts: int) -> Published:
    size = -(-len(record.experts) // parts)
    experts = record.experts[part * size : (part + 1) * size]
    if isinstance(record, Weights):
        groups = groups_of_part(record.groups or [], {expert.id for expert in experts})
        record = msgspec.structs.replace(record, groups=groups)
    return msgspec.structs.replace(record, experts=experts, part=part, parts=parts)
