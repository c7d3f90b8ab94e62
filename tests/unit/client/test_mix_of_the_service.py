"""Given the weights of those present the client mixes and stretches as the service does, on the demo's questions."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from stream_peer.events import topics
from stream_peer.events.feed_log import Round, decode_feed_log
from stream_peer.events.outputs import MixedForecast, WeightedExpert, encode_output
from stream_peer.events.outputs import Weights as ServiceWeights
from stream_peer.feeds.feed_reading import read, scoring_inputs
from stream_peer.feeds.reading.weights import published_weights
from stream_peer.feeds.stage import FeedStage
from stream_peer.feeds.views import feed_records, list_experts
from stream_peer.log.stage import Effects, Record
from stream_peer.tools.demo.feed import DATA, FEED, SETTINGS
from stream_peer.tools.replay.files import read_lines
from stream_peer.tools.replay.replay import ReplayOptions, replay
from stream_peer.tools.replay.run import ReplayProbe
from stream_peer_client import Weights, outputs
from tests.feed_outputs import expert

AS_PUBLISHED = 1e-11
"""The formulas are the same; weights, their sums and forecasts are rounded to twelve decimals on the way."""
APART = 0.015
"""In the mean, if the published weights of all are scaled instead: the service weighs each crowd by itself."""


class Compared(NamedTuple):
    """A forecast of the service, and what the client makes of the weights of those present, and of all published."""

    service: MixedForecast
    client: tuple[float, float]
    by_all: tuple[float, float]


class FirstRounds(ReplayProbe):
    """Mixes the first round of each question that only known experts answer. Later ones are weighted without it."""

    def __init__(self) -> None:
        self.compared: list[Compared] = []
        self._mixed: dict[str, tuple[tuple[float, float], tuple[float, float]]] = {}

    def before_record(self, record: Record, stage: FeedStage) -> None:
        self._mixed = {}
        event, feed = decode_feed_log(record.value or b"null"), stage.feeds.by_name.get(FEED)
        if not isinstance(event, Round) or feed is None or event.question_id in feed.ledger.entries:
            return
        places = [feed.roster.place(name) for name in event.experts]
        if any(place is None for place in places):
            return
        present = np.array(places, np.int32)
        under = scoring_inputs(feed, read(feed), present, event.question_id, event.boundary)
        mix = published_weights(under.weights, under.mixing, under.net_share, under.shrink, under.groups).mix.tolist()
        listed = feed_records(feed, list_experts(feed)).weights
        of_present = [
            msgspec.structs.replace(expert(name), mix=weight) for name, weight in zip(event.experts, mix, strict=True)
        ]
        forecasts = dict(zip(event.experts, event.probabilities, strict=True))
        self._mixed[event.question_id] = (
            handed_out(listed, of_present).mix(forecasts),
            handed_out(listed, listed.experts).mix(forecasts),
        )

    def after_record(self, effects: Effects, stage: FeedStage) -> None:
        for output in effects.outputs:
            question = (output.key or b"").decode()
            if output.topic == topics.MIXED_FORECASTS and question in self._mixed:
                published = msgspec.json.decode(output.value or b"", type=MixedForecast)
                self.compared.append(Compared(published, *self._mixed.pop(question)))


def handed_out(record: ServiceWeights, experts: Sequence[WeightedExpert]) -> Weights:
    value = encode_output(msgspec.structs.replace(record, experts=list(experts)))
    return Weights.of(msgspec.json.decode(value, type=outputs.Weights))


def apart(found: tuple[float, float], said: MixedForecast) -> float:
    assert said.mix is not None
    assert said.stretched is not None
    return max(abs(found[0] - said.mix), abs(found[1] - said.stretched))


def test_the_client_mixes_and_stretches_as_the_service_does() -> None:
    probe = FirstRounds()

    replay([read_lines(DATA)], ReplayOptions(document=SETTINGS), probes=[probe])

    assert len(probe.compared) > 800
    assert max(apart(each.client, each.service) for each in probe.compared) <= AS_PUBLISHED
    assert sum(each.client[0] != each.client[1] for each in probe.compared) > 100
    assert sum(apart(each.by_all, each.service) for each in probe.compared) / len(probe.compared) < APART
