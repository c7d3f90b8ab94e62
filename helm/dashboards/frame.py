"""What surrounds the panels: variables, links between the dashboards and to the runbook, rows."""

from collections.abc import Sequence
from typing import NamedTuple

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models.dashboard import (
    Dashboard,
    DashboardCursorSync,
    DashboardLinkType,
    VariableRefresh,
    VariableSort,
)

from helm.dashboards.panels import Panel
from helm.dashboards.queries import SOURCE, WORKER
from helm.dashboards.reading import ALL

SERVICE = "http://127.0.0.1:8080"
"""Where a browser reaches the HTTP API. With an ingress, the chart puts that one's address in its place."""
EXPLAIN = "${service}/feeds/${__data.fields.Feed:percentencode}/experts/${__data.fields.Expert:percentencode}/explain"
"""Why the weight of the expert of a row moved."""
TAG = "stream-peer"
_SERVING = '{__name__=~"stream_peer_live|stream_peer_gateway_ready",job=~"$job"}'
"""A series of each worker and each gateway."""
RUNBOOK = "docs/runbook"
"""Where the runbook is. The chart puts ``metrics.prometheusRule.runbookBaseUrl`` before it, as in the rules."""


class Row(NamedTuple):
    """Panels under a common headline, from left to right and from top to bottom."""

    title: str
    panels: Sequence[Panel]


def build(uid: str, title: str, says: str, rows: Sequence[Row], *, feeds: bool, experts: bool = False) -> Dashboard:
    """A dashboard; ``feeds``, ``experts``: whether one can choose among them."""
    made = dashboard.Dashboard(title).uid(uid).description(says).tags([TAG]).editable()
    made.time("now-6h", "now").refresh("30s").timezone("browser").tooltip(DashboardCursorSync.CROSSHAIR)
    made.with_variable(
        dashboard.DatasourceVariable("datasource")
        .label("Data source")
        .type("prometheus")
        .allow_custom_value(allow_custom_value=False)
    )
    made.with_variable(_labels("job", "Job", "label_values(stream_peer_live, job)"))
    made.with_variable(_labels("instance", "Instance", f"label_values({_SERVING}, instance)"))
    if feeds:
        made.with_variable(_labels("feed", "Feed", f"label_values(stream_peer_feed_questions{{{WORKER}}}, feed)"))
    if experts:
        of_feeds = f'label_values(stream_peer_expert_weight{{{WORKER},feed=~"$feed"}}, expert)'
        made.with_variable(_labels("expert", "Expert", of_feeds))
        made.with_variable(dashboard.TextBoxVariable("service").label("Service at").default_value(SERVICE))
    made.with_variable(dashboard.TextBoxVariable("runbook").label("Runbook at").default_value(RUNBOOK))
    made.link(_to_dashboards()).link(_to_runbook())
    for row in rows:
        made.with_row(dashboard.Row(row.title))
        for panel in row.panels:
            made.with_panel(panel)
    return made.build()


def _labels(name: str, label: str, query: str) -> dashboard.QueryVariable:
    """A variable that holds values of a label, all of them at first."""
    variable = dashboard.QueryVariable(name).label(label).query(query).datasource(SOURCE)
    variable.multi(multi=True).include_all(include_all=True).all_value(ALL)
    return variable.refresh(VariableRefresh.ON_TIME_RANGE_CHANGED).sort(VariableSort.ALPHABETICAL_ASC)


def _to_dashboards() -> dashboard.DashboardLink:
    link = dashboard.DashboardLink("stream_peer").type(DashboardLinkType.DASHBOARDS).tags([TAG])
    return (
        link.as_dropdown(as_dropdown=False)
        .include_vars(include_vars=True)
        .keep_time(keep_time=True)
        .tooltip("The other dashboards, same choices")
    )


def _to_runbook() -> dashboard.DashboardLink:
    link = dashboard.DashboardLink("Runbook").type(DashboardLinkType.LINK).url("${runbook}").icon("doc")
    return link.target_blank(target_blank=True).tooltip("What to do when an alert fires")
