"""*Overview*: all feeds side by side, and problems that need an operator."""

from grafana_foundation_sdk.models.dashboard import Dashboard

from helm.dashboards import feed as feed_dashboard
from helm.dashboards.feed import AGE, ESTIMATE
from helm.dashboards.frame import Row, build
from helm.dashboards.panels import STATE, About, Axis, Column, Panel, graph, number, rows, timeline
from helm.dashboards.queries import (
    DEPLOYMENT,
    at_the_end,
    column,
    feed,
    of_feed,
    or_none,
    over_time,
    rate,
    trust,
    worker,
)
from helm.dashboards.service import NONE

MIX, MEAN = of_feed("brier", 'forecast="mix"'), of_feed("brier", 'forecast="mean"')
FIRING = 'ALERTS{alertstate="firing",alertname=~"StreamPeer.*"}'
"""What Prometheus itself keeps of alerts; they are of all jobs, so the variables do not filter them."""
TO_FEED = (
    f"/d/{feed_dashboard.UID}?${{__url_time_range}}&${{datasource:queryparam}}&var-job=${{__data.fields.Job:percentencode}}"
    "&${instance:queryparam}&var-feed=${__data.fields.Feed:percentencode}"
)
"""The dashboard of the feed of a row, of its deployment, with the same times and choices."""


def dashboard() -> Dashboard:
    """Build it."""
    says = "All feeds side by side: trust, gain over the plain mean, and problems that need an operator."
    sections = [
        Row("At a glance", [_feeds(), _untrusted(), _alerts_now(), _workers(), _behind(), _not_shown()]),
        Row("Feeds", [_table(), _states()]),
        Row("Gain", [_rates(), _gain(), _certificates()]),
        Row("Activity", [_dependence(), _rounds(), _resolved(), _ages(), _lags(), _alerts()]),
    ]
    return build("stream-peer-overview", "stream_peer / Overview", says, sections, feeds=True)


def _feeds() -> Panel:
    says = "Feeds that have scored a question."
    return number(About("Feeds", "none", says, "none yet"), at_the_end(f"count({of_feed('feed_questions')})", "feeds"))


def _untrusted() -> Panel:
    says = "Feeds whose trust is neither ok nor warming-up. The table names them; their own dashboard says why."
    bad = of_feed("trust_state", 'state!~"ok|warming-up"')
    expression = f"sum({bad})"
    limits = ((None, "green"), (1, "orange"))
    return number(
        About("Feeds without trust", "none", says, "none yet"), at_the_end(expression, "feeds"), limits=limits
    )


def _alerts_now() -> Panel:
    says = "Alerts that fire now, if Prometheus evaluates the rules of stream_peer. The runbook has a page for each."
    limits = ((None, "green"), (1, "red"))
    about = About("Alerts firing", "none", says, NONE)
    return number(about, at_the_end(or_none(f"count({FIRING})"), "alerts"), limits=limits)


def _workers() -> Panel:
    says = "Workers that are ready, and those that answer. Fewer ready ones: partitions wait."
    queries = [at_the_end(f"sum({worker('ready')})", "ready"), at_the_end(f"count({worker('live')})", "answering")]
    return number(
        About("Workers", "none", says, NONE, alerts=("StreamPeerWorkerDown", "StreamPeerNoWorkers")), *queries
    )


def _behind() -> Panel:
    says = "Age of the oldest record that is not processed yet, over all inputs. 0: no record waits."
    limits = ((None, "green"), (30, "orange"), (300, "red"))
    query = at_the_end(f"max({worker('lag_seconds')})", "behind")
    return number(
        About("Behind by", "s", says, "unknown", alerts=("StreamPeerLagGrows",)), query, limits=limits, decimals=0
    )


def _not_shown() -> Panel:
    says = "Feeds without series, because a worker shows a bounded number of series. Read their topics, or add workers."
    query = at_the_end(f"sum({worker('feeds_not_shown')})", "feeds")
    return number(About("Feeds not shown", "none", says, NONE, alerts=("StreamPeerFeedsNotShown",)), query)


def _table() -> Panel:
    says = (
        "One row a feed; its name leads to its own dashboard. Error rate: estimated share of wrong reference answers, "
        "the mean of both classes, with its interval; measured: of all resolved questions (empty: none known). Brier: "
        "mean squared error, smaller is better; mix below mean: the weights help."
    )
    columns = [
        Column("Trust", column(trust()), STATE),
        Column("Error rate", column(ESTIMATE), "percentunit", 1),
        Column("from", column(of_feed("reference_error_low_ratio")), "percentunit", 1),
        Column("to", column(of_feed("reference_error_high_ratio")), "percentunit", 1),
        Column("Measured", column(of_feed("reference_error_measured_ratio")), "percentunit", 1),
        Column("Questions", column(of_feed("feed_questions")), "short", 0),
        Column("Resolved", column(of_feed("feed_resolved_questions")), "short", 0),
        Column("Effective experts", column(of_feed("effective_experts")), "none", 1),
        Column("Brier of mix", column(MIX), "none", 4),
        Column("of mean", column(MEAN), "none", 4),
    ]
    about = About("Feeds", "none", says, "no feeds yet")
    return rows(about, columns, {"feed": "Feed"}, sort="Trust", height=9, leads_to={"Feed": TO_FEED})


def _states() -> Panel:
    says = (
        "Trust in each feed over time. Follow mix in every state, select only in ok. Grey or empty: the feed had no "
        "owner, or did not exist."
    )
    return timeline(About("Trust over time", "none", says), over_time(trust(), "{{feed}}"), height=7)


def _rates() -> Panel:
    says = (
        "Estimated share of wrong reference answers, the mean of both classes. Above 40 % they are no better than "
        "chance."
    )
    about = About("Error rates", "percentunit", says, alerts=("StreamPeerErrorRateNearHalf",))
    return graph(about, over_time(ESTIMATE, "{{feed}}"), axis=Axis(low=0, mark=0.4))


def _gain() -> Panel:
    says = (
        "Brier score of the mix minus that of the plain mean, on resolved questions. Below 0: the weights help. No"
        " line: no outcomes."
    )
    about = About("Mix against mean", "none", says)
    return graph(about, over_time(f"{MIX} - {MEAN}", "{{feed}}"), axis=Axis("Brier score: mix − mean", mark=0))


def _certificates() -> Panel:
    says = (
        "Upper bound on the regret of select a question against the best single expert. No line: no bound holds,"
        " because the feed is not trusted or a memory is set."
    )
    expression = f"{of_feed('certificate_regret')} / ({of_feed('feed_questions')} > 0)"
    about = About("Certified regret a question", "none", says, "no bound")
    return graph(about, over_time(expression, "{{feed}}"), axis=Axis("loss a question", low=0))


def _dependence() -> Panel:
    says = (
        "How far votes are from those of independent experts. Above 3, from 200 questions on, trust becomes dependent: "
        "look for copies, or for questions of different difficulty."
    )
    query = over_time(of_feed("dependence_z"), "{{feed}}")
    return graph(
        About("Dependence", "none", says, alerts=("StreamPeerDependenceAlarm",)),
        query,
        axis=Axis("standard deviations", mark=3),
    )


def _rounds() -> Panel:
    says = "Rounds a minute. None for long: no forecasts arrive, or the service lags."
    query = over_time(rate(feed("feed_rounds_total"), f"{DEPLOYMENT}, feed", 60), "{{feed}}")
    return graph(About("Rounds", "short", says, "none"), query, axis=Axis("a minute", low=0))


def _resolved() -> Panel:
    says = "Share of scored questions whose outcome is known. More outcomes make every number here more precise."
    expression = f"{of_feed('feed_resolved_questions')} / ({of_feed('feed_questions')} > 0)"
    about = About("Resolved", "percentunit", says, "none yet")
    return graph(about, over_time(expression, "{{feed}}"), axis=Axis(low=0, high=1))


def _ages() -> Panel:
    says = (
        "Time since each feed last changed. It grows without forecasts; together with lag, it means that records wait."
    )
    return graph(About("Newest change", "s", says, "none yet"), over_time(AGE, "{{feed}}"), axis=Axis(low=0))


def _lags() -> Panel:
    says = "Age of the oldest record of each input that is not processed yet: the delay of new forecasts."
    query = over_time(f"max by (topic) ({worker('lag_seconds')})", "{{topic}}")
    return graph(About("Lag in time", "s", says, "unknown"), query, axis=Axis(low=0))


def _alerts() -> Panel:
    says = "Alerts that fired, by name, if Prometheus evaluates the rules of stream_peer. none: no alert fires."
    query = over_time(or_none(f"count by (alertname) ({FIRING})", "alertname"), "{{alertname}}")
    return graph(About("Alerts", "short", says, NONE), query, axis=Axis("alerts", low=0))
