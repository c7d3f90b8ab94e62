"""*Forecasters*: for those who forecast and those who use the mix: track records, calibration, who gains weight."""

from grafana_foundation_sdk.models.dashboard import Dashboard

from helm.dashboards.feed import brier_scores, effective_number, questions, trust_now
from helm.dashboards.frame import EXPLAIN, Row, build
from helm.dashboards.panels import About, Axis, Column, Panel, graph, rows
from helm.dashboards.queries import DEPLOYMENT, change, column, of_expert, over_time, risen

_MIX, _SELECT = 'kind="mix"', 'kind="select"'
_OF_EXPERT = "{{expert}} · {{feed}}"


def dashboard() -> Dashboard:
    """Build it."""
    says = (
        "For forecasters and consumers: how calibrated the mix is, each expert's track record, and who gains and loses"
        " weight. Choose one feed, and experts to compare."
    )
    sections = [
        Row("At a glance", [trust_now(), questions(), effective_number(width=12)]),
        Row("The mix", [_calibration(), brier_scores(width=14, height=10)]),
        Row("Who gains and loses weight", [_moves(), _weights()]),
        Row("Track record", [_peer_losses(), _outcome_losses(), _coverage()]),
    ]
    return build("stream-peer-forecasters", "stream_peer / Forecasters", says, sections, feeds=True, experts=True)


def _calibration() -> Panel:
    says = (
        "Questions resolved in the time shown, by the mixed forecast published at their close, and the share that came"
        " out as 1. Calibrated: that share lies in the range of the forecasts. With n questions, chance alone moves it"
        " by about 100 / √n percentage points."
    )
    ones, every = (
        f"sum by ({DEPLOYMENT}, feed, forecast) ({risen('feed_scored_total', *one)})" for one in (('outcome="1"',), ())
    )
    columns = [
        Column("Came out as 1", column(f"{ones} / ({every} > 0)"), "percentunit", 0),
        Column("Questions", column(f"{every} > 0"), "short", 0),
    ]
    about = About("Calibration of the mix", "percentunit", says, "no outcomes")
    labels = {"feed": "Feed", "forecast": "Forecast"}
    return rows(about, columns, labels, sort="Forecast", descending=False, width=10, height=10)


def _moves() -> Panel:
    says = (
        "Share in the mix at the end of the time shown, its change within that time, and the weight for following this"
        " expert alone. A click on an expert opens the reasons, question by question (Service at: an address of the"
        " HTTP API)."
    )
    mix = of_expert("expert_weight", _MIX, 'expert!="other"')
    columns = [
        Column("Change", column(change(mix)), "percentunit", 1),
        Column("Mix", column(mix), "percentunit", 1),
        Column("Select", column(of_expert("expert_weight", _SELECT, 'expert!="other"')), "percentunit", 1),
    ]
    about = About("Weight gained and lost", "percentunit", says, "no weights yet")
    labels = {"expert": "Expert", "feed": "Feed"}
    return rows(about, columns, labels, sort="Change", width=10, height=10, leads_to={"Expert": EXPLAIN})


def _weights() -> Panel:
    says = "Share of each chosen expert in the mix; other: all experts without a series of their own."
    query = over_time(of_expert("expert_weight", _MIX), _OF_EXPERT)
    about = About("Weight in the mix", "percentunit", says, "no weights yet")
    return graph(about, query, width=14, height=10, axis=Axis(low=0), wide_legend=True)


def _peer_losses() -> Panel:
    says = (
        "Mean loss so far against reference answers, corrected for their error rates: an estimate of the loss against"
        " outcomes that needs none. Smaller is better; compare experts with similar coverage."
    )
    return _track("Peer loss", "expert_peer_loss", says)


def _outcome_losses() -> Panel:
    says = "Mean loss so far on resolved questions. Smaller is better. No lines: no outcomes."
    return _track("Loss against outcomes", "expert_outcome_loss", says)


def _track(title: str, metric: str, says: str) -> Panel:
    about = About(title, "none", says)
    return graph(about, over_time(of_expert(metric), _OF_EXPERT), axis=Axis("mean loss"), height=11)


def _coverage() -> Panel:
    says = "Share of the feed's questions that the expert forecast. With a low one, losses rest on few questions."
    query = over_time(of_expert("expert_coverage_ratio"), _OF_EXPERT)
    return graph(About("Coverage", "percentunit", says), query, axis=Axis(low=0, high=1), height=11)
