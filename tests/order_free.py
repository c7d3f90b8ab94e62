"""What of an output does not depend on how the events of different questions were interleaved."""

from collections.abc import Mapping
from typing import Any

_QUESTION = ("feed", "question", "boundary", "final", "rounds")
_REFERENCE = (*_QUESTION, "state", "reference_answer", "tie", "votes", "yes", "experts", "outcome")
_SCORED = ("id", "probability", "reference_answer")
_MIXED = (*_QUESTION, "mean", "median", "logit_mean", "outcome")
_RATES = ("feed", "status", "zero", "one", "low", "high", "effective_questions", "from_truth", "vote_rule")
_WEIGHTS = ("feed", "questions", "resolved")
_WEIGHTED = ("id", "questions", "coverage", "peer_loss", "outcome_loss", "resolved")


def order_free(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of a decoded output that are equal, bit for bit, for other interleavings of the same events.

    They hold for the last record of each key, with the vote rule ``half`` and no control in between, for other
    partition counts, numbers of workers and for ``replay`` of the raw events. Not among them: what depends on when
    something was said (``revision``, ``at``, losses priced at an earlier error rate, ``select``, the certificate,
    ``mixer``, ``stretch``), and ``mix`` once a question is resolved.

    Parameters
    ----------
    record : mapping
        A value of ``reference-answers``, ``peer-losses``, ``mixed-forecasts``, ``error-rates`` or ``weights``.

    Examples
    --------
    >>> order_free({"feed": "econ", "revision": 7, "zero": 0.1, "one": 0.2, "effective_questions": 80.0})
    {'feed': 'econ', 'zero': 0.1, 'one': 0.2, 'effective_questions': 80.0}
    """
    if "reference_answer" in record:
        return _only(_REFERENCE, record)
    if "effective_questions" in record:
        return _only(_RATES, record)
    if "logit_mean" in record:
        return _only(_MIXED, record)
    if "mixer" in record:
        names = _WEIGHTED if record["resolved"] else (*_WEIGHTED, "mix")
        return {**_only(_WEIGHTS, record), "experts": [_only(names, expert) for expert in record["experts"]]}
    return {**_only(_QUESTION, record), "experts": [_only(_SCORED, expert) for expert in record["experts"]]}


def _only(names: tuple[str, ...], record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: record[name] for name in names if name in record}
