"""What subscribers read.

``revision`` is the offset of the feed-log record that caused an output: equal revision means equal bytes. A
restart may repeat the last ones, so a reader keeps the highest per key.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Annotated, Literal

import msgspec

ErrorRateStatus = Literal[
    "ok", "insufficient", "balanced", "uninformative", "contradicted", "biased-reveal", "dependent"
]
TrustState = Literal["ok", "warming-up", "low-evidence", "dependent", "contradicted", "uninformative"]
StateOfQuestion = Literal["scored", "low-evidence", "resolved", "annulled", "withdrawn"]
Outcome = Literal[0, 1, "annulled"]
GroupKind = Literal["copies", "follower"]

Share = Annotated[float, msgspec.Meta(extra_json_schema={"minimum": 0, "maximum": 1})]
"""A share or a probability. Bounds of outputs are said in their schemas; the decoder has no need to check our own."""
Count = Annotated[int, msgspec.Meta(extra_json_schema={"minimum": 0})]
"""How many, or a place in a log."""
Questions = Annotated[float, msgspec.Meta(extra_json_schema={"minimum": 0})]
"""How many questions, by weight."""
Answer = Annotated[int, msgspec.Meta(extra_json_schema={"enum": [0, 1]})]
"""A reference answer."""
Moment = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]
"""ISO 8601, UTC."""

SCHEMA = 1
"""Major version of all outputs."""


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """What all outputs have. ``at`` is the time of the feed-log record, ISO 8601 UTC; ``settings`` a short hash."""

    schema: int = SCHEMA
    feed: str
    revision: Count
    at: Moment
    settings: str
    part: Count | msgspec.UnsetType = msgspec.UNSET
    parts: Count | msgspec.UnsetType = msgspec.UNSET


class ErrorRateSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Estimated error rates of reference answers; ``low`` and ``high`` bound the mean of ``zero`` and ``one``.

    ``measured``: of resolved questions, null before the first. From version 2 of the method on it is the mean of both
    outcomes' shares of wrong reference answers, as the interval is; before, the share among all.
    """

    zero: Share
    one: Share
    low: Share
    high: Share
    status: ErrorRateStatus
    measured: Share | None


class MixerShares(msgspec.Struct, frozen=True, kw_only=True):
    """Share of each mixer in the published mix; they sum to 1 (the outer layer)."""

    mean: Share
    peer: Share
    truth_slow: Share
    truth_fast: Share


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """Upper bound on the regret of following ``select`` so far, in summed loss, against the best single expert.

    Over all rounds, each a share of its question, of questions that are not annulled and that this expert answered. In
    the unit of the feed's loss: in nats for the log loss.
    """

    regret_at_most: float
    confidence: Share
    conditional_on: str = "independent errors"

    def a_question(self, questions: float) -> float | None:
        """The bound a question; None while it is above 1, the largest squared loss: then it says nothing yet.

        Examples
        --------
        >>> bound = Certificate(regret_at_most=152.0, confidence=0.95)
        >>> bound.a_question(100.0), bound.a_question(200.0)
        (None, 0.76)
        """
        share = self.regret_at_most / max(questions, 1.0)
        return None if share > 1.0 else share


class WeightedExpert(msgspec.Struct, frozen=True, gc=False):
    """An expert's weights and record. ``mix`` combines forecasts, ``select`` is for following one expert.

    ``uninformative`` is there, and true, only of an expert that has said the same (within one bin of forecasts) in ten
    questions or more, and never anything else: under own medians it has no vote.
    """

    id: str
    mix: Share
    select: Share
    questions: Questions
    coverage: Share
    peer_loss: float | None
    outcome_loss: float | None
    resolved: Questions
    team: str | None
    uninformative: bool | msgspec.UnsetType = msgspec.UNSET


class ShadowScores(msgspec.Struct, frozen=True, kw_only=True):
    """How a shadow did in scored forecasts of resolved questions, and the live mixers in the same.

    ``questions``: those whose scored forecast came when there was the shadow, by weight. Means over them, null before
    the first: ``brier`` (squared loss) and ``log_score`` (in nats, of forecasts cut at .001 and .999) of stretched
    forecasts, ``mix_brier`` of mixed ones; smaller is better. ``regret`` is the summed squared loss of the shadow's
    stretched forecasts above that of the live ones: below 0 the shadow did better.
    """

    name: str
    questions: Questions
    brier: float | None
    live_brier: float | None
    log_score: float | None
    live_log_score: float | None
    regret: float
    mix_brier: float | None
    live_mix_brier: float | None


class DriftedRate(msgspec.Struct, frozen=True, kw_only=True):
    """A change of the error rate. ``since_questions``: how many of the last ones are of now; ``z``: how sure it is.

    ``by`` agreement, the rates being the symmetric ones read from it; or by outcomes, and they are shares of wrong
    reference answers.
    """

    before: Share
    now: Share
    since_questions: Count
    z: float
    by: Literal["agreement", "outcomes"]


class DriftedExpert(msgspec.Struct, frozen=True, kw_only=True):
    """A change of an expert beside the others: how often it agrees with its own reference answers, before and now.

    ``since_questions``: how many of those that it answered are of now; ``z`` below 0: it got worse.
    """

    id: str
    before: Share
    now: Share
    since_questions: Count
    z: float


class Drifting(msgspec.Struct, frozen=True, kw_only=True):
    """What changed lately, as of the last look at the last 512 questions: there is one after every 25 new ones.

    ``error_rate`` is null while it is steady; ``experts`` are the 20 that changed most of ``n_experts`` that did.
    """

    error_rate: DriftedRate | None
    n_experts: Count
    experts: list[DriftedExpert]


class ExpertGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Experts who say the same, as of the last look at the last 512 questions: there is one after every 25 new ones.

    ``copies`` agree with one another, a ``follower`` (it may be alone) agrees with what the crowd had said before.
    ``agreement`` is the mean product of votes of +1 and -1 in the mean over pairs of them, ``expected`` what it would
    be if they knew of each other only through the outcome, ``questions`` what a pair has in common. ``number`` only in
    a record in parts: each names those of a group that it lists, and groups of one number are one.
    """

    experts: list[str]
    kind: GroupKind
    agreement: float
    expected: float
    questions: Count
    number: Count | msgspec.UnsetType = msgspec.UNSET


class Weights(Published, frozen=True, kw_only=True):
    """Topic ``weights``, key feed, compacted: the newest weights. ``shadows`` only of feeds that have some.

    ``drift`` only of feeds in which something drifts: it is an alarm, and moves no weight. ``groups`` only of feeds
    with experts who say the same; where the guard is on each of them votes once and shares one weight; from version 2
    of the method on followers have none.

    ``status`` is the feed's trust, which every other output has as ``trust``. ``select_shrink`` is the share of uniform
    weights in every ``select``, above 0 in a feed that is not to be trusted, and for a while after.
    """

    status: TrustState
    status_reasons: list[str]
    questions: Questions
    resolved: Questions
    error_rate: ErrorRateSummary
    mixer: MixerShares
    stretch: float
    select_shrink: Share
    certificate: Certificate | None
    experts: list[WeightedExpert]
    shadows: list[ShadowScores] | msgspec.UnsetType = msgspec.UNSET
    drift: Drifting | msgspec.UnsetType = msgspec.UNSET
    groups: list[ExpertGroup] | msgspec.UnsetType = msgspec.UNSET


class TruthRates(msgspec.Struct, frozen=True, kw_only=True):
    """Error rates measured on resolved questions: P(ŷ=1|y=0), P(ŷ=0|y=1), null where no such outcome is known.

    ``resolved`` counts a group as one question from version 2 of the method on, as ``effective_questions`` does.
    """

    zero: Share | None
    one: Share | None
    resolved: Questions


class ErrorRates(Published, frozen=True, kw_only=True):
    """Topic ``error-rates``, key feed, compacted: those of the vote rule in force, which ``vote_rule`` names."""

    trust: TrustState
    status: ErrorRateStatus
    status_reasons: list[str]
    zero: Share
    one: Share
    low: Share
    high: Share
    effective_questions: Questions
    from_truth: TruthRates
    vote_rule: str


class QuestionOutput(Published, frozen=True, kw_only=True):
    """What the outputs keyed by question have: the latest round of a question and what became of it.

    ``final``: the boundary is the question's close as it stands. ``trust`` is that of the feed when the record was
    published.
    """

    trust: TrustState
    question: str
    state: StateOfQuestion
    boundary: Moment | None
    final: bool
    rounds: Count


class ReferenceAnswer(QuestionOutput, frozen=True, kw_only=True):
    """Topic ``reference-answers``, key question: the experts' own stand-in for the outcome."""

    reference_answer: Answer | None
    tie: bool
    votes: Count
    yes: Count
    experts: Count
    outcome: Outcome | None
    error_rate: ErrorRateSummary
    provisional_outcome: Outcome | msgspec.UnsetType = msgspec.UNSET


class ScoredExpert(msgspec.Struct, frozen=True, gc=False):
    """One expert's forecast in the round, its own (leave-one-out) reference answer and its losses.

    Losses are in the unit of the feed's loss: in [0, 1], or in nats for the log loss. ``peer_loss`` is on the unbiased
    scale: its expectation is the loss against the outcome. It may leave their range.
    """

    id: str
    probability: Share
    reference_answer: Answer
    peer_loss: float
    outcome_loss: float | None


class PeerLosses(QuestionOutput, frozen=True, kw_only=True):
    """Topic ``peer-losses``, key question: how each expert did against the others, and against the outcome if known."""

    error_rate: ErrorRateSummary
    experts: list[ScoredExpert]


class SelectedExpert(msgspec.Struct, frozen=True, kw_only=True):
    """The expert drawn from the selection weights for this round, and its forecast."""

    expert: str
    probability: Share


class ShadowForecasts(msgspec.Struct, frozen=True, kw_only=True):
    """What a shadow would have published of the round."""

    mix: Share
    stretched: Share


class ScoredForecast(msgspec.Struct, frozen=True, kw_only=True):
    """A question's forecast that an evaluation looks at: its first final round, as it was first published.

    ``revision`` is that of the records which published it; the record of ``peer-losses`` has what each expert said.
    It never changes, whatever is published later. ``selected`` is null if that expert was erased since.
    """

    revision: Count
    boundary: Moment
    mix: Share
    stretched: Share
    mean: Share
    median: Share
    logit_mean: Share
    selected: SelectedExpert | None
    shadows: dict[str, ShadowForecasts] | msgspec.UnsetType = msgspec.UNSET


class MixedForecast(QuestionOutput, frozen=True, kw_only=True):
    """Topic ``mixed-forecasts``, key question: the crowd's forecast, made with the weights before this round.

    ``shadows``, by name, only of feeds that have some: those that there were when the round was scored. ``scored`` is
    the question's scored forecast, from its publication on in every record; it counts while ``state`` is ``resolved``.
    A record of another revision is a correction, and no forecast.
    """

    mix: Share | None
    stretched: Share | None
    mean: Share | None
    median: Share | None
    logit_mean: Share | None
    selected: SelectedExpert | None
    outcome: Outcome | None
    scored: ScoredForecast | None
    provisional_outcome: Outcome | msgspec.UnsetType = msgspec.UNSET
    shadows: dict[str, ShadowForecasts] | msgspec.UnsetType = msgspec.UNSET


class PartForecast(msgspec.Struct, frozen=True, kw_only=True):
    """One option or threshold of a group, by its name; null where it has no round.

    ``mix`` and ``stretched`` are those of its mixed forecast, made coherent with those of the others.
    """

    name: str
    mix: Share | None
    stretched: Share | None
    outcome: Outcome | None


class MixedGroup(Published, frozen=True, kw_only=True):
    """Topic ``mixed-groups``, key group: the mixed forecasts of a question with options or thresholds, made coherent.

    Of ``options`` one comes true: their probabilities sum to 1, or leave a rest for those without a round. ``cdf`` has
    the probability of at most each threshold, numbers before times, ascending: it never falls. What a group has
    none of is left out, and both of a group of more than 500 parts. ``boundary`` is the latest of its parts; ``final``:
    that of each is its close.
    """

    trust: TrustState
    group: str
    boundary: Moment | None
    final: bool
    options: list[PartForecast] | msgspec.UnsetType = msgspec.UNSET
    cdf: list[PartForecast] | msgspec.UnsetType = msgspec.UNSET


encode_output = msgspec.json.Encoder().encode


@lru_cache(maxsize=64)
def output_headers(settings: str) -> tuple[tuple[str, bytes], ...]:
    """Kafka headers of an output: what a reader may want to know before it decodes the value.

    Parameters
    ----------
    settings : str
        The output's own field of that name.

    Examples
    --------
    >>> output_headers("9f3c0d1e")
    (('schema', b'1'), ('settings', b'9f3c0d1e'))
    """
    return ("schema", b"%d" % SCHEMA), ("settings", settings.encode("ascii"))


Groups = list[ExpertGroup] | msgspec.UnsetType


def groups_of_part(groups: Sequence[ExpertGroup], listed: Collection[str]) -> Groups:
    """What a part says of groups: of each its members that are ``listed`` there, and which group it is.

    Examples
    --------
    >>> group = ExpertGroup(experts=["a", "b", "c"], kind="copies", agreement=1.0, expected=0.2, questions=50)
    >>> groups_of_part([group], {"b", "c", "d"})[0].experts
    ['b', 'c']
    """
    found = []
    for number, group in enumerate(groups):
        members = [expert for expert in group.experts if expert in listed]
        if members:
            found.append(msgspec.structs.replace(group, experts=members, number=number))
    return found or msgspec.UNSET


def joined_groups(parts: Iterable[Weights]) -> Groups:
    """The groups that parts of a record name, put together; one part may come twice. A whole record is one part.

    Examples
    --------
    >>> joined_groups([])
    UNSET
    """
    known: dict[int, ExpertGroup] = {}
    for part in parts:
        for place, group in enumerate(part.groups or []):
            number = place if group.number is msgspec.UNSET else group.number
            before = known[number].experts if number in known else []
            known[number] = msgspec.structs.replace(group, experts=sorted({*before, *group.experts}))
    return [known[number] for number in sorted(known)] or msgspec.UNSET


def joined_parts(parts: Sequence[Weights]) -> Weights:
    """The whole record of its parts in order; a record that came whole is its only part."""
    if len(parts) == 1 and parts[0].parts is msgspec.UNSET:
        return parts[0]
    experts = [expert for part in parts for expert in part.experts]
    groups = joined_groups(parts)
    return msgspec.structs.replace(parts[0], experts=experts, groups=groups, part=msgspec.UNSET, parts=msgspec.UNSET)
