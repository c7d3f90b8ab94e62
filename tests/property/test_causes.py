"""Why weights moved adds up to how far they moved, for arbitrary histories."""

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_peer.events.feed_log import FeedLogRecord, decode_feed_log
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.stage import Effects
from stream_peer.tools.explain.causes import Cause, WeightReading, explain, weight_reading
from tests.feed_histories import carry_out_rebuilds, changed, expert, log_of, outcome, round_of, stage
from tests.feed_histories import settings as applied
from tests.feed_variants import OF_THE_PATH, VARIANTS, Settings, crowd
from tests.hypothesis_profiles import examples
from tests.property.test_feed_stage import EXPERTS, histories
from tests.property.test_feed_stage_twin import with_controls
from tests.unit.feeds.alarms.test_groups import Attack

METHODS: dict[str, Settings] = {
    "robust": {},
    "paper": {"preset": "paper"},
    "own medians": {"vote_rule": "own-median"},
    "auto": {"vote_rule": "auto"},
    "memory": {"memory": 2},
    "log loss, memory, own medians": {"loss": "log", "memory": 3, "vote_rule": "own-median"},
}
methods = st.sampled_from(list(METHODS))
Step = tuple[WeightReading | None, dict[str, list[Cause]]]


def steps(history: Sequence[FeedLogRecord], method: Settings, experts: Sequence[str]) -> Iterator[Step]:
    """The moment after each record, and why weights moved there."""
    feed_stage, log = stage(**method), log_of(history)
    before: WeightReading | None = None
    for number, record in enumerate(log):
        feed_stage.step(record, Effects())
        carry_out_rebuilds(feed_stage, log[: number + 1])
        feed = feed_stage.feeds.by_name.get("f")
        after = None if feed is None else weight_reading(feed)
        check_reading(feed_stage, after, experts)
        yield after, dict(explain(before, decode_feed_log(record.value or b""), after, experts))
        before = after


def check_reading(feed_stage: FeedStage, moment: WeightReading | None, experts: Sequence[str]) -> None:
    """What terms add up to is what is published, to the last bit."""
    view = feed_stage.views().get("f")
    published = {} if view is None else {one.id: (one.mix, one.select) for one in view.weights.experts}
    for name in experts:
        assert weights_of(name, moment) == published.get(name, (0.0, 0.0))


def weights_of(name: str, moment: WeightReading | None) -> tuple[float, float]:
    return (0.0, 0.0) if moment is None else moment.of(name)


def check(
    history: Sequence[FeedLogRecord], method: Settings, between: tuple[int, int], experts: Sequence[str] = EXPERTS
) -> None:
    """Between two records, terms add up to the difference of the published weights, of every expert."""
    found = list(steps(history, method, experts))
    first, last = sorted(number % len(found) for number in between)
    for name in experts:
        start, end = (weights_of(name, found[number][0]) for number in (first, last))
        terms = [term for _, by_expert in found[first + 1 : last + 1] for term in by_expert.get(name, [])]
        assert sum(term.mix for term in terms) == pytest.approx(end[0] - start[0], abs=1e-9)
        assert sum(term.select for term in terms) == pytest.approx(end[1] - start[1], abs=1e-9)


between = st.tuples(st.integers(0, 40), st.integers(0, 40))


@given(histories, methods, between)
def test_terms_add_up_between_any_two_revisions(
    history: list[FeedLogRecord], method: str, moments: tuple[int, int]
) -> None:
    check(history, METHODS[method], moments)


controls = st.sampled_from([expert("e1", forget=True), changed(reset=True), changed(delete=True)])
readings = st.sampled_from(
    [
        {"memory": 2},
        {"mixer": {"prior_mean": 3.0}},
        {"confidence": 0.5},
        {"preset": "paper"},
        {"vote_rule": "own-median"},
    ]
)
upheavals = st.one_of(controls, readings.map(lambda document: applied({"defaults": document})))
troubled = st.lists(st.one_of(with_controls, st.lists(upheavals, max_size=1)), min_size=1, max_size=4)


@settings(max_examples=examples(60))
@given(troubled, between)
def test_terms_add_up_over_controls_and_settings(parts: list[list[FeedLogRecord]], moments: tuple[int, int]) -> None:
    history = [event for part in parts for event in part]
    if history:
        check(history, {}, moments)


@settings(max_examples=examples(40))
@given(histories, st.sampled_from(list(VARIANTS)), between)
def test_terms_add_up_under_every_variant(history: list[FeedLogRecord], name: str, moments: tuple[int, int]) -> None:
    check(history, VARIANTS[name], moments)


def misled(questions: int = 60) -> list[FeedLogRecord]:
    """Most agree and are wrong, as outcomes show afterwards: safety net and caution come in."""
    forecasts = {"e0": 0.9, "e1": 0.8, "e2": 0.2, "e3": 0.85}
    rounds = [round_of(f"q{number}", forecasts) for number in range(questions)]
    return [*rounds, *(outcome(f"q{number}", 0) for number in range(questions // 2, questions))]


LONG: dict[str, tuple[list[FeedLogRecord], Settings]] = {
    **{f"crowd, {name}": ([*crowd(24)], chosen) for name, chosen in {**METHODS, **OF_THE_PATH}.items()},
    **{f"misled, {name}": (misled(), chosen) for name, chosen in METHODS.items()},
    "copies, guarded": ([*Attack(120).rounds()], {"guard": "on"}),
}


@pytest.mark.parametrize("history", LONG.values(), ids=LONG)
def test_terms_add_up_where_much_has_been_learnt(history: tuple[list[FeedLogRecord], Settings]) -> None:
    check(*history, (2, len(history[0]) - 1), [*EXPERTS, "copy1", "good1"])
