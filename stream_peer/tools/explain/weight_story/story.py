"""The explanation of an expert's weight, as the command line, the worker's HTTP server and the report give it."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TypeAlias

import msgspec

from stream_peer.events.times import to_iso
from stream_peer.serve.explanation import (
    Bound,
    CauseOfMove,
    OwnMove,
    QuestionOfMove,
    RestOfMove,
    SpanEnd,
    TermOfMove,
    WeightExplanation,
    WeightKind,
)
from stream_peer.tools.explain.weight_account import Account, Key, Point
from stream_peer.tools.explain.weight_story.sentences import sentences
from stream_peer.tools.explain.weight_story.words import OWN, WORDS, meaning_of
from stream_peer.tools.explain.weight_terms import CAUSES

_Terms: TypeAlias = Mapping[Key, float]


def story_of(account: Account, feed: str, weight: WeightKind = "mix", questions: int = 10) -> WeightExplanation | None:
    """The story of an account that was kept to its end; None if the expert never had a weight.

    Parameters
    ----------
    account : Account
    feed : str
    weight : {"mix", "select"}
    questions : int
        How many to tell one by one: those on which the expert's own forecasts moved its weight most.
    """
    start, end = account.start, account.end
    if start is None or end is None or not (start.listed or end.listed or account.terms):
        return None
    side = 0 if weight == "mix" else 1
    terms = {key: moves[side] for key, moves in account.terms.items() if moves[side]}
    told = sorted(_by_question(terms).items(), key=lambda one: (-abs(_own(one[1])), -abs(_sum(one[1])), one[0]))
    since, until = _stand(start, account.since, weight), _stand(end, account.until, weight)
    unworded = WeightExplanation(
        feed=feed,
        expert=account.expert,
        weight=weight,
        since=since,
        until=until,
        difference=until.weight - since.weight,
        sentences=[],
        own=_own_move(terms),
        causes=_causes(terms, weight),
        questions=[_question(name, of_it, account) for name, of_it in told[:questions]],
        rest=_rest(terms, [of_it for _, of_it in told[questions:]], {name for name, _ in told[:questions]}),
    )
    return msgspec.structs.replace(unworded, sentences=list(sentences(unworded)))


def _stand(point: Point, bound: Bound | None, weight: WeightKind) -> SpanEnd:
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


def _by_question(terms: _Terms) -> dict[str, dict[Key, float]]:
    found: dict[str, dict[Key, float]] = defaultdict(dict)
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


def _question(name: str, terms: _Terms, account: Account) -> QuestionOfMove:
    said = account.said.get(name)
    return QuestionOfMove(
        question=name,
        change=_sum(terms),
        own=_own(terms),
        probability=None if said is None else said.probability,
        reference_answer=None if said is None else said.reference_answer,
        outcome=None if said is None else said.outcome,
        terms=[
            TermOfMove(cause=key.cause, change=change, boundary=None if key.boundary is None else to_iso(key.boundary))
            for key, change in terms.items()
        ],
    )


def _rest(terms: _Terms, untold: Iterable[_Terms], told: set[str]) -> RestOfMove:
    left = {key: change for key, change in terms.items() if key.question not in told}
    by_cause = {cause: [change for key, change in left.items() if key.cause == cause] for cause in CAUSES}
    others = list(untold)
    return RestOfMove(
        questions=len(others),
        own_questions=sum(any(key.cause in OWN for key in of_it) for of_it in others),
        change=_sum(left),
        own=_own(left),
        terms=[TermOfMove(cause=cause, change=math.fsum(changes)) for cause, changes in by_cause.items() if changes],
    )
