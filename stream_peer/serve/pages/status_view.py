"""What the status page shows: a worker, and of every feed what people look at first."""

from collections.abc import Mapping, Sequence
from heapq import nlargest
from typing import NamedTuple

from stream_peer.events.outputs import Certificate, ErrorRateSummary, TrustState, WeightedExpert, Weights
from stream_peer.serve.metrics.senders import FrequentSender, Newcomers, SimilarId, UnknownField

TOP_EXPERTS = 8


class ExpertShare(NamedTuple):
    """An expert's weights, in [0, 1]."""

    expert: str
    mix: float
    select: float


class OtherExperts(NamedTuple):
    """How many experts are not listed, and what they have together."""

    experts: int
    mix: float
    select: float


class FeedStatus(NamedTuple):
    """A feed as people see it: ``top`` are its heaviest experts, heaviest first; ``at`` when it last changed."""

    name: str
    status: TrustState
    reasons: Sequence[str]
    questions: float
    resolved: float
    error_rate: ErrorRateSummary
    certificate: Certificate | None
    top: Sequence[ExpertShare]
    others: OtherExperts
    at: str
    settings: str

    @classmethod
    def of(cls, weights: Weights, most: int = TOP_EXPERTS) -> "FeedStatus":
        """What a record of ``weights`` says, with ``most`` experts at most: those with the largest of either weight.

        Parameters
        ----------
        weights : Weights
            A whole record, not a part of one.
        most : int
            Experts listed one by one.
        """
        top = [
            ExpertShare(one.id, one.mix, one.select) for one in nlargest(most, weights.experts, key=_heaviest_by_any)
        ]
        top.sort(key=lambda one: (-one.mix, -one.select, one.expert))
        mix, select = (sum(getattr(one, kind) for one in weights.experts) for kind in ("mix", "select"))
        return cls(
            weights.feed,
            weights.status,
            weights.status_reasons,
            weights.questions,
            weights.resolved,
            weights.error_rate,
            weights.certificate,
            top,
            OtherExperts(
                len(weights.experts) - len(top),
                max(mix - sum(one.mix for one in top), 0.0),
                max(select - sum(one.select for one in top), 0.0),
            ),
            weights.at,
            weights.settings,
        )


class PartitionLag(NamedTuple):
    """What waits in a partition that this worker owns: ``seconds`` is the age of its oldest record. None: unknown.

    ``waiting``: for how many seconds the partition has waited for an open transaction.
    """

    topic: str
    partition: int
    records: int | None
    seconds: float | None
    waiting: float = 0.0


class UnusedForecasts(NamedTuple):
    """What became of forecasts of a feed that were accepted and not used as stated, by kind."""

    feed: str
    counts: Mapping[str, int]


class StatusView(NamedTuple):
    """All that the page says.

    ``at`` is the moment of the answer, ISO 8601 UTC; ``reason`` says why the worker is not ready, ``settings`` the hash
    of its own settings; ``events_topic`` is where a first event would be sent.
    """

    version: str
    instance: str
    at: str
    ready: bool
    reason: str
    feeds: Sequence[FeedStatus]
    lag: Sequence[PartitionLag]
    settings: str
    events_topic: str = "forecast-events"
    unused: Sequence[UnusedForecasts] = ()
    unknown_fields: Sequence[UnknownField] = ()
    new_experts: Sequence[Newcomers] = ()
    busy_experts: Sequence[FrequentSender] = ()
    look_alikes: Sequence[SimilarId] = ()


def _heaviest_by_any(expert: WeightedExpert) -> tuple[float, float, str]:
    return max(expert.mix, expert.select), expert.mix + expert.select, expert.id
