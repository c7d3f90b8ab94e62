"""Records of a question and of a feed for the output topics, and the tombstones of both.

Those of a question say what is known of its latest round; they are published again when the evidence changes.
"""

from collections.abc import Iterable, Sequence, Set
from itertools import repeat
from operator import attrgetter
from typing import Any

import msgspec

from stream_peer.events import topics
from stream_peer.events.outputs import (
    ErrorRateSummary,
    MixedForecast,
    Outcome,
    PeerLosses,
    Published,
    ReferenceAnswer,
    ScoredExpert,
    ScoredForecast,
    SelectedExpert,
    ShadowForecasts,
    StateOfQuestion,
    WeightedExpert,
    Weights,
    encode_output,
    groups_of_part,
    output_headers,
)
from stream_peer.events.times import Milliseconds, to_iso
from stream_peer.events.topics import MAX_RECORD_BYTES
from stream_peer.feeds.facts import Facts, losses_of, unpack
from stream_peer.feeds.feed import Feed
from stream_peer.feeds.feed_reading import read
from stream_peer.feeds.ledger import Entry
from stream_peer.feeds.methods.method import Method
from stream_peer.feeds.reading.rates import Rates
from stream_peer.feeds.reading.reading import Reading
from stream_peer.feeds.reading.weights import DECIMALS
from stream_peer.feeds.views import NewestRecords, feed_records, heading, list_experts, summary
from stream_peer.log.owners import QuestionRecords
from stream_peer.log.stage import Output
from stream_peer.numerics.arguments import FloatArray, unchecked
from stream_peer.numerics.peer_losses import unbiased_peer_loss

_unbiased_peer_loss = unchecked(unbiased_peer_loss)

_COMBINED = ("mix", "stretched", "mean", "median", "logit_mean", "selected")


def question_outputs(feed: Feed, reading: Reading, question_id: str, entry: Entry, facts: Facts | None) -> list[Output]:
    """Reference answer, peer losses and mixed forecast of a question, by its latest round's facts (None: no round)."""
    common, outcome = _common(feed, question_id, entry, facts), published_outcome(entry)
    rates = _rates(reading, facts)
    answer, forecast = _records(feed, entry, facts, common, summary(feed, reading, rates))
    experts = _scored(feed, facts, outcome, rates) if facts else []
    losses = PeerLosses(**common, error_rate=answer.error_rate, experts=experts)
    at = feed.path_state.at
    return [
        *published(topics.REFERENCE_ANSWERS, question_id, answer, at),
        *published(topics.PEER_LOSSES, question_id, losses, at),
        *published(topics.MIXED_FORECASTS, question_id, forecast, at),
    ]


def question_records(
    feed: Feed, reading: Reading, question_id: str, entry: Entry, facts: Facts | None
) -> QuestionRecords:
    """Reference answer and mixed forecast of a question as things stand now, by its latest round's facts."""
    rates = summary(feed, reading, _rates(reading, facts))
    return _records(feed, entry, facts, _common(feed, question_id, entry, facts), rates)


def _records(
    feed: Feed, entry: Entry, facts: Facts | None, common: dict[str, Any], rates: ErrorRateSummary
) -> QuestionRecords:
    provisional = msgspec.UNSET if entry.provisional == "open" else entry.provisional
    outcomes: dict[str, Any] = {"outcome": published_outcome(entry), "provisional_outcome": provisional}
    said = dict.fromkeys(_COMBINED) if facts is None else _forecast(feed, facts)
    scored, shadows = _scored_forecast(feed, entry, facts, said), _shadows(feed, facts)
    return QuestionRecords(
        ReferenceAnswer(**common, **_answer(facts), **outcomes, error_rate=rates),
        MixedForecast(**common, **said, **outcomes, scored=scored, shadows=shadows),
    )


def _scored_forecast(feed: Feed, entry: Entry, facts: Facts | None, said: dict[str, Any]) -> ScoredForecast | None:
    """The scored forecast as it was published; mostly it is what is said of the latest round."""
    packed = entry.first_final
    if not packed:
        return None
    if facts is None or len(entry.rounds) > 1 or entry.rounds[-1] is not packed:
        facts = unpack(packed)
        said = _forecast(feed, facts)
    boundary, shadows = to_iso(facts.boundary), _shadows(feed, facts)
    return ScoredForecast(revision=entry.revision, boundary=boundary, **said, shadows=shadows)


def published_outcome(entry: Entry) -> Outcome | None:
    """The outcome of a question as outputs say it."""
    return None if entry.evidence == "open" else entry.evidence


def _common(feed: Feed, question_id: str, entry: Entry, facts: Facts | None) -> dict[str, Any]:
    return {
        **heading(feed),
        "trust": feed.path_state.trust,
        "question": question_id,
        "state": _state(entry, facts),
        "boundary": to_iso(facts.boundary) if facts else None,
        "final": bool(facts and facts.final),
        "rounds": len(entry.rounds),
    }


def question_tombstones(feed: Feed, elsewhere: Set[str], at: Milliseconds) -> list[Output]:
    """Records that say that the outputs of the questions in a feed's ledger are gone, but for those ``elsewhere``."""
    expired = set(feed.ledger.expired) - elsewhere
    keys = {(topic, question.encode()) for question in expired for topic in topics.KEYED_BY_QUESTION}
    reading = read(feed)
    for question, entry in feed.ledger.entries.items():
        if question in elsewhere:
            continue
        keys.update((topic, question.encode()) for topic in topics.KEYED_BY_QUESTION)
        keys.update(
            (output.topic, output.key or b"")
            for output in question_outputs(feed, reading, question, entry, entry.latest())
        )
    return [Output(topic, key, None, at) for topic, key in sorted(keys)]


def _state(entry: Entry, facts: Facts | None) -> StateOfQuestion:
    if facts is None:
        return "withdrawn"
    if entry.evidence == "annulled":
        return "annulled"
    if entry.evidence != "open":
        return "resolved"
    return "scored" if facts.votes.counts else "low-evidence"


def _rates(reading: Reading, facts: Facts | None) -> Rates:
    """Error rates of the vote rule that gave the experts' own reference answers."""
    return reading.rates_of(facts.votes.rule) if facts else reading.rates


def _answer(facts: Facts | None) -> dict[str, Any]:
    if facts is None:
        return {"reference_answer": None, "tie": False, "votes": 0, "yes": 0, "experts": 0}
    return {
        "reference_answer": facts.votes.answer,
        "tie": facts.votes.tie,
        "votes": facts.votes.half_voters,
        "yes": facts.votes.half_yes,
        "experts": len(facts.experts),
    }


def _scored(feed: Feed, facts: Facts, outcome: Outcome | None, rates: Rates) -> list[ScoredExpert]:
    """Losses of the experts present: against the others, priced at the newest error rates, and against the outcome."""
    losses = _peer_losses(facts, rates, feed.method).round(DECIMALS).tolist()
    true_losses: Iterable[float | None] = repeat(None)
    if outcome is not None and outcome != "annulled":
        against_outcome = losses_of(facts, feed.method)[1 if outcome else 2]
        true_losses = (against_outcome * feed.method.loss_unit).round(DECIMALS).tolist()
    places, roster = facts.experts.tolist(), feed.roster
    ids = map(roster.shown.__getitem__, places)
    found = list(  # a loop in C: the fields in their order
        map(ScoredExpert, ids, facts.forecasts.tolist(), facts.answers.tolist(), losses, true_losses)
    )
    if roster.excluded:
        found = [
            said for place, said in zip(places, found, strict=True) if roster.experts[place] not in roster.excluded
        ]
    return sorted(found, key=attrgetter("id")) if roster.names.given else found  # facts are in the order of first ids


def _peer_losses(facts: Facts, rates: Rates, method: Method) -> FloatArray:
    """On the unbiased scale: their expectation is the loss against the outcome."""
    against, if_one, if_zero = losses_of(facts, method) * method.loss_unit
    losses: FloatArray = _unbiased_peer_loss(against, if_one, if_zero, rates.zero, rates.one)
    return losses


def _forecast(feed: Feed, facts: Facts) -> dict[str, Any]:
    """Combined forecasts and the draw, as they were made when the round was scored."""
    mix, place = facts.mix, facts.selected
    selected = None
    if place is not None:
        expert = feed.roster.shown[int(facts.experts[place])]
        selected = SelectedExpert(expert=expert, probability=float(facts.forecasts[place]))
    return {
        "mix": round(mix.mix, DECIMALS),
        "stretched": round(mix.stretched, DECIMALS),
        "mean": round(mix.mean, DECIMALS),
        "median": mix.median,
        "logit_mean": round(mix.logit_mean, DECIMALS),
        "selected": selected,
    }


def _shadows(feed: Feed, facts: Facts | None) -> dict[str, ShadowForecasts] | msgspec.UnsetType:
    """What the feed's shadows said of the round; nothing at all of a feed without shadows."""
    names = feed.shadows.names
    if not names:
        return msgspec.UNSET
    return {
        names[said.shadow]: ShadowForecasts(mix=round(said.mix, DECIMALS), stretched=round(said.stretched, DECIMALS))
        for said in (facts.shadows if facts else ())
        if said.shadow in names
    }


_SAMPLE = 100
"""So many experts tell about how large a record is."""
_LONGEST_EXPERT = 4_000
"""Bytes of an expert in weights, at most: its id and its team may be escaped, six bytes for one."""


def feed_outputs(feed: Feed, records: NewestRecords) -> list[Output]:
    """``weights`` and ``error-rates`` of a feed, as records."""
    at, key = feed.path_state.at, feed.name
    return [
        *published(topics.WEIGHTS, key, records.weights, at),
        *published(topics.ERROR_RATES, key, records.error_rates, at),
    ]


def newest_outputs(feed: Feed) -> list[Output]:
    """The outputs keyed by feed, read off its sums as they stand."""
    return feed_outputs(feed, feed_records(feed, list_experts(feed)))


def feed_tombstones(feed: Feed, at: Milliseconds) -> list[Output]:
    """Records that say that a feed's outputs are gone, those of parts included.

    The weights may have had more parts than they have now: there are as many records as they can ever have had.
    """
    outputs = newest_outputs(feed)
    most = 1 + (len(feed.roster.experts) + len(feed.roster.erased)) * _LONGEST_EXPERT // MAX_RECORD_BYTES
    keys = [(output.topic, key) for output in outputs for key in (output.key, feed.name.encode())]
    keys += [(topics.WEIGHTS, f"{feed.name}/{part}".encode()) for part in range(most) if most > 1]
    return [Output(topic, key, None, at) for topic, key in dict.fromkeys(keys)]


def published(topic: str, key: str, record: Published, at: Milliseconds) -> list[Output]:
    """What is written of an output: one record, or several with some of the experts each if it is too large."""
    headers = output_headers(record.settings)
    values = _parts(record) if isinstance(record, _LONG) and _may_be_large(record) else []
    if not values:
        return [Output(topic, key.encode(), encode_output(record), at, headers=headers)]
    return [Output(topic, f"{key}/{part}".encode(), value, at, headers=headers) for part, value in enumerate(values)]


_LONG = Weights, PeerLosses
"""Records with a line for each expert."""


def _may_be_large(record: Weights | PeerLosses) -> bool:
    """Whether the record may be too large if all ids are as long as they can be; half of the room is for the rest."""
    return 2 * len(record.experts) * _LONGEST_EXPERT > MAX_RECORD_BYTES


def _parts(record: Weights | PeerLosses) -> list[bytes]:
    """The parts of a record, as many as its size in one piece asks for, or more if one is too large; none if it fits.

    Experts are encoded once, in slices: how many are needed is guessed by the first experts, and seldom wrong.
    """
    experts, empty = record.experts, len(encode_output(msgspec.structs.replace(record, experts=[])))
    sample = experts[:_SAMPLE]
    guess = empty + len(encode_output(sample)) * len(experts) // len(sample)
    slices = _slices(experts, -(-guess // MAX_RECORD_BYTES))
    whole = empty + sum(len(encoded) - 1 for encoded in slices if len(encoded) > 2) - 1  # a comma between two of them
    parts = -(-whole // MAX_RECORD_BYTES)
    if parts == 1:
        return []
    while True:
        if parts != len(slices):
            slices = _slices(experts, parts)
        values = [_part(record, part, slices) for part in range(parts)]
        if max(map(len, values)) <= MAX_RECORD_BYTES:
            return values
        parts += 1


def _slices(experts: Sequence[WeightedExpert | ScoredExpert], parts: int) -> list[bytes]:
    size = -(-len(experts) // parts)
    return [encode_output(experts[part * size : (part + 1) * size]) for part in range(parts)]


def _part(record: Weights | PeerLosses, part: int, slices: Sequence[bytes]) -> bytes:
    parts = len(slices)
    if isinstance(record, Weights) and record.groups:
        size = -(-len(record.experts) // parts)
        listed = {expert.id for expert in record.experts[part * size : (part + 1) * size]}
        record = msgspec.structs.replace(record, groups=groups_of_part(record.groups, listed))
    return encode_output(msgspec.structs.replace(record, experts=msgspec.Raw(slices[part]), part=part, parts=parts))
