"""Panels with the same manners: each has a title, a description, a unit, and a text for when there is no data."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.models.common import (
    BigValueColorMode,
    BigValueGraphMode,
    BigValueTextMode,
    GraphThresholdsStyleMode,
    LegendDisplayMode,
    LegendPlacement,
    SortOrder,
    StackingMode,
    TooltipDisplayMode,
    VisibilityMode,
)
from grafana_foundation_sdk.models.dashboard import (
    DashboardLinkType,
    DataTransformerConfig,
    DynamicConfigValue,
    FieldColorModeId,
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMappingResult,
)

from helm.dashboards.queries import DEPLOYMENT, FIRST_RATE_STATUS, RATE_STATUSES, SOURCE, TRUST_STATES

Query = prometheus.Dataquery
Panel = stat.Panel | statetimeline.Panel | table.Panel | timeseries.Panel
AnyPanel = TypeVar("AnyPanel", stat.Panel, statetimeline.Panel, table.Panel, timeseries.Panel)

SCARCE = "not enough data"
STATE = "state"
"""Instead of the unit of a column: its numbers are states of trust."""
HIDDEN = ""
"""Instead of the name of a column: only what its rows are is shown."""
_OF_DEPLOYMENT = {label: label.capitalize() for label in reversed(DEPLOYMENT.split(", "))}
"""The last columns of a table. Grafana shows those that there are."""
_STATE_COLORS = {
    "ok": "green",
    "warming-up": "blue",
    "insufficient": "light-blue",
    "low-evidence": "yellow",
    "biased-reveal": "dark-yellow",
    "balanced": "light-purple",
    "dependent": "orange",
    "contradicted": "red",
    "uninformative": "purple",
}


class About(NamedTuple):
    """What every panel says of itself.

    ``says``: how to read it; ``empty``: what stands there if there is no series; ``alerts``: those that go by it; it
    leads to their pages in the runbook.
    """

    title: str
    unit: str
    says: str
    empty: str = SCARCE
    alerts: tuple[str, ...] = ()


class Axis(NamedTuple):
    """What the numbers of a graph are, where the unit does not say it, and where they begin and end.

    ``mark``: a value that means something, drawn as a line across.
    """

    name: str = ""
    low: float | None = None
    high: float | None = None
    mark: float | None = None


class Column(NamedTuple):
    """A column of a table: its name, what it asks, and its unit."""

    name: str
    query: Query
    unit: str = "none"
    decimals: int | None = None


def graph(
    about: About,
    *queries: Query,
    width: int = 8,
    height: int = 8,
    axis: Axis = Axis(),  # noqa: B008 - a value
    stacked: bool = False,
    dashed: str = "",
    wide_legend: bool = False,
) -> timeseries.Panel:
    """Lines over time; ``dashed``: a pattern of the names of those that are."""
    panel = _about(timeseries.Panel(), about, width, height, queries)
    panel.tooltip(common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI).sort(SortOrder.DESCENDING))
    panel.legend(_legend(wide=wide_legend)).show_points(VisibilityMode.AUTO).line_width(1).span_nulls(span_nulls=False)
    panel.color_scheme(dashboard.FieldColor().mode(FieldColorModeId.PALETTE_CLASSIC))
    panel.fill_opacity(60 if stacked else 0).axis_label(axis.name)
    if stacked:
        panel.stacking(common.StackingConfig().mode(StackingMode.NORMAL).group("A"))
    _scale(panel, axis, counts=about.unit == "short" or about.unit.endswith("/s"))
    if dashed:
        style = DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [8, 6]})
        panel.override_by_regexp(f"/{dashed}/", [style])
    return panel


def _scale(panel: timeseries.Panel, axis: Axis, *, counts: bool) -> None:
    if axis.low is not None:
        panel.min(axis.low)
    if axis.high is not None:
        panel.max(axis.high)
    elif counts:
        panel.axis_soft_max(1)  # nothing at all is not drawn as fractions of something
    if axis.mark is not None:
        panel.thresholds(_thresholds(((None, "transparent"), (axis.mark, "red"))))
        panel.thresholds_style(common.GraphThresholdsStyleConfig().mode(GraphThresholdsStyleMode.DASHED))


def number(
    about: About,
    *queries: Query,
    width: int = 4,
    height: int = 4,
    decimals: int | None = None,
    limits: Sequence[tuple[float | None, str]] = ((None, "text"),),
) -> stat.Panel:
    """The newest value of each series, large; ``limits``: from which value on it has which colour."""
    panel = _about(stat.Panel(), about, width, height, queries)
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(values=False))
    panel.graph_mode(BigValueGraphMode.NONE).color_mode(BigValueColorMode.VALUE).text_mode(BigValueTextMode.AUTO)
    panel.thresholds(_thresholds(limits))
    if decimals is not None:
        panel.decimals(decimals)
    return panel


def states_now(about: About, query: Query, width: int = 4, height: int = 4) -> stat.Panel:
    """The state that each feed is in, as a word."""
    panel = number(about, query, width=width, height=height)
    return panel.mappings([state_names()]).color_mode(BigValueColorMode.BACKGROUND)


def timeline(about: About, *queries: Query, width: int = 24, height: int = 6) -> statetimeline.Panel:
    """States over time, a band for each series."""
    panel = _about(statetimeline.Panel(), about, width, height, queries)
    panel.mappings([state_names()]).merge_values(merge_values=True).show_value(VisibilityMode.AUTO).row_height(0.8)
    panel.fill_opacity(80).line_width(0).per_page(20)
    return panel.legend(_legend(wide=False)).tooltip(common.VizTooltipOptions().mode(TooltipDisplayMode.SINGLE))


def rows(
    about: About,
    columns: Sequence[Column],
    labels: Mapping[str, str],
    *,
    sort: str,
    descending: bool = True,
    leads_to: Mapping[str, str] | None = None,
    width: int = 24,
    height: int = 8,
) -> table.Panel:
    """A table: ``labels`` are what its rows are, by the names to show; then ``columns``, one query each; and of whom.

    ``leads_to``: by the name of a column, the address that a click on a cell of it opens.
    """
    queries = [column.query for column in columns]
    panel = _about(table.Panel(), about, width, height, queries)
    fields = [f"Value #{ref}" for ref in _letters(columns)] if len(columns) > 1 else ["Value"]
    values = {field: column.name for field, column in zip(fields, columns, strict=True)}
    named = {**labels, **values, **_OF_DEPLOYMENT}
    shown = {field: name for field, name in named.items() if name != HIDDEN}
    organize = {
        "excludeByName": {"Time": True, **{field: True for field, name in values.items() if name == HIDDEN}},
        "indexByName": {name: place for place, name in enumerate(shown)},
        "renameByName": shown,
    }
    panel.with_transformation(DataTransformerConfig("merge", options={}))
    panel.with_transformation(DataTransformerConfig("organize", options=organize))
    panel.sort_by([common.TableSortByFieldState().display_name(sort).desc(desc=descending)])
    for column in (one for one in columns if one.name != HIDDEN):
        panel.override_by_name(column.name, _column_style(column))
    for name, address in (leads_to or {}).items():
        link: Any = [{"title": "Open", "url": address}]
        panel.override_by_name(name, [DynamicConfigValue("links", link)])
    return panel


def state_names() -> ValueMap:
    """Words and colours of numbered states: of trust, and of error rates."""
    numbered = (*enumerate(TRUST_STATES, 1), *enumerate(RATE_STATUSES, FIRST_RATE_STATUS))
    named = (ValueMappingResult(text=state, color=_STATE_COLORS[state], index=place) for place, state in numbered)
    return ValueMap(options={str(one.index): one for one in named})


def _column_style(column: Column) -> list[DynamicConfigValue]:
    style = [DynamicConfigValue("unit", column.unit)]
    if column.decimals is not None:
        style.append(DynamicConfigValue("decimals", column.decimals))
    if column.unit == STATE:
        mapped: Any = [state_names()]
        background = {"type": "color-background", "mode": "basic"}
        style = [DynamicConfigValue("mappings", mapped), DynamicConfigValue("custom.cellOptions", background)]
    return style


def _about(panel: AnyPanel, about: About, width: int, height: int, queries: Sequence[Query]) -> AnyPanel:
    panel.title(about.title).description(about.says).unit(about.unit).no_value(about.empty)
    panel.datasource(SOURCE).span(width).height(height)
    if about.alerts:
        panel.links([_to_page(alert) for alert in about.alerts])
    for ref, query in zip(_letters(queries), queries, strict=True):
        panel.with_target(query.ref_id(ref).datasource(SOURCE))
    return panel


def _to_page(alert: str) -> dashboard.DashboardLink:
    link = dashboard.DashboardLink(f"Runbook: {alert}").type(DashboardLinkType.LINK).target_blank(target_blank=True)
    return link.url(f"${{runbook}}/{alert}.md")


def _letters(items: Sequence[Any]) -> list[str]:
    return [chr(ord("A") + place) for place in range(len(items))]


def _legend(*, wide: bool) -> common.VizLegendOptions:
    legend = common.VizLegendOptions().show_legend(show_legend=True)
    if not wide:
        return legend.display_mode(LegendDisplayMode.LIST).placement(LegendPlacement.BOTTOM)
    legend.display_mode(LegendDisplayMode.TABLE).placement(LegendPlacement.RIGHT)
    return legend.calcs(["lastNotNull"]).sort_by("Last *").sort_desc(sort_desc=True)


def _thresholds(limits: Sequence[tuple[float | None, str]]) -> dashboard.ThresholdsConfig:
    steps = [Threshold(value=value, color=color) for value, color in limits]
    return dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps)
