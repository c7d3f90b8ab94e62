"""The table of columns decides where sums lie, how they are stored and what a question may add to them."""

import hashlib
import pkgutil
from importlib import import_module

import numpy as np
import pytest
from msgspec.structs import replace

from stream_peer import feeds
from stream_peer.events.feed_log import Verdict
from stream_peer.feeds.columns import (
    EXPERT,
    FEED,
    SHADOW,
    SUBSAMPLE,
    VOTE_RULES,
    Evidence,
    Layout,
    evaluated_span,
)
from stream_peer.feeds.contributions import contribution
from stream_peer.feeds.ledger import Entry
from stream_peer.feeds.methods.method import Method
from stream_peer.numerics.arguments import IntArray
from tests.unit.feeds.sample_facts import METHOD, facts_of, scoring_inputs


def named(layout: Layout) -> list[str]:
    """Columns in the order in which they are stored."""
    places = {layout.at(name): name for name in layout.names()}
    places |= {layout.at(name, rule): f"{name} {rule}" for rule in VOTE_RULES for name in layout.names(by_rule=True)}
    return [places[at] for at in range(layout.size)]


@pytest.mark.parametrize("layout", [EXPERT, FEED, SUBSAMPLE, SHADOW])
def test_every_column_has_a_place_of_its_own(layout: Layout) -> None:
    assert len(set(named(layout))) == layout.size


def test_a_vote_rule_that_there_is_not_has_no_columns() -> None:
    with pytest.raises(KeyError, match="nobody"):
        EXPERT.at("loss", vote_rule="nobody's")  # type: ignore[arg-type] # a rule that there is not


def test_the_order_of_stored_sums_changes_with_the_schema_number_only() -> None:
    of_feed, behind = named(FEED), FEED.at("group_weight")
    of_votes = [
        f"block_{block}_{name.removeprefix('votes_')} {rule}"
        for rule in VOTE_RULES
        for block in range(25)
        for name in SUBSAMPLE.names(by_rule=True)
    ]

    def digest(experts: IntArray, feed: IntArray) -> str:
        names = np.array(of_feed)[feed].tolist()
        of_experts = np.array(named(EXPERT))[experts].tolist()
        stored = ",".join([*of_experts, *names[:behind], *of_votes, *names[behind:], *named(SHADOW)])
        return hashlib.sha256(stored.encode()).hexdigest()[:16]

    assert digest(EXPERT.former, FEED.former) == "7972b40221c7e141", "what version 1 of the method fills"
    assert digest(np.arange(EXPERT.size), np.arange(FEED.size)) == "5843463de96a3bb1"


@pytest.mark.parametrize("evidence", ["open", 0, 1])
@pytest.mark.parametrize("rules", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("method", [METHOD, Method(bounds_all=True)], ids=["version 1", "version 2"])
def test_a_question_adds_to_those_columns_only_that_the_table_says(
    evidence: Verdict, rules: tuple[int, ...], method: Method
) -> None:
    entry = Entry(evidence=evidence)
    for number, rule in enumerate(rules):
        entry.put(facts_of([0.1, 0.4, 0.8, 0.7], boundary=number, under=replace(scoring_inputs(4), rule=rule)))
    part = contribution(entry, method)
    known: Evidence = "open" if evidence == "open" else "resolved"

    assert {column for column, amount in part.feed if amount} <= set(FEED.written(known, rules).tolist())
    others = set(np.r_[evaluated_span()].tolist())  # of the scored forecast
    written = EXPERT.written(known, rules, version=1 + method.bounds_all)
    assert set(part.rows.tolist()) == set(written.tolist()) - others


def test_no_module_of_the_feeds_has_a_slice_for_a_constant() -> None:
    modules = [import_module(found.name) for found in pkgutil.walk_packages(feeds.__path__, "stream_peer.feeds.")]

    assert not [(m.__name__, name) for m in modules for name, value in vars(m).items() if isinstance(value, slice)]
