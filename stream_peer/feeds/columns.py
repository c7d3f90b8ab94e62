"""The columns: everything that is summed over questions, declared once.

What a question adds to a column depends on what is known of its outcome. The table says it in words. Three things
follow from the table: where a column lies, and so the stored form (``Layout``); what a contribution may write
(``Layout.written``); and the table of the documentation.

Columns ``by_rule`` exist once for each vote rule, since each set is priced with the error rates of its own rule. The
order of the table is the order of the stored sums: a change of it needs a higher schema number of the feed state.
"""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from itertools import groupby
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from stream_peer.numerics.arguments import IntArray
from stream_peer.numerics.error_rates.class_moments import ClassMomentSums

VoteRule: TypeAlias = Literal["half", "own-median"]
Scope: TypeAlias = Literal["expert", "feed", "subsample", "shadow"]
Evidence: TypeAlias = Literal["open", "resolved"]

VOTE_RULES: tuple[VoteRule, VoteRule] = ("half", "own-median")
"""By their numbers. ``half``: a forecast above 1/2 votes yes; ``own-median``: one above the expert's own median."""

SCALE = 2.0**40
UNIT = 2.0**-40
"""Sums are whole numbers of this unit."""

VOTES = 1024
"""Votes are counted in units of so many, since a question may add thousands: a feed has room for 8 billion."""


class Column(NamedTuple):
    """A column of the sums.

    Attributes
    ----------
    name : str
    scope : str
        What there is one of the column for: each expert, the feed, each subsample of its questions, each shadow.
    by_rule : bool
        Whether there is one for each vote rule.
    open, resolved : str
        What a question adds without outcome, and with it; empty: nothing.
    doc : str
        What else there is to know.
    version : int
        The version of the method that was the first to fill it.
    """

    name: str
    scope: Scope
    by_rule: bool = False
    open: str = ""
    resolved: str = ""
    doc: str = ""
    version: int = 1


_SAME = "the same"
_MIXERS = ("peer", "slow", "fast")
_PAIRS = [(one, two) for place, one in enumerate(_MIXERS) for two in _MIXERS[place:]]

COLUMNS: tuple[Column, ...] = (
    Column("variance", "expert", by_rule=True, open="(w·mean spread)²/4", doc="for the certificate; w: the weight"),
    Column("loss", "expert", by_rule=True, open="ℓ(p, ŷ)", doc="ŷ: the leave-one-out reference answer"),
    Column("loss_if_one", "expert", by_rule=True, open="ℓ(p, 1)"),
    Column("loss_if_zero", "expert", by_rule=True, open="ℓ(p, 0)"),
    Column("published_regret", "expert", by_rule=True, open="Σvℓ - ℓ against ŷ", doc="v: the published weights"),
    Column("published_regret_if_one", "expert", by_rule=True, open="Σvℓ - ℓ against 1"),
    Column("published_regret_if_zero", "expert", by_rule=True, open="Σvℓ - ℓ against 0"),
    Column("regret", "expert", by_rule=True, open="Σuℓ - ℓ against ŷ", doc="u: the learner's own weights"),
    Column("regret_if_one", "expert", by_rule=True, open="Σuℓ - ℓ against 1"),
    Column("regret_if_zero", "expert", by_rule=True, open="Σuℓ - ℓ against 0"),
    Column("absolute_regret", "expert", by_rule=True, open="|regret|, priced at the rates of the time"),
    Column("outcome_regret", "expert", resolved="Σuℓ - ℓ against y", doc="y: the outcome"),
    Column("outcome_absolute", "expert", resolved="|outcome_regret|"),
    Column("mix_level", "expert", open="2b(b - p)", resolved=_SAME, doc="b: the plain mean"),
    Column("mix_slope", "expert", open="2(b - p)", resolved=_SAME),
    Column(
        "mix_answer",
        "expert",
        open="2(b - p)·ŷ",
        resolved=_SAME,
        doc="ŷ: from version 2 by votes at ½ under both vote rules; it is taken to err at a nominal rate",
    ),
    Column("mix_regret", "expert", resolved="2b(b - p) - 2(b - p)·y - ½(b - p)²", doc="regret less known curvature"),
    Column("fast_regret", "expert", resolved="2(f - y)(f - p)", doc="f: the forecast of the quick truth mixer"),
    Column("fast_absolute", "expert", resolved="|fast_regret|"),
    Column("compared", "expert", resolved="share of rounds with another expert beside this one"),
    Column("scored", "expert", open="share of rounds that count"),
    Column("resolved", "expert", resolved="share of rounds"),
    Column("outcome_loss", "expert", resolved="ℓ(p, y)"),
    Column("true_regret", "expert", resolved="Σvℓ - ℓ against y"),
    Column("judged", "expert", resolved="share of rounds that count"),
    Column("judged_peer", "expert", resolved="peer loss at the rates of the time, less the mean of those present"),
    Column("judged_true", "expert", resolved="ℓ(p, y), less the mean of those present"),
    Column("evaluated", "expert", resolved="1", doc="for the experts of the scored forecast"),
    Column("evaluated_squared", "expert", resolved="(p - y)²", doc="there"),
    Column(
        "closed_reach",
        "expert",
        by_rule=True,
        open="(w·mean c)²",
        resolved=_SAME,
        doc="c: how far the published regret is moved by reference answers, alike or each its own; without outcome once"
        " the final round is in",
        version=2,
    ),
    Column("closed_regret", "expert", by_rule=True, open="Σvℓ - ℓ against ŷ", resolved=_SAME, doc="then", version=2),
    Column("closed_regret_if_one", "expert", by_rule=True, open="Σvℓ - ℓ against 1", resolved=_SAME, version=2),
    Column("closed_regret_if_zero", "expert", by_rule=True, open="Σvℓ - ℓ against 0", resolved=_SAME, version=2),
    Column(
        "other_regret",
        "expert",
        open="larger of Σvℓ - ℓ against 1 and against 0",
        resolved="Σvℓ - ℓ against y",
        doc="of rounds that add to no closed_regret",
        version=2,
    ),
    Column("most_regret", "expert", open="larger of Σvℓ - ℓ against 1 and against 0", doc="of all rounds", version=2),
    Column("questions", "feed", open="share of rounds that count", resolved="1"),
    Column("resolved", "feed", resolved="1"),
    Column("asked", "feed", open="1", resolved=_SAME),
    Column("voters", "feed", open="independent voters", resolved=_SAME, doc=f"in units of {VOTES}, as yes and votes"),
    Column("yes", "feed", open="votes at ½ for yes", resolved=_SAME, doc="whatever the vote rule"),
    Column("votes", "feed", open="votes at ½", resolved=_SAME),
    *(
        Column(
            f"{one}_{two}", "feed", resolved=f"({one} - b)({two} - b)", doc="of forecasts of mixers; b: the plain mean"
        )
        for one, two in _PAIRS
    ),
    *(Column(f"{one}_error", "feed", resolved=f"({one} - b)(y - b)") for one in _MIXERS),
    Column("stretch_product", "feed", resolved="(y - f)(f - ½)", doc="f: the mixed forecast"),
    Column("stretch_square", "feed", resolved="(f - ½)²"),
    Column("net_difference", "feed", resolved="δ = (g - y)² - (b - y)²", doc="g: the mix before the safety net"),
    Column("net_square", "feed", resolved="δ²"),
    Column("tied", "feed", open="share of rounds that count and whose published answer was a tie", resolved=_SAME),
    Column("evaluated", "feed", resolved="1", doc="with a scored forecast"),
    *(
        Column(f"{kind}_squared", "feed", resolved="(f - y)²", doc="f: of the scored forecast")
        for kind in ("mix", "stretched", "mean", "median")
    ),
    Column("moment_weight", "feed", by_rule=True, open="share of rounds that count under the rule", resolved=_SAME),
    Column(
        "moment_weight2",
        "feed",
        by_rule=True,
        open="its square, times the weight",
        resolved=_SAME,
        doc="of the k-th part of a group 2k - 1 times from version 2 on, as all such squares: parts weigh as one",
    ),
    Column("pair", "feed", by_rule=True, open="mean of votes v(i)·v(j)", resolved=_SAME),
    Column(
        "rest", "feed", by_rule=True, open="mean of v(i)·R(i)", resolved=_SAME, doc="R: the reference answer as a vote"
    ),
    *(Column(name, "feed", by_rule=True, open="product", resolved=_SAME) for name in ("pair2", "rest2", "pair_rest")),
    Column("right_zero", "feed", by_rule=True, resolved="share of ŷ = 0, if y = 0"),
    Column("wrong_zero", "feed", by_rule=True, resolved="share of ŷ = 1, if y = 0"),
    Column("right_one", "feed", by_rule=True, resolved="share of ŷ = 1, if y = 1"),
    Column("wrong_one", "feed", by_rule=True, resolved="share of ŷ = 0, if y = 1"),
    Column("revealed_pair", "feed", by_rule=True, resolved="pair"),
    Column("answer", "feed", by_rule=True, open="share of ŷ = 1", resolved=_SAME),
    Column("answer2", "feed", by_rule=True, open="its square", resolved=_SAME),
    *(
        Column(f"class_{field.name}", "feed", open="moment of the vote count", resolved=_SAME, doc="own-median only")
        for field in fields(ClassMomentSums)
    ),
    *(
        Column(f"group_{name}", "feed", open="answers of groups that are 1", resolved=_SAME, doc="by method")
        for name in ("weight", "weight2", "1", "2", "3", "12", "13", "23", "123")
    ),
    Column("mixability_gap", "feed", open="mixability gap", resolved=_SAME, doc="by method"),
    Column("agreed", "feed", open="share of rounds with two voters", resolved=_SAME, version=2),
    Column(
        "agreed_level", "feed", open="(p - ½)(q - ½) of two voters", resolved=_SAME, doc="mean over pairs", version=2
    ),
    Column("agreed_cross", "feed", open="the same, p by the weights of the mix", resolved=_SAME, version=2),
    Column("agreed_square", "feed", open="(f - ½)²", resolved=_SAME, doc="f: the mixed forecast", version=2),
    Column("agreed_centre", "feed", open="p - ½ of a voter", resolved=_SAME, doc="mean over voters", version=2),
    Column("agreed_mix", "feed", open="f - ½", resolved=_SAME, version=2),
    Column("stated_error", "feed", open="min(b, 1 - b)", resolved=_SAME, doc="b: the plain mean", version=2),
    *(
        Column(f"half_{field.name}", "feed", open="as class_…", resolved=_SAME, doc="of votes at ½", version=2)
        for field in fields(ClassMomentSums)
    ),
    *(
        Column(f"votes_{name}", "subsample", by_rule=True, open="moment of the votes", resolved=_SAME)
        for name in ("weight", "weight2", "first", "second", "third", "fourth")
    ),
    Column("questions", "shadow", resolved="1", doc="if the scored forecast came when there was the shadow"),
    Column("squared", "shadow", resolved="(s - y)²", doc="s: the shadow's stretched forecast"),
    Column("live_squared", "shadow", resolved="(f - y)²", doc="f: the live one of the same round"),
    Column("log", "shadow", resolved="log loss of s"),
    Column("live_log", "shadow", resolved="log loss of f"),
    Column("mix_squared", "shadow", resolved="squared loss of the shadow's mix"),
    Column("live_mix_squared", "shadow", resolved="squared loss of the live mix"),
)


class Layout:
    """Where each column of a scope lies, in the order of the table.

    Neighbours ``by_rule`` lie together for ``half``, and again for ``own-median``: right behind them, or, with
    ``own_median_last``, behind all. So what is read and written under ``half`` is one range of experts' columns.
    """

    def __init__(self, scope: Scope, *, own_median_last: bool = False) -> None:
        self.columns = [column for column in COLUMNS if column.scope == scope]
        placed: list[tuple[Column, VoteRule]] = []
        last: list[tuple[Column, VoteRule]] = []
        for by_rule, run in groupby(self.columns, key=lambda column: column.by_rule):
            columns = list(run)
            placed += [(column, "half") for column in columns]
            if by_rule:
                (last if own_median_last else placed).extend((column, "own-median") for column in columns)
        self._placed = placed + last
        self.size = len(self._placed)
        self._places = {(column.name, rule): at for at, (column, rule) in enumerate(self._placed)}
        for column in self.columns:
            if not column.by_rule:
                self._places[column.name, "own-median"] = self._places[column.name, "half"]
        self._spans: dict[tuple[str, str, VoteRule], slice] = {}

    def names(self, *, by_rule: bool = False) -> list[str]:
        """Columns by their names: the common ones, or those of each vote rule."""
        return [column.name for column in self.columns if column.by_rule == by_rule]

    def between(self, first: str, last: str) -> list[str]:
        """Columns that lie from one to another under a vote rule, both included, by their names."""
        return [column.name for column, _ in self._placed[self.span(first, last)]]

    def at(self, name: str, vote_rule: VoteRule = "half") -> int:
        """Position of a column."""
        return self._places[name, vote_rule]

    def span(self, first: str, last: str, vote_rule: VoteRule = "half") -> slice:
        """Positions from one column to another, both included."""
        key = first, last, vote_rule
        if (span := self._spans.get(key)) is None:
            span = self._spans[key] = slice(self.at(first, vote_rule), self.at(last, vote_rule) + 1)
        return span

    def written(self, evidence: Evidence, rules: Sequence[int] = (0,), version: int = 2) -> IntArray:
        """Positions to which a question may add something: of each vote rule of its rounds, then the common ones.

        ``version``: that of the method.
        """
        of_rules = [at for rule in rules for at in self._adding(evidence, VOTE_RULES[rule], version, by_rule=True)]
        return np.array([*of_rules, *self._adding(evidence, "half", version, by_rule=False)])

    def _adding(self, evidence: Evidence, vote_rule: VoteRule, version: int, *, by_rule: bool) -> Iterator[int]:
        for at, (column, rule) in enumerate(self._placed):
            fits = column.by_rule == by_rule and rule == vote_rule and column.version <= version
            if fits and getattr(column, evidence):
                yield at

    @property
    def former(self) -> IntArray:
        """Positions that version 1 of the method fills. Where all others are 0 those are not stored."""
        return np.array([at for at, (column, _) in enumerate(self._placed) if column.version == 1])


EXPERT = Layout("expert", own_median_last=True)
FEED = Layout("feed")
SUBSAMPLE = Layout("subsample")
"""In stored sums it comes right behind the feed's columns ``class_…``; the feed's other columns follow."""
SHADOW = Layout("shadow")

RULE_PART = FEED.between("moment_weight", "answer2")
"""What a question adds to the feed's columns of one vote rule, without the moments in subsamples."""


def rule_span(rule: int) -> slice:
    """Where the feed's columns ``RULE_PART`` of a vote rule lie."""
    return FEED.span("moment_weight", "answer2", VOTE_RULES[rule])


def classes_span(prefix: str = "class") -> slice:
    """Where the moments of the vote count lie: under own medians, or with ``half`` those of votes at ½."""
    names = [field.name for field in fields(ClassMomentSums)]
    return FEED.span(f"{prefix}_{names[0]}", f"{prefix}_{names[-1]}")


def evaluated_span() -> slice:
    """Where the experts' columns of scored forecasts lie."""
    return EXPERT.span("evaluated", "evaluated_squared")


def expert_span(rule: int) -> slice:
    """Where the experts' columns of a vote rule lie."""
    return EXPERT.span("variance", "absolute_regret", VOTE_RULES[rule])
