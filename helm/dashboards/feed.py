"""*Feed*: weights of experts, trust in the feed, and the reasons."""

from grafana_foundation_sdk.models.dashboard import Dashboard

from helm.dashboards.frame import Row, build
from helm.dashboards.panels import About, Axis, Column, Panel, graph, number, rows, states_now, timeline
from helm.dashboards.queries import (
    DEPLOYMENT,
    at_the_end,
    column,
    feed,
    of_feed,
    over_time,
    rate,
    rate_status,
    trust,
)

UID = "stream-peer-feed"
ESTIMATE = f"avg by ({DEPLOYMENT}, feed) ({of_feed('reference_error_ratio', by='feed, class')})"
AGE = f"time() - {of_feed('feed_updated_timestamp_seconds')}"
_MIX, _SELECT = 'kind="mix"', 'kind="select"'


def dashboard() -> Dashboard:
    """Build it."""
    says = (
        "Expert weights of a feed, trust in it, and the reasons. Choose one feed; with several, each has its own lines."
    )
    sections = [
        Row("At a glance", [trust_now(), questions(), effective_number(), _rate_now(), _age()]),
        Row("Expert weights", [_weights(), _top_experts()]),
        Row("Trust", [_states(), _error_rate(), _rests_on(), _alarms()]),
        Row("Gain", [brier_scores(), _mixers(), _certificate()]),
        Row("Evidence", [_terms(), _ranks(), _shares(), _suspects(), _voters(), _told()]),
    ]
    return build(UID, "stream_peer / Feed", says, sections, feeds=True)


def trust_now() -> Panel:
    """The state of trust."""
    says = (
        "The state of trust. warming-up: too few questions yet. low-evidence: too few voters a question. dependent: "
        "experts say the same or err together. contradicted: outcomes disprove what votes say. uninformative: "
        "reference answers are no better than chance, use the plain mean. Follow mix in every state; select only "
        "while it is ok."
    )
    return states_now(
        About("Trust", "none", says, alerts=("StreamPeerFeedContradicted",)), at_the_end(trust(), "{{feed}}"), width=6
    )


def questions() -> Panel:
    """How many were scored and resolved."""
    says = (
        "Questions scored so far, by weight, and those whose outcome is known. Below 200 effective ones (see the "
        "evidence below) trust is warming-up."
    )
    about = About("Questions", "short", says, "none yet")
    scored = at_the_end(of_feed("feed_questions"), "scored · {{feed}}")
    return number(
        about, scored, at_the_end(of_feed("feed_resolved_questions"), "resolved · {{feed}}"), width=6, decimals=0
    )


def effective_number(width: int = 4) -> Panel:
    """On how many experts the mix rests."""
    says = "1 / Σ weight² of the mix: 1 is a single expert, N the plain mean of N experts."
    about = About("Effective number of experts", "none", says, "no weights yet")
    return number(about, at_the_end(of_feed("effective_experts"), "{{feed}}"), width=width, decimals=1)


def _rate_now() -> Panel:
    says = (
        "Estimated share of wrong reference answers, the mean of both classes; 47.5 % at most. Above 40 % they are no"
        " better than chance: trust is uninformative."
    )
    limits = ((None, "green"), (0.3, "orange"), (0.4, "red"))
    return number(About("Error rate", "percentunit", says), at_the_end(ESTIMATE, "{{feed}}"), decimals=1, limits=limits)


def _age() -> Panel:
    says = (
        "Time since the feed last changed. It grows without forecasts; together with lag, it means that records wait."
    )
    return number(About("Newest change", "s", says, "no weights yet"), at_the_end(AGE, "{{feed}}"), decimals=0)


def _weights() -> Panel:
    says = (
        "Shares in the mixed forecast; each feed's add up to 1. Experts beyond the first ones (top_experts) are "
        "'other'. A gap is a time without an owner of the feed, not a change of weights."
    )
    query = over_time(of_feed("expert_weight", _MIX, by="feed, expert"), "{{expert}} · {{feed}}")
    about = About("Weights over time", "percentunit", says, "no weights yet")
    return graph(about, query, width=14, height=11, axis=Axis(low=0), stacked=True, wide_legend=True)


def _top_experts() -> Panel:
    says = (
        "mix: share in the mixed forecast. select: weight for following this expert alone. Answers: share of the"
        " questions with a forecast of the expert; a weight based on few answers may still move a lot."
    )
    columns = [
        Column("Mix", column(of_feed("expert_weight", _MIX, by="feed, expert")), "percentunit", 1),
        Column("Select", column(of_feed("expert_weight", _SELECT, by="feed, expert")), "percentunit", 1),
        Column("Answers", column(of_feed("expert_coverage_ratio", by="feed, expert")), "percentunit", 0),
    ]
    about = About("Top experts", "percentunit", says, "no weights yet")
    return rows(about, columns, {"feed": "Feed", "expert": "Expert"}, sort="Mix", width=10, height=11)


def _states() -> Panel:
    says = (
        "Trust in the feed, and the status of its error rates, over time. An error-rate status other than ok"
        " (insufficient: too few questions) is explained by status_reasons in the error-rates topic."
    )
    queries = [over_time(trust(), "trust · {{feed}}"), over_time(rate_status(), "error rate · {{feed}}")]
    return timeline(About("Trust over time", "none", says), *queries, height=6)


def _error_rate() -> Panel:
    says = (
        "Share of wrong reference answers: estimated from votes, and from outcomes as they come, as the mean of both "
        "classes with its interval (dashed); and measured, of all resolved questions. Measured above the interval "
        "while outcomes are few: experts share errors. With many, it may lie outside because one class is rarer; trust "
        "judges. No measured line: no outcomes. An upper end at 47.5 %: not enough data."
    )
    queries = [
        over_time(ESTIMATE, "estimated · {{feed}}"),
        over_time(of_feed("reference_error_low_ratio"), "low · {{feed}}"),
        over_time(of_feed("reference_error_high_ratio"), "high · {{feed}}"),
        over_time(of_feed("reference_error_measured_ratio"), "measured · {{feed}}"),
    ]
    about = About("Error rate of reference answers", "percentunit", says, alerts=("StreamPeerErrorRateNearHalf",))
    return graph(about, *queries, axis=Axis(low=0, mark=0.4), dashed="^(low|high) ")


def _rests_on() -> Panel:
    says = (
        "Effective number of questions behind the error rate, resolved or not; fewer than all where weights differ. "
        "Below 50 the rate is a guess; from 200 on trust is no longer warming-up."
    )
    query = over_time(of_feed("reference_error_effective_questions"), "{{feed}}")
    return graph(About("Evidence for the error rate", "short", says), query, axis=Axis("questions", low=0, mark=50))


def _alarms() -> Panel:
    says = (
        "Dependence: how far votes are from those of independent experts; above 3, and from 200 questions on, trust "
        "becomes dependent. Error rate drift: by how much the rate rose (above 0) or fell lately; 0 without drift."
    )
    queries = [
        over_time(of_feed("dependence_z"), "dependence · {{feed}}"),
        over_time(of_feed("error_rate_drift_z"), "error rate drift · {{feed}}"),
    ]
    return graph(
        About("Dependence and drift", "none", says, alerts=("StreamPeerDependenceAlarm", "StreamPeerFeedDrifts")),
        *queries,
        axis=Axis("standard deviations", mark=3),
    )


def brier_scores(width: int = 10, height: int = 9) -> Panel:
    """The mix beside the mean, the median and the best expert."""
    says = (
        "Mean squared error on resolved questions of the forecast first published at their close; smaller is better."
        " mix below mean: the weights help. best-expert is chosen in hindsight, and judged on its own questions."
        " Shadows are variants under test, live is the mix on the same questions. No lines: no outcomes."
    )
    queries = [
        over_time(of_feed("brier", by="feed, forecast"), "{{forecast}} · {{feed}}"),
        over_time(of_feed("shadow_brier", by="feed, shadow, forecast"), "{{shadow}}: {{forecast}} · {{feed}}"),
    ]
    about = About("Mix against mean, median and best expert", "none", says)
    return graph(about, *queries, width=width, height=height, axis=Axis("Brier score"), wide_legend=True)


def _mixers() -> Panel:
    says = (
        "Shares of the mixers in the mix: plain mean, peer losses, outcomes slowly or quickly. Outcomes move these"
        " shares; without outcomes they stay as set."
    )
    query = over_time(of_feed("mixer_share_ratio", by="feed, mixer"), "{{mixer}} · {{feed}}")
    about = About("Mixer shares", "percentunit", says, "no weights yet")
    return graph(about, query, width=7, height=9, axis=Axis(low=0), stacked=True)


def _certificate() -> Panel:
    says = (
        "Certificate: upper bound on the summed loss of select above that of the best expert, if errors are"
        " independent. Regret: its estimate from the same votes. No certificate line: no bound holds now."
    )
    queries = [
        over_time(of_feed("certificate_regret"), "certificate · {{feed}}"),
        over_time(of_feed("select_regret"), "regret · {{feed}}"),
    ]
    about = About("Certificate against regret", "none", says, "no bound", alerts=("StreamPeerCertificateNotFinite",))
    return graph(about, *queries, width=7, height=9, axis=Axis("summed loss"))


def _terms() -> Panel:
    says = (
        "Terms of the certificate; they add up to it. estimate: questions without outcome, at the worst error rates of"
        " their interval. noise: regret that wrong answers may hide; outcomes remove it. outcomes: resolved questions."
    )
    query = over_time(of_feed("certificate_term", by="feed, term"), "{{term}} · {{feed}}")
    about = About("Terms of the certificate", "none", says, "no bound")
    return graph(about, query, axis=Axis("summed loss"))


def _ranks() -> Panel:
    says = (
        "Rank correlation of peer losses and true losses over experts. Near 1: experts that agree are right. Below "
        "0.2 they are not; by two standard deviations, trust becomes contradicted. No line: fewer than eight experts "
        "with 20 resolved questions."
    )
    query = over_time(of_feed("loss_rank_correlation"), "{{feed}}")
    return graph(
        About("Rank correlation of peer and true losses", "none", says),
        query,
        axis=Axis("rank correlation", low=-1, high=1, mark=0.2),
    )


def _shares() -> Panel:
    says = (
        "Ties: share of reference answers with as many votes for as against. Low evidence: share of rounds with too "
        "few voters, which do not count until there is an outcome. Shrinkage: share of equal weights in select; above "
        "0 the feed is not trusted."
    )
    queries = [
        over_time(of_feed("tie_ratio"), "ties · {{feed}}"),
        over_time(of_feed("low_evidence_ratio"), "low evidence · {{feed}}"),
        over_time(of_feed("select_shrink_ratio"), "shrinkage · {{feed}}"),
    ]
    return graph(
        About("Ties, low evidence, shrinkage", "percentunit", says, alerts=("StreamPeerLowEvidence",)),
        *queries,
        axis=Axis(low=0),
    )


def _suspects() -> Panel:
    says = (
        "Drifting: experts that got better or worse lately, relative to the others. Copies: experts that copy one"
        " another or the crowd. The weights topic names them. Put copies in a team."
    )
    queries = [
        over_time(of_feed("drifting_experts"), "drifting · {{feed}}"),
        over_time(of_feed("grouped_experts"), "copies · {{feed}}"),
    ]
    return graph(About("Drifting experts and copies", "short", says), *queries, axis=Axis("experts", low=0))


def _voters() -> Panel:
    says = "Independent voters a question, a team counts as one. Below min_experts (3) votes do not count."
    query = over_time(of_feed("mean_voters"), "{{feed}}")
    return graph(About("Voters a question", "short", says), query, axis=Axis("voters", low=0))


def _told() -> Panel:
    says = (
        "Rounds and outcomes by kind: revealed for the first time, revised, annulled. No rounds for long: no forecasts"
        " arrive, or the service lags."
    )
    queries = [
        over_time(rate(feed("feed_rounds_total"), f"{DEPLOYMENT}, feed, kind", 60), "{{kind}} rounds · {{feed}}"),
        over_time(rate(feed("feed_outcomes_total"), f"{DEPLOYMENT}, feed, kind", 60), "{{kind}} outcomes · {{feed}}"),
    ]
    return graph(About("Rounds and outcomes", "short", says, "none"), *queries, axis=Axis("a minute", low=0))
