"""What the output topics said, kept for a summary: the newest record a key, and the weights as they moved.

A reader like any other: it sees output records only, keeps the highest revision a key, and takes repeats for repeats.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgspec

from stream_peer.events import topics
from stream_peer.events.outputs import (
    ErrorRates,
    MixedForecast,
    MixedGroup,
    PeerLosses,
    ReferenceAnswer,
    ScoredExpert,
    ScoredForecast,
    TrustState,
    WeightedExpert,
    Weights,
    joined_groups,
)
from stream_peer.feeds.scored import scored_of
from stream_peer.log.dead_letters import refusal_of
from stream_peer.log.stage import Headers


class ScoredRounds:
    """Keeps the records of ``peer-losses`` that may turn out to be those of a scored forecast, and drops all others.

    Which it is says ``scored`` of ``mixed-forecasts``. It may come before the record or after it: topics are read side
    by side. Until then a question keeps its first final round, and the newest content of each other one.
    """

    def __init__(self) -> None:
        self._rounds: dict[str, dict[int, PeerLosses]] = {}
        self._scored: dict[str, ScoredForecast] = {}

    def add(self, record: PeerLosses) -> None:
        """Take up a whole record, or one that was joined from its parts so far."""
        if not record.experts:
            return
        kept = self._rounds.setdefault(record.question, {})
        known = next((one for one in kept.values() if one.boundary == record.boundary), None)
        scored = self._scored.get(record.question)
        if known is None or known.revision == record.revision or _is_rather(record, known, scored):
            if known is not None:
                del kept[known.revision]
            kept[record.revision] = record
        self._settle(record.question)

    def name(self, question: str, scored: ScoredForecast) -> None:
        """The scored forecast of a question is known."""
        self._scored[question] = scored
        self._settle(question)

    def of(self, question: str) -> Mapping[str, float]:
        """What each expert said in the scored round; nothing if its record was not seen: a topic may be compacted."""
        if question not in self._scored:
            return {}
        return {one.id: one.probability for record in self._rounds.get(question, {}).values() for one in record.experts}

    def _settle(self, question: str) -> None:
        """Drop what is not of the scored round. A republished record has a higher revision and the same forecasts."""
        scored, kept = self._scored.get(question), self._rounds.get(question)
        if scored is not None and kept is not None:
            fit = {n: r for n, r in kept.items() if r.boundary == scored.boundary and n <= scored.revision}
            self._rounds[question] = fit


def _is_rather(record: PeerLosses, known: PeerLosses, scored: ScoredForecast | None) -> bool:
    """Whether a record, and not the one of the same boundary that is known, may be of the scored round."""
    if scored is not None:
        fits = record.revision <= scored.revision
        return fits and (record.revision > known.revision or known.revision > scored.revision)
    if record.final and known.final:
        return record.revision < known.revision
    return record.final or (not known.final and record.revision > known.revision)


_ALIKE = 1e-9
MOMENTS = 240
"""How many records of ``weights`` a feed keeps to draw from; of more, every second one goes."""

_Part = TypeVar("_Part", Weights, PeerLosses)
_Told: TypeAlias = Weights | ErrorRates | MixedForecast | MixedGroup | PeerLosses | ReferenceAnswer
_DECODERS: Mapping[str, Callable[[bytes], _Told]] = {
    topics.WEIGHTS: msgspec.json.Decoder(Weights).decode,
    topics.ERROR_RATES: msgspec.json.Decoder(ErrorRates).decode,
    topics.MIXED_FORECASTS: msgspec.json.Decoder(MixedForecast).decode,
    topics.MIXED_GROUPS: msgspec.json.Decoder(MixedGroup).decode,
    topics.PEER_LOSSES: msgspec.json.Decoder(PeerLosses).decode,
    topics.REFERENCE_ANSWERS: msgspec.json.Decoder(ReferenceAnswer).decode,
}


class OutputHead(msgspec.Struct):
    """What any output says of whose it is."""

    feed: str
    revision: int
    question: str = ""


head_of = msgspec.json.Decoder(OutputHead).decode


class DeadLetter(NamedTuple):
    """A refused message: why, and how it began."""

    reason: str
    message: str
    payload: bytes


class ScoredQuestion(NamedTuple):
    """A question with an outcome and a scored forecast: what an evaluation looks at.

    ``said`` is what each expert said in the same round; empty if it cannot be read any more. ``revision`` is that of
    the newest record.
    """

    question: str
    revision: int
    outcome: int
    forecast: ScoredForecast
    said: Mapping[str, float]

    @property
    def is_shared(self) -> bool:
        """Whether it compares anybody: the mean of a single expert is what this one said.

        One that stands alone because others were erased is still compared with them, by the mean.
        """
        return len(self.said) != 1 or any(abs(self.forecast.mean - one) > _ALIKE for one in self.said.values())


class BestExpert(NamedTuple):
    """The expert with the smallest loss in hindsight, and the mix on the same questions: those of several experts."""

    expert_id: str
    loss: float
    questions: int
    mix_there: float


class Scores(NamedTuple):
    """Mean squared losses (Brier scores; smaller is better) of scored forecasts whose outcome was revealed."""

    questions: int
    mix: float
    stretched: float
    mean: float
    median: float
    best: BestExpert | None


class TrustChange(NamedTuple):
    """A state of trust, from when it was published until the next.

    ``news`` is how many questions had been scored and outcomes revealed by then; ``reasons`` are the first ones.
    """

    revision: int
    at: str
    news: float
    status: TrustState
    reasons: tuple[str, ...]


class FeedHistory:
    """One feed's outputs.

    Attributes
    ----------
    moments : list of Weights
        The first, the newest, and enough of those between to draw a curve.
    news : list of float
        Of each moment, how many questions had been scored and outcomes revealed: both move weights.
    trust : list of TrustChange
        Every change of the trust state, however many.
    groups : dict of str to MixedGroup
        Questions with options or thresholds, the newest record of each.
    """

    def __init__(self, feed: str) -> None:
        self.feed = feed
        self.error_rates: ErrorRates | None = None
        self.forecasts: dict[str, MixedForecast] = {}
        self.groups: dict[str, MixedGroup] = {}
        self.losses: dict[str, PeerLosses] = {}
        self.scored_rounds = ScoredRounds()
        self.reference_answers: dict[str, ReferenceAnswer] = {}
        self.moments: list[Weights] = []
        self.news: list[float] = []
        self.trust: list[TrustChange] = []
        self._stride = 1
        self._skipped = 0

    @property
    def weights(self) -> Weights | None:
        """The newest weights."""
        return self.moments[-1] if self.moments else None

    def add(self, record: _Told) -> None:
        """Take up a record of any of the feed's topics."""
        if isinstance(record, Weights):
            self.add_weights(record)
        elif isinstance(record, PeerLosses):
            self.add_losses(record)
        elif isinstance(record, ErrorRates):
            if self.error_rates is None or self.error_rates.revision < record.revision:
                self.error_rates = record
        else:
            self._add_newest(record)

    def _add_newest(self, record: MixedForecast | MixedGroup | ReferenceAnswer) -> None:
        if isinstance(record, MixedGroup):
            _keep(self.groups, record.group, record)
        elif isinstance(record, ReferenceAnswer):
            _keep(self.reference_answers, record.question, record)
        else:
            _keep(self.forecasts, record.question, record)
            if record.scored is not None:
                self.scored_rounds.name(record.question, record.scored)

    def add_weights(self, record: Weights) -> None:
        """Keep the newest record, and enough of the older ones to draw a curve."""
        newest = self.weights
        if newest is not None and record.revision <= newest.revision:
            if record.revision == newest.revision:
                self.moments[-1] = _joined(newest, record)
            return
        news = _news(newest, record) + (self.news[-1] if self.news else 0.0)
        if not self.trust or self.trust[-1].status != record.status:
            reasons = tuple(record.status_reasons)
            self.trust.append(TrustChange(record.revision, record.at, news, record.status, reasons))
        if self._skipped < self._stride - 1 and len(self.moments) > 1:
            self.moments[-1], self.news[-1] = record, news
            self._skipped += 1
            return
        self.moments.append(record)
        self.news.append(news)
        self._skipped = 0
        if len(self.moments) > MOMENTS:
            del self.moments[1:-1:2], self.news[1:-1:2]
            self._stride *= 2

    def add_losses(self, record: PeerLosses) -> None:
        """Keep the newest record of a question, put together from its parts, and that of its scored round."""
        known = self.losses.get(record.question)
        if known is not None and known.revision == record.revision:
            record = _joined(known, record)
        if known is None or known.revision <= record.revision:
            self.losses[record.question] = record
        self.scored_rounds.add(record)

    def resolved(self) -> list[ScoredQuestion]:
        """The questions that count as things stand, in the order in which they closed.

        Experts of whom no newest record speaks any more were erased, and are left out.
        """
        known = {expert.id for record in self.losses.values() for expert in record.experts}
        found = []
        for record in self.forecasts.values():
            scored = scored_of(record)
            if scored is not None:
                said = self.scored_rounds.of(record.question)
                said = {name: forecast for name, forecast in said.items() if name in known}
                found.append(ScoredQuestion(record.question, record.revision, scored[1], scored[0], said))
        return sorted(found, key=lambda one: (one.forecast.boundary, one.question))

    def scores(self) -> Scores | None:
        """How the scored forecasts did; None before the first outcome."""
        resolved = self.resolved()
        if not resolved:
            return None
        losses = {
            name: [brier(getattr(one.forecast, name), one.outcome) for one in resolved]
            for name in ("mix", "stretched", "mean", "median")
        }
        means = {name: sum(values) / len(values) for name, values in losses.items()}
        return Scores(len(resolved), **means, best=_best([one for one in resolved if one.is_shared]))


def _best(questions: Sequence[ScoredQuestion]) -> BestExpert | None:
    """The best of the experts that answered at least half of the questions."""
    total: dict[str, list[float]] = {}
    mix: dict[str, list[float]] = {}
    for one in questions:
        for expert, forecast in one.said.items():
            total.setdefault(expert, []).append(brier(forecast, one.outcome))
            mix.setdefault(expert, []).append(brier(one.forecast.mix, one.outcome))
    steady = {name: values for name, values in total.items() if 2 * len(values) >= len(questions)}
    if not steady:
        return None
    best = min(steady, key=lambda name: (sum(steady[name]) / len(steady[name]), name))
    count = len(steady[best])
    return BestExpert(best, sum(steady[best]) / count, count, sum(mix[best]) / count)


class ReplayHistory:
    """All feeds' outputs, fed record by record with ``add``."""

    def __init__(self) -> None:
        self.feeds: dict[str, FeedHistory] = {}
        self.dead_letters: list[DeadLetter] = []
        self.records: Counter[str] = Counter()

    def add(self, topic: str, value: bytes | None, headers: Headers = (), key: bytes | None = None) -> None:
        """Add one record of an output topic (by its logical name). Other topics only count.

        A tombstone of a feed's weights is the end of the feed; other tombstones come with it.
        """
        self.records[topic] += 1
        if topic == topics.DEAD_LETTERS:
            self._add_dead_letter(value, headers)
        elif value is not None:
            self._add_output(topic, value)
        elif topic == topics.WEIGHTS and key is not None:
            self.feeds.pop(key.decode().partition("/")[0], None)  # of a record in parts each part has one

    def _add_output(self, topic: str, value: bytes) -> None:
        decode = _DECODERS.get(topic)
        if decode is not None:
            record = decode(value)
            self._feed(record.feed).add(record)

    def _add_dead_letter(self, value: bytes | None, headers: Headers) -> None:
        refusal = refusal_of(headers, value)
        self.dead_letters.append(DeadLetter(refusal.reason, refusal.message, (value or b"")[:200]))

    def _feed(self, name: str) -> FeedHistory:
        return self.feeds.setdefault(name, FeedHistory(name))


_Newest = TypeVar("_Newest", MixedForecast, MixedGroup, ReferenceAnswer)


def _keep(kept: dict[str, _Newest], name: str, record: _Newest) -> None:
    known = kept.get(name)
    if known is None or known.revision < record.revision:
        kept[name] = record


def _news(before: Weights | None, record: Weights) -> float:
    """Questions scored and outcomes revealed since. A feed that forgets counts less of each: one at the least."""
    questions, resolved = (before.questions, before.resolved) if before else (0.0, 0.0)
    return max(1.0, max(0.0, record.questions - questions) + max(0.0, record.resolved - resolved))


def _joined(known: _Part, record: _Part) -> _Part:
    """Two records of one key and revision: the parts of a big one, or the same twice."""
    experts: Sequence[WeightedExpert | ScoredExpert] = [*known.experts, *record.experts]
    changes: dict[str, Any] = {"experts": list({expert.id: expert for expert in experts}.values())}
    if isinstance(known, Weights):
        changes["groups"] = joined_groups([known, record])
    return msgspec.structs.replace(record, **changes)


def brier(forecast: float | None, outcome: object) -> float:
    """Squared loss of a published forecast; a missing one says one half."""
    truth = 1.0 if outcome == 1 else 0.0
    return (truth - (0.5 if forecast is None else forecast)) ** 2


def by_mix(weights: Weights) -> list[WeightedExpert]:
    """Experts, those with the most weight first."""
    return sorted(weights.experts, key=lambda expert: (-expert.mix, expert.id))


def rounded(amount: float) -> str:
    """A sum of questions by weight, which need not be whole: one decimal if it is not."""
    return f"{round(amount, 1):,.10g}"


def many(number: int, thing: str) -> str:
    """A number of things.

    Examples
    --------
    >>> many(1, "line"), many(2, "line")
    ('1 line', '2 lines')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
