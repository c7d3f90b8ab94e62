"""A method: the mathematics of one feed as an object of functions, chosen once, when settings are adopted.

Nothing in the fold asks which method it is; it calls these functions and reads these words. ``served`` has the methods
that a worker serves. Others come from `stream_peer.lab`, and are given to the stages of a replay.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np

from stream_peer.feeds.vote_units import united
from stream_peer.numerics.answers import leave_one_out_of
from stream_peer.numerics.arguments import BitArray, BoolArray, FloatArray, IntArray, SmallIntArray
from stream_peer.numerics.error_rates import ErrorRate
from stream_peer.numerics.losses import SQUARED, ProperLoss
from stream_peer.settings.feed.model import FeedSettings

if TYPE_CHECKING:  # what these functions are given is made by modules that are given a method
    from stream_peer.feeds.facts import Facts, ScoringInputs
    from stream_peer.feeds.ledger import Entry
    from stream_peer.feeds.methods.rate_sums import RateSums
    from stream_peer.feeds.reading.weights import Basis, ExpertWeights, Extent

N_GROUPS = 3
"""As many groups as a method may ask."""

NO_ANSWERS = 26
"""``coded`` where no group was asked: each digit, to the base 3, is 2."""


class NeededDraws(NamedTuple):
    """What a method needs to have drawn for a round, beside what every round draws.

    Attributes
    ----------
    groups : int
        How many groups the experts are divided into; 0 for none.
    redrawn : bool
        Whether they are drawn for each round.
    flip_probability : float
        How often the reference answers of a round are turned round.
    """

    groups: int
    redrawn: bool = False
    flip_probability: float = 0.0


class Chance(NamedTuple):
    """What was drawn for a round.

    Attributes
    ----------
    groups : (n,) int64
        Number of each expert's group, the same for all of a team.
    coins : (int, int, int)
        A fair coin for each group.
    flip : bool
        Whether its reference answers are turned round.
    """

    groups: IntArray
    coins: tuple[int, int, int]
    flip: bool


NOTHING_DRAWN = Chance(np.zeros(0, np.int64), (0, 0, 0), flip=False)
"""For methods without ``draws``."""


class OwnAnswers(NamedTuple):
    """What the experts of a round are scored against.

    Attributes
    ----------
    answers : (n,) int8
    ties : (n,) bool
    given : bool
        Whether everybody has an answer. If not, the round does not count.
    coded : int
        Answers of the groups, 0, 1 or 2 for none, as digits to the base 3, that of the first group last.
    alike : int, optional
        The answer of everybody where it is known to be the same for all.
    """

    answers: SmallIntArray
    ties: BoolArray
    given: bool = True
    coded: int = NO_ANSWERS
    alike: int | None = None


class Situation(NamedTuple):
    """What a learner reads.

    Attributes
    ----------
    regrets, absolute : (n,) float64
        Priced regrets of the experts present, and the sums of their absolute values.
    loss_range : float
        Of the losses that were priced, at least 1.
    n_experts, questions
        Seen so far.
    gaps : float
        Sum of the mixability gaps.
    """

    regrets: FloatArray
    absolute: FloatArray
    loss_range: float
    n_experts: int
    questions: float
    gaps: float


class Path(Protocol):
    """What a feed's learner has come to, if it goes by what it said before and not only by the sums."""

    def weights(self, read: "ExpertWeights", basis: "Basis") -> "ExpertWeights":
        """The weights of some experts, given those that were read off the sums."""

    def learn(self, facts: "Facts", entry: "Entry", seen: "Extent", method: "Method") -> None:
        """Go on by a round of a question that is in the sums; ``seen``: until then."""

    def put_in(self, entry: "Entry", n_experts: int) -> None:
        """A question is in the sums again."""

    def take_out(self, entry: "Entry") -> None:
        """A question's contribution was taken out of the sums."""

    def settle(self, entry: "Entry") -> None:
        """A question has left the ledger: what it has added stays for good."""

    def frozen(self) -> "Path":
        """The path up to here, which goes no further."""


def majority_of_others(
    cast: SmallIntArray, counted: tuple[int, int], forecasts: FloatArray, under: "ScoringInputs"
) -> OwnAnswers:
    """For each expert the majority of the votes of all others; of other teams and groups, where there are any.

    Where a majority is clear without any one of its votes, nobody's answer is another one than that of all.
    """
    if under.groups is not None:
        units = united(cast, forecasts, under.thresholds, under.groups.numbers, under.teams)
        return OwnAnswers(*units.leave_one_out(under.coin))
    lead = 2 * counted[1] - counted[0]
    if under.teams is None and abs(lead) > 1:
        alike = int(lead > 0)
        return OwnAnswers(np.full(len(cast), alike, np.int8), np.zeros(len(cast), np.bool_), alike=alike)
    return OwnAnswers(*leave_one_out_of(cast, forecasts, under.coin, under.teams, under.thresholds))


Gap: TypeAlias = Callable[[FloatArray, FloatArray, int, float], float]
"""Mixability gap of a round: of priced regrets, selection weights, experts seen, sum of gaps."""


Evidence: TypeAlias = Literal["votes", "answers of the groups"]


@dataclass(frozen=True, slots=True)
class Method:
    """The mathematics of one feed. While the feed has rounds, only `guards` changes.

    Attributes
    ----------
    loss : ProperLoss
        What a forecast costs.
    vote_rule : str
        The setting: when a forecast is a vote for yes.
    answers : votes, their number and that of yes, forecasts, ScoringInputs -> OwnAnswers
        The reference answer that each expert is scored against, given the votes by the rule in force.
    draws : NeededDraws, optional
        What must be drawn for them.
    rate : RateSums, confidence -> ErrorRate, optional
        The estimate of error rates, if it is not that from moments of the votes; `RateSums` are all that it may read.
    select : Situation -> (n,) float64, optional
        Selection weights of the experts present, if they are not those of AdaNormalHedge.
    gap : priced regrets, selection weights, experts seen, sum of gaps -> float, optional
        Mixability gap of a round, for a learner that goes by it.
    path : () -> Path, optional
        The beginning of the learner's path, if it has one.
    is_frozen : bool
        Whether regrets keep the price of their time, and stay on when an outcome comes.
    from_mean : bool
        Whether regrets are taken from the mean over those present, and not from the selection weights.
    reads_classes : bool
        Whether votes at 1/2 give error rates of each class, too.
    evidence : str
        What error rates are read from, as reasons name it.
    asks_outcomes : bool
        Whether error rates are those of resolved questions alone.
    estimates : bool
        Whether error rates are estimated from votes, so that outcomes can contradict them.
    leaves_one_out : bool
        Whether each expert is scored against all others.
    certifies : bool
        Whether reference answers are made without the experts that they score, as a certificate demands.
    rates_by_trust : bool
        Whether the published status and interval of error rates follow the feed's trust, see `published_rates`.
    tells_coins : bool
        Whether class-dependent error rates are ``uninformative`` where votes vary no more than those of coins. In
        version 1 pseudo-questions count as variation, so coins may pass for ``ok``.
    bounds_all : bool
        Whether the certificate adds up all rounds of all questions, with an outcome or without, by rates of either
        class from moments of the vote count.
    mixes : bool
        Whether forecasts are mixed by all mixers, in shares that outcomes move.
    adjusts : bool
        Whether the mixed forecast may be stretched, and selection weights made more alike where trust asks for it.
    guards : bool
        Whether experts who say the same share a vote and a weight. With the setting it may change between rounds.
    finds_blocks : bool
        Whether blocks of experts are looked for, see `find_blocks`.
    trust_prior : bool
        Whether trust sets the prior share of the peer mixer, and peers stretch the mix before outcomes do.
    stretch_shrinkage : float
        See `stretch_factor`.
    own_counts : bool
        Whether mixers weigh each expert by the regrets of its own questions, see `pooled_regrets`.
    finds_repeaters : bool
        Whether experts who repeat what was published are looked for, see `find_repeaters`, and followers of either kind
        have no weight where the guard is on.
    holds_newcomers : bool
        Whether, where the guard is on, those who are new to a round are one group of it, see `newcomers`.
    mixes_at_half : bool
        Whether the peer mixer learns from reference answers by votes at ½ under every vote rule.
    counts_groups : bool
        Whether error rates and alarms count the parts of a group of questions as one, see `RateSums`.
    """

    loss: ProperLoss = SQUARED
    vote_rule: Literal["half", "own-median", "auto"] = "half"
    answers: Callable[[SmallIntArray, tuple[int, int], FloatArray, "ScoringInputs"], OwnAnswers] = majority_of_others
    draws: NeededDraws | None = None
    rate: Callable[["RateSums", float], ErrorRate] | None = None
    select: Callable[[Situation], FloatArray] | None = None
    gap: Gap | None = None
    path: Callable[[], Path] | None = None
    is_frozen: bool = False
    from_mean: bool = False
    reads_classes: bool = False
    evidence: Evidence = "votes"
    asks_outcomes: bool = False
    estimates: bool = True
    leaves_one_out: bool = True
    certifies: bool = True
    rates_by_trust: bool = False
    tells_coins: bool = False
    bounds_all: bool = False
    mixes: bool = True
    adjusts: bool = True
    guards: bool = False
    finds_blocks: bool = False
    trust_prior: bool = False
    stretch_shrinkage: float = 5.0
    own_counts: bool = False
    finds_repeaters: bool = False
    holds_newcomers: bool = False
    mixes_at_half: bool = False
    counts_groups: bool = False

    @property
    def keeps_histograms(self) -> bool:
        """Whether each expert's own median may be asked for."""
        return self.vote_rule != "half"

    @property
    def reads_extent(self) -> bool:
        """Whether its learner goes by how much the feed has seen."""
        return self.select is not None or self.gap is not None or self.path is not None

    @property
    def loss_unit(self) -> float:
        """What a loss of 1 in the sums is in the loss's own unit: nats for the log loss."""
        return self.loss.upper

    def losses(self, forecasts: FloatArray, answers: BitArray, alike: int | None = None) -> FloatArray:
        """Losses of forecasts against their reference answers, against 1 and against 0, scaled to [0, 1]: (3, n).

        ``alike``: the answer that all have, where that is known.
        """
        losses = np.empty((3, len(forecasts)))
        losses[1], losses[2] = self.loss.scaled_sides(forecasts)
        if alike is None:
            losses[0] = np.where(answers.view(np.bool_), losses[1], losses[2])
        else:
            losses[0] = losses[1 if alike else 2]
        return losses


MethodOf: TypeAlias = Callable[[FeedSettings], Method]
"""How settings choose a method."""
