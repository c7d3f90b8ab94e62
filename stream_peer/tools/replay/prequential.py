"""How the mixed forecasts of a fold did, question by question; and how those of another fold of the same events did."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec
import numpy as np

from stream_peer.events import topics
from stream_peer.events.outputs import ShadowScores
from stream_peer.feeds.ledger import Entry
from stream_peer.feeds.scored import scored_losses
from stream_peer.feeds.shadow_mixers import ShadowRecord
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.stage import Effects


class _Head(msgspec.Struct):
    feed: str
    question: str


_head = msgspec.json.Decoder(_Head).decode


class Judged(NamedTuple):
    """A resolved question: its weight, and ``losses_of_mix`` of its scored forecast."""

    weight: float
    losses: tuple[float, float, float]


class Prequential:
    """Follows the feed stage as it folds, and keeps what its forecasts lost on each question by the newest outcome.

    Attributes
    ----------
    questions : dict of (str, str) to Judged
        By feed and question.
    """

    def __init__(self) -> None:
        self.questions: dict[tuple[str, str], Judged] = {}

    def follow(self, effects: Effects, stage: FeedStage) -> None:
        """Something was folded: look at every question of which something was said."""
        for output in effects.outputs:
            if output.topic == topics.MIXED_FORECASTS and output.value is not None:
                said = _head(output.value)
                feed = stage.feeds.by_name.get(said.feed)
                judged = judge(feed.entries.get(said.question)) if feed else None
                if judged is None:
                    self.questions.pop((said.feed, said.question), None)
                else:
                    self.questions[said.feed, said.question] = judged


def judge(entry: Entry | None) -> Judged | None:
    """What the scored forecast of a question lost; None while there is no outcome, or no such forecast."""
    losses = None if entry is None else scored_losses(entry)
    return None if entry is None or losses is None else Judged(entry.weight, losses)


def shadow_scores(
    name: str, shadow: Mapping[tuple[str, str], Judged], live: Mapping[tuple[str, str], Judged]
) -> dict[str, ShadowScores]:
    """How a shadow did, by feed, on the questions that both folds have resolved."""
    totals: dict[str, list[list[float]]] = {feed: [] for feed, _ in live}
    for (feed, question), of_live in live.items():
        judged = shadow.get((feed, question))
        if judged is not None:
            pairs = zip(judged.losses, of_live.losses, strict=True)
            row = [1.0, *(loss for pair in pairs for loss in pair)]
            totals[feed].append([of_live.weight * value for value in row])
    records = {feed: np.add.reduce(np.array(rows).reshape(-1, 7)).tolist() for feed, rows in totals.items()}
    return {feed: ShadowRecord._make(record).scores(name) for feed, record in records.items()}
