"""An account of an expert's weights between two moments: where they stood, and what moved them, term by term."""

from collections.abc import Iterable
from typing import NamedTuple

from stream_peer.events.feed_log import AnyFeedLogRecord, OutcomeRevealed, Round, RoundWithdrawn, Verdict
from stream_peer.events.times import Milliseconds
from stream_peer.serve.explanation import Bound, CauseKind
from stream_peer.tools.explain.weight_terms import Moment, Term


class Place(NamedTuple):
    """A record's revision, and the time of the log when it came."""

    revision: int
    at: Milliseconds


class Point(NamedTuple):
    """How an expert stood after a record; ``revision`` -1: before the first. ``experts``: how many had weights."""

    revision: int
    at: Milliseconds
    mix: float
    select: float
    listed: bool
    experts: int


class Key(NamedTuple):
    """What a term is of: a question and one of its rounds, None where it is of neither, and a cause."""

    question: str | None
    boundary: Milliseconds | None
    cause: CauseKind


class Said(NamedTuple):
    """What an expert said in the latest round of a question, what the others answered, and what is known of it."""

    probability: float
    reference_answer: int
    outcome: Verdict


class Account:
    """What moved the weights of one expert.

    Parameters
    ----------
    expert : str
    since, until : Bound, optional
        Its span. Without ``since`` it begins where the expert is listed first, without ``until`` it ends with the log.

    Attributes
    ----------
    start, end : Point or None
        Where the weights stood at its ends; None before anything is known of it.
    terms : dict of Key to (mix, select)
        They add up to what lies between.
    said : dict of str to Said
        Of the questions whose rounds or outcomes moved the expert's own record.
    is_backwards : bool
        Whether the span was over before it began, which of a revision and a moment only the log can tell.
    """

    def __init__(self, expert: str, since: Bound | None = None, until: Bound | None = None) -> None:
        self.expert = expert
        self.start: Point | None = None
        self.end: Point | None = None
        self.terms: dict[Key, tuple[float, float]] = {}
        self.said: dict[str, Said] = {}
        self.since, self.until = since, until
        self.is_backwards = False

    def is_over(self, place: Place) -> bool:
        """Whether a record comes after the span."""
        return self.until is not None and _lies_beyond(place, self.until)

    def begins(self, place: Place) -> bool:
        """Whether the span begins right before a record."""
        return self.start is None and self.since is not None and _lies_beyond(place, self.since)

    def wants(self, place: Place) -> bool:
        """Whether what a record moves is to be explained, so that the moments before and after it must be known."""
        return not self.is_over(place) and (self.start is not None or self.begins(place))

    def awaits(self, place: Place) -> bool:
        """Whether the expert may be listed for the first time by a record, which would begin the span."""
        return self.since is None and self.start is None and not self.is_over(place)

    def begin(self, moment: Moment | None, place: Place) -> None:
        """The span begins here, unless it has begun."""
        if self.start is None:
            self.start = self.end = _point(self.expert, moment, place)
            self.is_backwards = place.revision >= 0 and self.is_over(place)

    def begin_late(self, moment: Moment | None, place: Place, latest: Place) -> None:
        """The span begins at the end of what was read, since no record began it up to the ``latest``."""
        self.begin(moment, place)
        if self.since is not None and not _lies_beyond(latest, self.since):
            self.is_backwards = self.is_over(latest)

    def take(self, place: Place, record: AnyFeedLogRecord, terms: Iterable[Term], after: Moment | None) -> None:
        """Take up what a record moved."""
        self.end = _point(self.expert, after, place)
        for term in terms:
            key = Key(getattr(record, "question_id", None), getattr(record, "boundary", None), term.cause)
            mix, select = self.terms.get(key, (0.0, 0.0))
            self.terms[key] = mix + term.mix, select + term.select
            if term.cause in ("peer-loss", "truth") and after is not None:
                self._note(record, after)

    def _note(self, record: AnyFeedLogRecord, after: Moment) -> None:
        if not isinstance(record, Round | RoundWithdrawn | OutcomeRevealed):
            return
        entry, place = after.feed.entries.get(record.question_id), after.feed.roster.place(self.expert)
        for facts in reversed(entry.facts() if entry is not None else []):
            found = (facts.experts == place).nonzero()[0]
            if entry is not None and len(found):
                row = int(found[0])
                said = Said(float(facts.forecasts[row]), int(facts.answers[row]), entry.evidence)
                self.said[record.question_id] = said
                return


def _point(expert: str, moment: Moment | None, place: Place) -> Point:
    if moment is None:
        return Point(place.revision, place.at, 0.0, 0.0, listed=False, experts=0)
    listed, experts = moment.lists(expert), len(moment.listed)
    return Point(place.revision, place.at, *moment.of(expert), listed=listed, experts=experts)


def _lies_beyond(place: Place, bound: Bound) -> bool:
    if bound.revision is not None:
        return place.revision > bound.revision
    return bound.at is not None and place.at > bound.at
