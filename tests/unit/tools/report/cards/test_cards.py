"""What single cards say, of feeds made for the purpose."""

import re
from html import escape
from typing import Any, Literal

import msgspec
import pytest

from stream_peer.events import topics
from stream_peer.events.outputs import (
    Certificate,
    DriftedExpert,
    DriftedRate,
    Drifting,
    ExpertGroup,
    MixedGroup,
    PartForecast,
    ShadowScores,
)
from stream_peer.serve.explanation import WeightExplanation
from stream_peer.serve.pages.parts import style_sheet
from stream_peer.settings.feed.model import FeedSettings, MethodSettings
from stream_peer.tools.explain.weight import run_explanations
from stream_peer.tools.replay.history import ReplayHistory
from stream_peer.tools.replay.replay import replay
from stream_peer.tools.report.cards.curves import calibration_card
from stream_peer.tools.report.cards.experts import PRINTED, SHOWN, experts_card, why_card
from stream_peer.tools.report.cards.overview import changed, figures, settings_card, shadows_card
from stream_peer.tools.report.cards.parts import FeedExtras, FeedPage, figure
from stream_peer.tools.report.cards.questions import questions_card
from stream_peer.tools.report.cards.trust import (
    SHOWN_CHANGES,
    SHOWN_MEMBERS,
    dependence_card,
    drift_card,
    groups_card,
    trust_card,
)
from stream_peer.tools.report.group_record import group_losses
from stream_peer.tools.report.plots import certificate_plot, error_rate_plot, weights_plot
from tests.unit.tools.replay.file_lines import lines, season
from tests.unit.tools.report.sample_history import FEED, add, losses, mixed, sample_history, weights


def page_of(history: ReplayHistory, settings: FeedSettings | None = None) -> FeedPage:
    feed = history.feeds[FEED]
    assert feed.weights is not None
    return FeedPage(feed, feed.weights, 0, settings=settings)


def states(*told: tuple[str, tuple[str, ...]]) -> FeedPage:
    history = ReplayHistory()
    for revision, (status, reasons) in enumerate(told, start=1):
        record = weights(revision, {"a": 1.0}, questions=10.0 * revision, trust=("ok", list(reasons)))
        add(history, topics.WEIGHTS, msgspec.structs.replace(record, status=status))
    return page_of(history)


def test_trust_is_told_change_by_change_with_the_reasons_of_the_time() -> None:
    card = trust_card(states(("warming-up", ("10 of 200",)), ("warming-up", ("20 of 200",)), ("ok", ())))

    assert re.findall(r'class="pill \w+">([\w-]+)<', card) == ["warming-up", "ok"]
    assert "10 of 200" in card
    assert "20 of 200" not in card
    assert "no alarm" in card
    assert re.findall(r"flex-grow:([0-9.]+)", card) == ["45", "0"]


def test_stretches_of_trust_that_are_too_short_for_their_name_have_none() -> None:
    strip = trust_card(states(*[("ok", ())] * 9, ("dependent", ("copies",)), ("dependent", ()))).partition("<ol")[0]

    assert ">ok</i>" in strip
    assert 'flex-grow:15"></i>' in strip


def test_of_very_many_changes_of_trust_the_last_are_listed_and_all_are_drawn() -> None:
    card = trust_card(states(*([("ok", ()), ("dependent", ("copies",))] * 20)))

    assert card.count("<li>") == SHOWN_CHANGES
    assert card.count("<i ") == 40
    assert f"The last {SHOWN_CHANGES} of 40 changes are listed." in card


def test_weights_run_over_questions_and_outcomes_so_that_late_outcomes_are_no_steep_end() -> None:
    history = ReplayHistory()
    for revision in range(1, 41):
        record = weights(revision, {"a": 1.0}, questions=float(min(revision, 20)))
        add(history, topics.WEIGHTS, msgspec.structs.replace(record, resolved=float(max(0, revision - 20))))

    plot = weights_plot(history.feeds[FEED])

    assert plot.curves[-1].x == [float(news) for news in range(1, 41)]
    assert plot.rug == [(20.0, 40.0)]
    assert plot.x_label == "event order (ticks are dates)"


def test_a_peak_of_the_first_tenth_does_not_set_the_scale_of_weights() -> None:
    history = ReplayHistory()
    for revision in range(1, 101):
        add(history, topics.WEIGHTS, weights(revision, {"a": 1.0 / revision}, questions=float(revision)))

    plot = weights_plot(history.feeds[FEED])

    assert plot.top is not None
    assert plot.top < 0.15


def test_an_expert_that_comes_late_has_no_line_before() -> None:
    history = ReplayHistory()
    for revision, shares in enumerate([{"a": 1.0}, {"a": 0.5, "late": 0.5}], start=1):
        add(history, topics.WEIGHTS, weights(revision, shares, questions=float(revision)))

    lines = {curve.y[1]: curve.y[0] for curve in weights_plot(history.feeds[FEED]).curves}

    assert str(lines[0.5]) in {"nan", "1.0"}
    assert sum(str(curve.y[0]) == "nan" for curve in weights_plot(history.feeds[FEED]).curves) == 1


def test_of_many_experts_those_who_do_not_lead_are_a_band() -> None:
    plot = weights_plot(sample_history(questions=30, n_experts=40).feeds[FEED])

    assert len(plot.curves) == 7
    assert plot.band is not None
    _, low, high = plot.band
    assert all(a <= b for a, b in zip(low, high, strict=True))


def test_the_certificate_is_drawn_beside_the_regret_that_outcomes_showed() -> None:
    history = ReplayHistory()
    for number in range(1, 31):
        add(history, topics.MIXED_FORECASTS, mixed(f"q{number}", 2 * number, 0.5, 0.5, 1, "poor"))
        add(history, topics.PEER_LOSSES, losses(f"q{number}", 2 * number, {"poor": 0.5, "good": 1.0}, 1))
        bound = Certificate(regret_at_most=20.0, confidence=0.95)
        add(history, topics.WEIGHTS, weights(2 * number, {"a": 1.0}, questions=float(number), certificate=bound))

    certified, measured = certificate_plot(history.feeds[FEED]).curves

    assert certified.y[-1] == pytest.approx(20.0 / 30)
    assert measured.y == pytest.approx([0.25] * 21)


def test_every_axis_has_its_unit_and_every_curve_its_words() -> None:
    feed = sample_history(questions=40, n_experts=5).feeds[FEED]

    for plot in (weights_plot(feed), error_rate_plot(feed), certificate_plot(feed)):
        assert plot.x_label
        assert plot.y_label
        assert len(plot.alt) > 20
        assert plot.ticks


def test_calibration_says_when_there_are_too_few_outcomes_for_a_diagram() -> None:
    few, many = (calibration_card(page_of(sample_history(questions=n, n_experts=4))) for n in (20, 60))

    assert "<svg" not in few
    assert "Diagrams are drawn from 20 resolved questions on." in few
    assert many.count("Reliability of the mix") == 2
    assert len(re.findall(r"Reliability of (?!the )", many)) == 2 * 4
    assert many.count("<details>") == 1
    assert few.count("expert") == 0
    assert "discrimination</th>" in few


@pytest.mark.case("C19")
def test_experts_have_coverage_difficulty_and_skill_beside_their_score() -> None:
    """The picky one says the same as the busy one where the mean is nearly right, and nothing elsewhere."""
    history = ReplayHistory()
    for number in range(1, 11):
        easy = number > 4
        outcome, mean = (1, 0.9) if easy else (0, 0.6)
        told = {"picky": 0.9, "busy": 0.9} if easy else {"busy": 0.3}
        told |= {"new": 1.0} if number == 10 else {}
        add(history, topics.MIXED_FORECASTS, mixed(f"q{number}", number, mean, mean, outcome))
        add(history, topics.PEER_LOSSES, losses(f"q{number}", number, told, outcome))
    add(history, topics.WEIGHTS, weights(11, {"picky": 0.5, "busy": 0.3, "new": 0.2}))

    card = experts_card(page_of(history))

    picky, busy, new = (re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in card.split("<tr>")[2:])
    assert picky[3:4] + picky[6:10] == ["0.75", "6", "0.010", "0.010", "0.00"]
    assert busy[6:10] == ["10", "0.042", "0.150", "0.72"]
    assert new[6:11] == ["1", "0.000", "0.010", "–", "–"]


def test_paper_gets_the_first_rows_of_a_long_table_and_says_so() -> None:
    shares = {f"e{number:03d}": 0.01 for number in range(PRINTED + 1)}
    history = ReplayHistory()
    add(history, topics.WEIGHTS, weights(1, shares))

    assert f"The first {PRINTED} of {PRINTED + 1}." in experts_card(page_of(history))
    assert f"tr:nth-child(n + {PRINTED + 1}) {{ display: none; }}" in style_sheet()


def test_of_very_many_experts_those_with_the_most_weight_are_listed() -> None:
    history = ReplayHistory()
    add(history, topics.WEIGHTS, weights(1, {f"e{number:04d}": 1.0 / (number + 2) for number in range(SHOWN + 3)}))

    card = experts_card(page_of(history))

    assert card.count('<th scope="row"') == SHOWN
    assert "3 more with less weight are not listed." in card
    assert "e2002" not in card


def test_settings_are_told_with_what_is_built_in_and_their_hash() -> None:
    history = sample_history(questions=5, n_experts=4)

    card = settings_card(page_of(history, FeedSettings(loss="log", round_every=None)))

    assert "9f3c2a11" in card
    assert "<code>loss</code></th><td><code>log</code></td><td><code>squared</code>" in card
    assert "<code>round_every</code></th><td><code>null</code></td><td><code>7d</code>" in card
    assert "all have the default" in settings_card(page_of(history, FeedSettings()))
    assert settings_card(page_of(history)) == ""
    assert list(changed(FeedSettings())) == []


def test_shadows_stand_beside_the_live_mix_where_there_are_some() -> None:
    scores = ShadowScores(
        name="<slow>",
        questions=12.0,
        brier=0.1,
        live_brier=0.12,
        log_score=0.3,
        live_log_score=None,
        regret=-0.24,
        mix_brier=0.11,
        live_mix_brier=0.12,
    )
    history = ReplayHistory()
    add(history, topics.WEIGHTS, msgspec.structs.replace(weights(1, {"a": 1.0}), shadows=[scores]))

    card = shadows_card(page_of(history))

    assert "&lt;slow&gt;" in card
    assert "<td>-0.24</td>" in card
    assert "<td>–</td>" in card
    assert shadows_card(page_of(sample_history(questions=2, n_experts=3))) == ""


@pytest.mark.parametrize(
    ("value", "digits", "shown"), [(None, 3, "–"), (-0.0001, 3, "0.000"), (-0.001, 3, "-0.001"), (1234.4, 0, "1,234")]
)
def test_numbers_read_as_people_write_them(value: float | None, digits: int, shown: str) -> None:
    assert figure(value, digits) == shown


def group(kind: Literal["copies", "follower"], n_experts: int) -> ExpertGroup:
    names = [f"<e{number:02d}>" for number in range(n_experts)]
    return ExpertGroup(experts=names, kind=kind, agreement=0.99, expected=0.42, questions=312)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (FeedSettings(guard="on"), "shares one weight.</p>"),
        (FeedSettings(method_version=2), "Followers have no weight.</p>"),
        (FeedSettings(method_version=2, guard="off"), "With guard: on"),
        (FeedSettings(method_version=2, preset="paper"), "With guard: on"),
        (FeedSettings(method_version=2, method=MethodSettings(learner="ada-hedge")), "With guard: on"),
        (FeedSettings(), "With guard: on"),
    ],
)
def test_groups_are_named_with_what_the_guard_does_about_them(settings: FeedSettings, said: str) -> None:
    history = ReplayHistory()
    groups = [group("copies", SHOWN_MEMBERS + 2), group("follower", 1)]
    add(history, topics.WEIGHTS, msgspec.structs.replace(weights(1, {"a": 1.0}), groups=groups))

    card = groups_card(page_of(history, settings))

    assert said in card
    assert "&lt;e11&gt; and 2 more" in card
    assert "follow the crowd" in card
    assert groups_card(page_of(sample_history(questions=2, n_experts=3))) == ""


def test_drift_of_the_error_rate_and_of_experts_is_told_with_before_and_now() -> None:
    rate = DriftedRate(before=0.1, now=0.3, since_questions=40, z=5.5, by="outcomes")
    expert = DriftedExpert(id="<ann>", before=0.9, now=0.5, since_questions=30, z=-6.0)
    drift = Drifting(error_rate=rate, n_experts=25, experts=[expert])
    history = ReplayHistory()
    add(history, topics.WEIGHTS, msgspec.structs.replace(weights(1, {"a": 1.0}), drift=drift))

    card = drift_card(page_of(history))

    assert "<td>10.0%</td><td>30.0%</td><td>40</td><td>+5.5</td>" in card
    assert "&lt;ann&gt;</th><td>90.0%</td><td>50.0%</td><td>30</td><td>-6.0</td>" in card
    assert "25 experts changed; these are the 1 that changed most." in card
    assert drift_card(page_of(sample_history(questions=2, n_experts=3))) == ""


def test_the_weights_of_the_leaders_are_explained_by_cause() -> None:
    explanations: list[WeightExplanation] = []
    explain = [lambda run: explanations.extend(run_explanations(run, "econ", ["e0", "e4"]))]
    result = replay([lines(season())], finished=explain)
    feed = result.history.feeds["econ"]
    assert feed.weights is not None

    card = why_card(FeedPage(feed, feed.weights, 0, extras=FeedExtras(explanations=explanations)))

    assert card.count("<details>") == 2
    for explanation in explanations:
        assert escape(explanation.sentences[0]) in card
        assert all(escape(cause.name) in card for cause in explanation.causes)
    assert why_card(FeedPage(feed, feed.weights, 0)) == ""


def test_shadows_of_a_replay_stand_beside_the_live_ones() -> None:
    blank = dict.fromkeys(("brier", "live_brier", "log_score", "live_log_score", "mix_brier", "live_mix_brier"))
    one, other = (ShadowScores(name=name, questions=0.0, regret=0.0, **blank) for name in ("live", "replayed"))
    history = ReplayHistory()
    add(history, topics.WEIGHTS, msgspec.structs.replace(weights(1, {"a": 1.0}), shadows=[one]))
    page = page_of(history)

    card = shadows_card(FeedPage(page.feed, page.weights, 0, extras=FeedExtras(shadows=[other])))

    assert re.findall(r'<th scope="row">(\w+)<', card) == ["live", "replayed"]


def test_an_expert_with_much_of_the_mix_and_a_skill_below_zero_has_its_explanation_on_the_spot() -> None:
    def card(said: float) -> str:
        history = ReplayHistory()
        for number in range(1, 11):
            add(history, topics.MIXED_FORECASTS, mixed(f"q{number}", number, 0.9, 0.9, 1))
            add(history, topics.PEER_LOSSES, losses(f"q{number}", number, {"a": said, "b": 0.9}, 1))
        add(history, topics.WEIGHTS, weights(11, {"a": 0.7, "b": 0.3}))
        return experts_card(page_of(history))

    assert "skill may be below 0 where mix is large" in card(0.6)
    assert "where mix is large" not in card(0.95)


def test_outcome_losses_stand_beside_brier_scores_only_where_they_are_others() -> None:
    def headings(loss: float) -> list[str]:
        history = ReplayHistory()
        add(history, topics.MIXED_FORECASTS, mixed("q", 1, 0.9, 0.9, 1))
        add(history, topics.PEER_LOSSES, losses("q", 1, {"a": 0.5}, 1))
        record = weights(2, {"a": 1.0})
        expert = msgspec.structs.replace(record.experts[0], outcome_loss=loss)
        add(history, topics.WEIGHTS, msgspec.structs.replace(record, experts=[expert]))
        return re.findall(r"<button[^>]*>([^<]*)</button>", experts_card(page_of(history)))

    assert "outcome loss" not in headings(0.2501)
    assert headings(0.693).index("outcome loss") == headings(0.2501).index("peer loss") + 1


def test_a_pair_that_agrees_most_says_whether_it_is_in_a_group_and_why_not() -> None:
    history = sample_history(questions=60, n_experts=4)
    feed = history.feeds[FEED]
    for record in feed.losses.values():
        one, other = record.experts[:2]
        record.experts[1] = msgspec.structs.replace(one, id=other.id)
    assert feed.weights is not None
    names = [expert.id for expert in feed.weights.experts][:2]
    group = ExpertGroup(experts=names, kind="copies", agreement=1.0, expected=0.2, questions=30)

    alone = dependence_card(page_of(history))
    feed.moments[-1] = msgspec.structs.replace(feed.weights, groups=[group])
    together = dependence_card(page_of(history))

    assert alone.count("<td>no</td>") - together.count("<td>no</td>") == together.count("<td>yes</td>") == 1
    assert "Groups lists only nearly identical pairs" in alone


def test_one_question_is_one() -> None:
    assert re.findall(r"after [^<]+", trust_card(states(("ok", ())))) == ["after 15 questions and outcomes"]
    history = ReplayHistory()
    add(history, topics.WEIGHTS, msgspec.structs.replace(weights(1, {"a": 1.0}, questions=1.0), resolved=0.0))
    assert "after 1 question and outcomes" in trust_card(page_of(history))


def test_no_date_stands_so_near_to_another_that_they_touch() -> None:
    history = ReplayHistory()
    for revision, (questions, day) in enumerate([(1, 1), (2, 2), (60, 3), (61, 4), (100, 5)], start=1):
        record = weights(revision, {"a": 1.0}, questions=float(questions))
        moment = msgspec.structs.replace(record, resolved=0.0, at=f"2026-03-{day:02}T00:00:00Z")
        add(history, topics.WEIGHTS, moment)

    places = [x for x, _ in weights_plot(history.feeds[FEED]).ticks]

    assert places == [1.0, 60.0, 100.0]


def test_a_bound_above_what_a_loss_can_be_is_told_as_none_yet_and_not_drawn() -> None:
    history = ReplayHistory()
    for number, regret in enumerate([152.0, 50.0], start=1):
        bound = Certificate(regret_at_most=regret, confidence=0.95)
        add(history, topics.WEIGHTS, weights(number, {"a": 1.0}, questions=100.0, certificate=bound))

    certified, _ = certificate_plot(history.feeds[FEED]).curves
    vacuous = msgspec.structs.replace(history.feeds[FEED].moments[0])

    assert certified.y == [0.5]
    assert "none yet" in figures(FeedPage(history.feeds[FEED], vacuous, 0))
    assert "none yet" not in figures(page_of(history))


def group_of(name: str, revision: int, **parts: Any) -> MixedGroup:
    return MixedGroup(
        feed=FEED,
        settings="9f3c2a11",
        revision=revision,
        at="2026-03-01T12:00:00Z",
        trust="ok",
        group=name,
        boundary=f"2026-03-{revision:02}T00:00:00Z",
        final=True,
        **parts,
    )


def test_questions_with_options_and_thresholds_are_scored_as_one_each_and_shown() -> None:
    history = ReplayHistory()
    add(history, topics.WEIGHTS, weights(1, {"a": 1.0}))
    feed = history.feeds[FEED]
    assert questions_card(page_of(history)) == ""
    said = {"chair::=Ada": (0.6, 0), "chair::=Bo": (0.6, 1), "cpi::<=10": (0.4, 1), "cpi::<=9": (0.5, 0)}
    for revision, (question, (mix, outcome)) in enumerate(said.items(), start=2):
        add(history, topics.MIXED_FORECASTS, mixed(question, revision, mix, 0.5, outcome))
    # Of a question that two outcomes contradict nothing is scored.
    for revision, option in enumerate(("x", "y"), start=8):
        add(history, topics.MIXED_FORECASTS, mixed(f"odd::={option}", revision, 0.5, 0.5, 1))
    many = [PartForecast(name=f"<b>{n}</b>", mix=0.05, stretched=0.05, outcome=1 if n == 19 else 0) for n in range(20)]
    cdf = [
        PartForecast(name="9", mix=0.45, stretched=0.45, outcome=0),
        PartForecast(name="10", mix=0.45, stretched=0.45, outcome=1),
    ]
    add(history, topics.MIXED_GROUPS, group_of("chair", 2, options=many))
    add(history, topics.MIXED_GROUPS, group_of("cpi", 3, cdf=cdf))

    losses = {kind: group_losses(feed, kind) for kind in ("options", "thresholds")}
    card = questions_card(page_of(history))

    scored = {kind: [float(found[name][0]) for name in ("mix", "mix, raw", "mean")] for kind, found in losses.items()}
    assert scored == {
        "options": pytest.approx([0.5, 0.36 + 0.16, 0.5]),
        "thresholds": pytest.approx([(0.45**2 + 0.55**2) / 2, (0.25 + 0.36) / 2, 0.25]),
    }
    assert len(losses["options"]["mean"]) == 1
    for shown in (
        "0.5200",
        "0.2525",
        "12 others",
        "outcome: above 9, at most 10",
        "Probability of at most each threshold",
    ):
        assert shown in card
    assert card.count('class="ours"') == 1, "the option that came true is shown, however unlikely"
    assert "<b>19" not in card
    assert card.index("<h4>cpi") < card.index("<h4>chair"), "the latest comes first"
