"""The explanation of an expert's weight: a feed-log folded for its timeline, which is summed up by cause and question.

The log is one that a replay kept, or that of the brokers.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import msgspec

from stream_peer.events import topics
from stream_peer.events.partitioning import partition_of
from stream_peer.events.spelling import did_you_mean
from stream_peer.events.times import Milliseconds, to_iso
from stream_peer.feeds.fold import FeedFold, keys_of
from stream_peer.feeds.methods.method import MethodOf
from stream_peer.feeds.methods.served import served_method
from stream_peer.kafka.client.read import groupless_reader, read_to_end
from stream_peer.log.driver import Steps, fold, pump
from stream_peer.log.stage import Effects, Record
from stream_peer.serve.explanation import (
    Bound,
    CauseKind,
    CauseOfMove,
    ExplainFault,
    ExplainRequest,
    OwnMove,
    QuestionOfMove,
    RestOfMove,
    SpanEnd,
    TermOfMove,
    WeightExplanation,
    WeightKind,
)
from stream_peer.settings.feed.document import FeedSettingsBook
from stream_peer.settings.process import Settings
from stream_peer.tools.explain.causes import CAUSES
from stream_peer.tools.explain.weight_timeline import Point, WeightProbe, WeightTimeline
from stream_peer.tools.explain.words import OWN, WORDS, meaning_of, sentences
from stream_peer.tools.replay.feed_log_reader import place_of_log, pump_from_log
from stream_peer.tools.replay.run import Run


class _Key(NamedTuple):
    """A question and one of its rounds, None where it is of neither, and a kind of cause."""

    question: str | None
    boundary: Milliseconds | None
    cause: CauseKind


_Terms: TypeAlias = Mapping[_Key, float]


def probe_for(request: ExplainRequest) -> WeightProbe:
    """What a fold of the feed's log must be shown to, to answer a request."""
    return WeightProbe(request.feed, [WeightTimeline(request.expert, request.since, request.until)])


def answer_request(request: ExplainRequest, probe: WeightProbe, log_start: int = 0) -> WeightExplanation | ExplainFault:
    """The answer to a request whose probe has seen the log; ``log_start``: the first offset that the log still has."""
    feed, expert, (timeline,) = request.feed, request.expert, probe.timelines
    if feed not in probe.feeds:
        return ExplainFault("feed", f"there is no feed {feed!r}{did_you_mean(feed, probe.feeds)}")
    if timeline.is_backwards:
        return ExplainFault("span", "the span would begin after its end")
    found = explanation_of(timeline, feed, request.weight, request.questions)
    if found is not None and request.inputs and timeline.reading is not None:
        found = msgspec.structs.replace(found, inputs=timeline.reading.inputs(expert, request.weight))
    if found is not None:
        return found if not log_start else _of_part(found, log_start)
    if expert not in probe.experts:
        meant = did_you_mean(expert, probe.experts)
        return ExplainFault("expert", f"there is no expert {expert!r} in feed {feed}{meant}")
    return ExplainFault(
        "expert", f"{expert} had no weight in feed {feed} by then: none of its questions counted, or it is excluded"
    )


def _of_part(explanation: WeightExplanation, start: int) -> WeightExplanation:
    """An explanation that says that the log has lost its beginning."""
    note = (
        f"The feed's log begins at offset {start}: earlier records are deleted, so these weights may differ "
        "from those that were published."
    )
    return msgspec.structs.replace(explanation, sentences=[*explanation.sentences, note])


def explanation_of(
    timeline: WeightTimeline, feed: str, weight: WeightKind = "mix", questions: int = 10
) -> WeightExplanation | None:
    """The explanation of a timeline that has reached its end; None if the expert never had a weight.

    Parameters
    ----------
    timeline : WeightTimeline
    feed : str
    weight : {"mix", "select"}
    questions : int
        How many to list: those on which the expert's own forecasts moved its weight most.
    """
    start, end = timeline.start, timeline.end
    if start is None or end is None or not (start.listed or end.listed or timeline.steps):
        return None
    terms = _terms(timeline, weight)
    ranked = sorted(_by_question(terms).items(), key=lambda one: (-abs(_own(one[1])), -abs(_sum(one[1])), one[0]))
    listed, rest = ranked[:questions], ranked[questions:]
    since, until = _span_end(start, timeline.since, weight), _span_end(end, timeline.until, weight)
    unworded = WeightExplanation(
        feed=feed,
        expert=timeline.expert,
        weight=weight,
        since=since,
        until=until,
        difference=until.weight - since.weight,
        sentences=[],
        own=_own_move(terms),
        causes=_causes(terms, weight),
        questions=[_question(name, of_it, timeline) for name, of_it in listed],
        rest=_rest(terms, [of_it for _, of_it in rest], {name for name, _ in listed}),
    )
    return msgspec.structs.replace(unworded, sentences=list(sentences(unworded)))


def _terms(timeline: WeightTimeline, weight: WeightKind) -> _Terms:
    """By how much each kind of cause moved the weight, by question and round."""
    found: dict[_Key, float] = defaultdict(float)
    for step in timeline.steps:
        for cause in step.causes:
            found[_Key(step.question, step.boundary, cause.kind)] += cause.mix if weight == "mix" else cause.select
    return {key: change for key, change in found.items() if change}


def _span_end(point: Point, bound: Bound | None, weight: WeightKind) -> SpanEnd:
    return SpanEnd(
        revision=point.revision,
        at=to_iso(point.at),
        asked=None if bound is None or bound.at is None else to_iso(bound.at),
        weight=point.mix if weight == "mix" else point.select,
        listed=point.listed,
        experts=point.experts,
    )


def _sum(terms: _Terms) -> float:
    return math.fsum(terms.values())


def _own(terms: _Terms) -> float:
    return math.fsum(change for key, change in terms.items() if key.cause in OWN)


def _by_question(terms: _Terms) -> dict[str, dict[_Key, float]]:
    found: dict[str, dict[_Key, float]] = defaultdict(dict)
    for key, change in terms.items():
        if key.question is not None:
            found[key.question][key] = change
    return found


def _causes(terms: _Terms, weight: WeightKind) -> list[CauseOfMove]:
    """The causes that did anything, those that did most first."""
    found = []
    for cause in CAUSES:
        of_cause = {key: change for key, change in terms.items() if key.cause == cause}
        by_question = [_sum(of_it) for of_it in _by_question(of_cause).values()]
        if of_cause:
            found.append(
                CauseOfMove(
                    cause=cause,
                    name=WORDS[cause].name,
                    meaning=meaning_of(cause, weight),
                    change=_sum(of_cause),
                    questions=len(by_question),
                    raised=sum(change > 0 for change in by_question),
                )
            )
    return sorted(found, key=lambda one: -abs(one.change))


def _own_move(terms: _Terms) -> OwnMove:
    by_question = _by_question({key: change for key, change in terms.items() if key.cause in OWN})
    changes = [_sum(of_it) for of_it in by_question.values()]
    return OwnMove(change=math.fsum(changes), questions=len(changes), raised=sum(change > 0 for change in changes))


def _question(name: str, terms: _Terms, timeline: WeightTimeline) -> QuestionOfMove:
    latest = timeline.forecasts.get(name)
    return QuestionOfMove(
        question=name,
        change=_sum(terms),
        own=_own(terms),
        probability=None if latest is None else latest.probability,
        reference_answer=None if latest is None else latest.reference_answer,
        outcome=None if latest is None else latest.outcome,
        terms=[
            TermOfMove(cause=key.cause, change=change, boundary=None if key.boundary is None else to_iso(key.boundary))
            for key, change in terms.items()
        ],
    )


def _rest(terms: _Terms, others: Sequence[_Terms], listed: set[str]) -> RestOfMove:
    left = {key: change for key, change in terms.items() if key.question not in listed}
    by_cause = {cause: [change for key, change in left.items() if key.cause == cause] for cause in CAUSES}
    return RestOfMove(
        questions=len(others),
        own_questions=sum(any(key.cause in OWN for key in of_it) for of_it in others),
        change=_sum(left),
        own=_own(left),
        terms=[TermOfMove(cause=cause, change=math.fsum(changes)) for cause, changes in by_cause.items() if changes],
    )


class ProbedFold:
    """Folds the records of one partition for a probe, and publishes nothing.

    Parameters
    ----------
    probe : WeightProbe
    partition : int
    secret : bytes
        The deployment's.
    settings : FeedSettingsBook, optional
        In force until the log says otherwise.
    method_of : FeedSettings -> Method, optional
        As of ``FeedFold``.
    """

    def __init__(
        self,
        probe: WeightProbe,
        partition: int = 0,
        secret: bytes = b"",
        settings: FeedSettingsBook | None = None,
        method_of: MethodOf = served_method,
    ) -> None:
        self.probe = probe
        self._stage = FeedFold(
            topic=topics.FEED_LOG, partition=partition, secret=secret, settings=settings, method_of=method_of
        )
        self._keys = keys_of(probe.feed)

    def fold(self, record: Record) -> Steps:
        """Fold a record, with the rebuilds that it calls for."""
        self.probe.before_record(record, self._stage)
        yield from fold(self._stage, record, self._keys)
        self.probe.after_record(Effects(), self._stage)


def run_explanations(
    run: Run,
    feed: str,
    experts: Sequence[str],
    questions: int = 3,
    progress: Callable[[int, int], None] | None = None,
) -> list[WeightExplanation]:
    """Why the shares of a feed's experts in the mix moved in a replay that has ended; of those that ever had one.

    Parameters
    ----------
    run : Run
        It has kept its log.
    feed : str
    experts : sequence of str
    questions : int
        How many questions to list.
    progress : callable or None
        Gets the number of records folded, and of all.
    """
    probe = WeightProbe(feed, [WeightTimeline(expert) for expert in experts])
    plan = run.plan
    partition = partition_of(feed, plan.feed_log_partitions)
    folding = ProbedFold(probe, partition, plan.secret, plan.book, plan.method_of)
    total = run.log_size(partition)
    for number, record in enumerate(run.log(partition), 1):
        pump(folding.fold(record), partial(run.log, partition))
        if progress is not None:
            progress(number, total)
    found = (explanation_of(timeline, feed, questions=questions) for timeline in probe.timelines)
    return [explanation for explanation in found if explanation is not None]


def explain_from_kafka(
    request: ExplainRequest, settings: Settings, secret: bytes, progress: Callable[[int, int], None] | None = None
) -> WeightExplanation | ExplainFault:
    """Explain from a feed's log in Kafka. The feeds that there are: those of its partition.

    Parameters
    ----------
    request : ExplainRequest
    settings : Settings
        Names the brokers and the topics.
    secret : bytes
        The deployment's, as its workers have it.
    progress : callable or None
        Gets the number of records read, and of all.

    Raises
    ------
    BrokerUnavailableError, NotAuthorisedError, TopicsError
        If the topics cannot be read.
    """
    probe = probe_for(request)
    return answer_request(request, probe, read_for(probe, settings, secret, progress))


def read_for(
    probe: WeightProbe, settings: Settings, secret: bytes, progress: Callable[[int, int], None] | None = None
) -> int:
    """Fold a feed's log for a probe, as far as its spans reach; the offset of the first record that the log still has.

    Raises
    ------
    BrokerUnavailableError, NotAuthorisedError, TopicsError
        If the topics cannot be read.
    """
    with groupless_reader(settings) as consumer:
        place = place_of_log(consumer, settings, probe.feed)
        (start,) = consumer.beginning_offsets([place]).values()
        (end,) = consumer.end_offsets([place]).values()
        folding = ProbedFold(probe, place.partition, secret)
        with closing(read_to_end(consumer, [place])) as batches:
            for record in _noted(probe, batches):
                if probe.is_over(record):  # nor does a later one belong to a span
                    break
                pump_from_log(folding.fold(record), settings, place)
                if progress is not None:
                    progress(record.offset + 1 - start, end - start)
    probe.finish()
    return int(start)


def _noted(probe: WeightProbe, batches: Iterable[Sequence[Any]]) -> Iterator[Any]:
    """The records of batches, once the probe has noted the feeds of the whole batch."""
    for records in batches:
        probe.note_feeds(records)
        yield from records
