"""What of an output does not depend on how the events of different questions were interleaved."""

from collections.abc import Callable, Mapping
from typing import Any

from stream_peer.events import topics

Record = Mapping[str, Any]

_QUESTION = ("feed", "question", "boundary", "final", "rounds")
_REFERENCE = (*_QUESTION, "state", "reference_answer", "tie", "votes", "yes", "experts", "outcome")
_SCORED = ("id", "probability", "reference_answer")
_MIXED = (*_QUESTION, "mean", "median", "logit_mean", "outcome")
_RATES = ("feed", "status", "zero", "one", "low", "high", "effective_questions", "from_truth", "vote_rule")
_WEIGHTS = ("feed", "questions", "resolved")
_WEIGHTED = ("id", "questions", "coverage", "peer_loss", "outcome_loss", "resolved")


def order_free(topic: str, record: Record, *, mixes: bool = True) -> Record:
    """The fields of an output that are equal, bit for bit, for other interleavings of the same events.

    They hold for the last record of each key, with the vote rule ``half``, under version 2 with ``guard: off``, and no
    control in between, for other partition counts, numbers of workers and for ``replay`` of the raw events. Not among
    them: what depends on when
    something was said (``revision``, ``at``, losses priced at an earlier error rate, ``select``, the certificate,
    ``mixer``, ``stretch``), and ``mix`` once a question is resolved.

    ``mixes``: whether ``mix`` is among them until then, as under version 1 of the method, or with ``mixer.trust_prior:
    off``. Trust is found along the path of the log. With it go, under version 2, the status and the upper end of the
    interval of the error rates.

    Examples
    --------
    >>> order_free("error-rates", {"feed": "econ", "revision": 7, "zero": 0.1, "one": 0.2, "effective_questions": 80.0})
    {'feed': 'econ', 'zero': 0.1, 'one': 0.2, 'effective_questions': 80.0}
    """
    kept = _ORDER_FREE[topic](record)
    if topic == topics.ERROR_RATES and not mixes:
        return {name: value for name, value in kept.items() if name not in ("status", "high")}
    if mixes or topic != topics.WEIGHTS:
        return kept
    return {**kept, "experts": [{k: v for k, v in expert.items() if k != "mix"} for expert in kept["experts"]]}


def _only(names: tuple[str, ...], record: Record) -> dict[str, Any]:
    return {name: record[name] for name in names if name in record}


def _fields(*names: str) -> Callable[[Record], Record]:
    return lambda record: _only(names, record)


def _scored(record: Record) -> Record:
    return {**_only(_QUESTION, record), "experts": [_only(_SCORED, expert) for expert in record["experts"]]}


def _weights(record: Record) -> Record:
    names = _WEIGHTED if record["resolved"] else (*_WEIGHTED, "mix")
    return {**_only(_WEIGHTS, record), "experts": [_only(names, expert) for expert in record["experts"]]}


def _grouped(record: Record) -> Record:
    parts = {kind: {part["name"]: part["outcome"] for part in record.get(kind, ())} for kind in ("options", "cdf")}
    return {**_only(("feed", "group", "boundary", "final"), record), **parts}


_ORDER_FREE: Mapping[str, Callable[[Record], Record]] = {
    topics.REFERENCE_ANSWERS: _fields(*_REFERENCE),
    topics.PEER_LOSSES: _scored,
    topics.MIXED_FORECASTS: _fields(*_MIXED),
    topics.MIXED_GROUPS: _grouped,
    topics.ERROR_RATES: _fields(*_RATES),
    topics.WEIGHTS: _weights,
}

COMPARED = tuple(_ORDER_FREE)
"""The topics whose records have fields that do not depend on the order: all outputs but dead letters."""
