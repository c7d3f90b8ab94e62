"""Dashboards are what the code makes, keep the rules of Grafana's own linter, and ask only for what is exported."""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from helm.dashboards.__main__ import files, main
from helm.dashboards.panels import state_names
from helm.dashboards.pictures.answers import NAMED
from helm.dashboards.pictures.canvas import Canvas
from helm.dashboards.pictures.units import shown
from helm.dashboards.queries import RATE_STATUSES, TRUST_STATES
from helm.dashboards.reading import DIRECTORY, dashboards, panels, queries
from stream_peer.serve.http.routes import ROUTES
from stream_peer.serve.metrics.catalogue import BY_NAME as BY_NAME_OF_WORKER
from stream_peer.serve.metrics.catalogue import BY_NAME_OF_GATEWAY, PREFIX
from tests.infra.support.overlaps import faults
from tests.infra.support.promql import Selector, selectors
from tests.infra.support.tools import ROOT

RULES = ROOT / "helm" / "stream-peer" / "rules"
FOREIGN = {"process_resident_memory_bytes": (), "process_cpu_seconds_total": ()}
"""What every process exports, with its labels."""
SCRAPED = {"job", "instance"}
OF_PROMETHEUS = {"ALERTS": {"alertname", "alertstate"}}
RATES = {"rate", "increase", "irate"}
BY_NAME = {**BY_NAME_OF_WORKER, **BY_NAME_OF_GATEWAY}
UNUSED = {
    "unknown_fields_total": "the log names each field once, the worker's page lists them",
    "weights_total": "how often weights moved too little to be published: nothing to act on",
    "rounds_total": "the sum over feeds of feed_rounds_total, which is shown",
    "batch_records": "batch sizes follow from throughput and latency, which are shown",
    "snapshot_seconds": "slow snapshots show in the age of the oldest one",
    "snapshot_rows_total": "what snapshots write, for sizing",
    "snapshot_bytes_total": "what snapshots write, for sizing",
    "state_records": "state is shown in bytes",
    "rebuild_done_ratio": "the records that are left are shown",
    "gateway_bytes": "posts for which there is no room show as 503",
    "shadow_regret": "the Brier scores that it is the difference of are shown",
}
"""Metrics that no dashboard and no rule uses, and why."""

_LOADED = dashboards()


@pytest.fixture(params=_LOADED, ids=[one["uid"] for one in _LOADED])
def dashboard(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = request.param
    return found


def expressions(dashboard: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Each query with its place."""
    for panel in panels(dashboard):
        for query in queries(panel):
            yield f"{panel['title']} ({query.ref})", query.expression


def selected(dashboard: dict[str, Any]) -> Iterator[tuple[str, Selector]]:
    for place, expression in expressions(dashboard):
        for selector in selectors(expression):
            yield place, selector


def base(metric: str) -> str:
    """The name in the catalogue of what a query names: series of histograms and summaries have endings."""
    name = metric.removeprefix(PREFIX)
    return name if name in BY_NAME else re.sub(r"_(bucket|sum|count)$", "", name)


# --- files ---


def test_the_files_are_what_the_code_makes() -> None:
    assert main(["--check"]) == 0
    assert {path.name for path in DIRECTORY.glob("*.json")} == set(files())


def test_a_file_that_differs_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in files().items():
        (tmp_path / name).write_text(text)
    (tmp_path / "feed.json").write_text("{}")
    (tmp_path / "left-over.json").write_text("{}")
    monkeypatch.setattr("helm.dashboards.__main__.DIRECTORY", tmp_path)

    assert main(["--check"]) == 1
    assert [line.split()[0] for line in capsys.readouterr().err.splitlines()] == ["feed.json", "left-over.json"]
    assert main([]) == 0
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == files()


def test_text_over_text_and_outside_of_its_panel_is_found() -> None:
    canvas = Canvas("Title", "", 4)
    box = canvas.frame(canvas.place({"x": 0, "y": 0, "w": 4, "h": 4}), "A panel")
    canvas.text(box, "one")
    assert faults(canvas.figure) == []

    canvas.text(box, "other")
    canvas.text(box._replace(top=box.top + 0.3), "much too long for the panel that it stands in")

    assert faults(canvas.figure) == [
        "'one' lies over 'other'",
        "'much too long for the panel that it stands in' leaves its panel",
    ]


@pytest.mark.parametrize(
    ("value", "unit", "decimals", "text"),
    [
        (0.1234, "percentunit", 1, "12.3 %"),
        (-0.5, "none", None, "−0.5"),
        (0.0, "s", 0, "0 s"),
        (0.0021, "s", None, "2.1 ms"),
        (7200.0, "s", None, "2 h"),
        (1536.0, "bytes", None, "1.5 KiB"),
        (4.4, "suffix: experts", 1, "4.4 experts"),
        (9999.0, "short", None, "9999"),
        (12_000.0, "short", None, "12 k"),
        (math.inf, "none", None, "–"),
    ],
)
def test_pictures_show_numbers_with_their_units(value: float, unit: str, decimals: int | None, text: str) -> None:
    assert shown(value, unit, decimals) == text


# --- the dashboard itself ---


def test_it_can_be_provisioned_as_it_is(dashboard: dict[str, Any]) -> None:
    text = str(dashboard)

    assert dashboard["uid"].startswith("stream-peer-")
    assert dashboard["editable"]
    assert dashboard["description"]
    assert "id" not in dashboard
    assert "__inputs" not in dashboard
    assert "${DS_" not in text
    assert len(dashboard["uid"]) <= 40


def test_it_has_a_bounded_number_of_panels_that_do_not_overlap(dashboard: dict[str, Any]) -> None:
    shown = dashboard["panels"]
    cells = [
        (x, y)
        for grid in (panel["gridPos"] for panel in shown)
        for x in range(grid["x"], grid["x"] + grid["w"])
        for y in range(grid["y"], grid["y"] + grid["h"])
    ]

    assert len(list(panels(dashboard))) <= 24
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    assert len({panel["id"] for panel in shown}) == len(shown)


def test_variables_choose_data_source_and_labels(dashboard: dict[str, Any]) -> None:
    variables = {one["name"]: one for one in dashboard["templating"]["list"]}

    assert (variables["datasource"]["type"], variables["datasource"]["query"]) == ("datasource", "prometheus")
    assert variables["datasource"]["label"] == "Data source"
    labels = ["job", "instance", *(name for name in ("feed", "expert") if name in variables)]
    for name in labels:
        one = variables[name]
        assert (one["type"], one["multi"], one["includeAll"], one["allValue"]) == ("query", True, True, ".+"), name
        assert (one["refresh"], one["datasource"]["uid"]) == (2, "${datasource}"), name
        assert one["label"] == name.capitalize()
        assert selectors(re.findall(r"label_values\((.+), \w+\)", one["query"])[0])
    assert set(variables) - {"service"} == {"datasource", "runbook", *labels}
    assert ("service" in variables) == ("${service}" in str(dashboard))


def test_it_leads_to_the_other_dashboards_and_to_the_runbook(dashboard: dict[str, Any]) -> None:
    to_dashboards, to_runbook = dashboard["links"]

    assert (to_dashboards["type"], to_dashboards["tags"]) == ("dashboards", dashboard["tags"])
    assert to_dashboards["includeVars"]
    assert to_dashboards["keepTime"]
    assert to_runbook["url"] == "${runbook}"
    runbook = next(one for one in dashboard["templating"]["list"] if one["name"] == "runbook")
    assert (ROOT / runbook["query"]).is_dir()


def test_a_feed_in_the_overview_leads_to_its_own_dashboard() -> None:
    overview = next(one for one in _LOADED if one["uid"] == "stream-peer-overview")
    table = next(panel for panel in panels(overview) if panel["type"] == "table")
    links = [
        link["url"]
        for override in table["fieldConfig"]["overrides"]
        for setting in override["properties"]
        if (override["matcher"]["options"], setting["id"]) == ("Feed", "links")
        for link in setting["value"]
    ]

    assert len(links) == 1
    path, _, choices = links[0].partition("?")
    assert path.removeprefix("/d/") in {one["uid"] for one in _LOADED}
    assert "var-feed=${__data.fields.Feed:percentencode}" in choices.split("&")


def test_all_dashboards_have_the_same_tag_and_names_of_their_own() -> None:
    assert {tuple(one["tags"]) for one in _LOADED} == {("stream-peer",)}
    assert len({one["uid"] for one in _LOADED}) == len({one["title"] for one in _LOADED}) == 4


def test_an_expert_leads_to_the_reasons_for_its_weight() -> None:
    text = (DIRECTORY / "forecasters.json").read_text(encoding="utf-8")
    route = next(one.path for one in ROUTES if one.name == "explain")
    address = route.replace("{feed}", "${__data.fields.Feed:percentencode}")

    assert "${service}" + address.replace("{expert}", "${__data.fields.Expert:percentencode}") in text


# --- panels ---


def test_every_panel_says_what_it_is(dashboard: dict[str, Any]) -> None:
    for panel in panels(dashboard):
        defaults = panel["fieldConfig"]["defaults"]
        assert panel["title"], panel
        assert len(panel["description"]) > 20, panel["title"]
        assert panel["description"].endswith("."), panel["title"]
        assert defaults["unit"], panel["title"]
        assert defaults["noValue"], panel["title"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}, panel["title"]
        assert all(target["datasource"] == panel["datasource"] for target in panel["targets"]), panel["title"]


def test_no_colour_of_a_panel_stands_for_two_things(dashboard: dict[str, Any]) -> None:
    for panel in panels(dashboard):
        if panel["type"] == "timeseries":  # by their order: a colour by name is shared by names of the same hash
            assert panel["fieldConfig"]["defaults"]["color"]["mode"] == "palette-classic", panel["title"]


def test_each_state_has_a_colour_of_its_own() -> None:
    named = {one.text: one.color for one in state_names().options.values()}

    assert set(named) == {*TRUST_STATES, *RATE_STATUSES}
    assert len(set(named.values())) == len(named)
    assert set(named.values()) <= set(NAMED)


def test_an_axis_without_a_unit_says_what_it_counts(dashboard: dict[str, Any]) -> None:
    for panel in panels(dashboard):
        defaults = panel["fieldConfig"]["defaults"]
        if panel["type"] == "timeseries" and defaults["unit"] in {"none", "short"}:
            assert defaults["custom"]["axisLabel"], panel["title"]


def test_pages_of_the_runbook_are_those_of_alerts_that_there_are(dashboard: dict[str, Any]) -> None:
    groups = yaml.safe_load((RULES / "alerts.yaml").read_text())["groups"]
    pages = {f"${{runbook}}/{rule['alert']}.md" for group in groups for rule in group["rules"]}
    links = [link["url"] for panel in panels(dashboard) for link in panel.get("links") or ()]

    assert links
    assert set(links) <= pages


# --- queries ---


def test_every_query_is_valid_and_names_what_it_draws(dashboard: dict[str, Any]) -> None:
    for place, expression in expressions(dashboard):
        assert selectors(expression), place
    for panel in panels(dashboard):
        assert all(query.legend for query in queries(panel)), panel["title"]


def test_every_query_goes_by_job_and_instance_and_feed(dashboard: dict[str, Any]) -> None:
    for place, selector in selected(dashboard):
        if selector.metric in OF_PROMETHEUS:
            continue
        metric = BY_NAME.get(base(selector.metric))
        wanted = ["job", "instance"] + (["feed"] if metric and "feed" in metric.labels else [])
        assert all((label, "Re") in selector.labels for label in wanted), f"{place}: {selector}"


def test_counters_are_rated_over_the_right_time_and_gauges_are_not(dashboard: dict[str, Any]) -> None:
    for place, selector in selected(dashboard):
        counts = selector.metric.endswith(("_total", "_bucket", "_sum", "_count"))
        assert (selector.call in RATES) == counts, f"{place}: {selector}"
    for place, expression in expressions(dashboard):
        times = set(re.findall(r"\[(.*?)\]", expression))
        whole = {"$__range", "$__range:$__interval"} if dashboard["uid"] == "stream-peer-forecasters" else set()
        assert times <= {"$__rate_interval", *whole}, place


def test_every_query_names_metrics_and_labels_that_are_exported(dashboard: dict[str, Any]) -> None:
    for place, selector in selected(dashboard):
        metric = BY_NAME.get(base(selector.metric))
        if metric:
            known = {*metric.labels, "le"} if metric.kind == "histogram" else set(metric.labels)
        else:
            known = set({**FOREIGN, **OF_PROMETHEUS}[selector.metric])
        assert {label for label, _ in selector.labels} <= known | SCRAPED, f"{place}: {selector}"


def test_every_metric_is_used_or_said_not_to_be() -> None:
    rules = [yaml.safe_load(path.read_text()) for path in RULES.glob("*.yaml")]
    asked = [rule["expr"] for document in rules for group in document["groups"] for rule in group["rules"]]
    asked += [expression for dashboard in _LOADED for _, expression in expressions(dashboard)]
    used = {base(selector.metric) for expression in asked for selector in selectors(expression)}

    assert set(BY_NAME) - used == set(UNUSED)
