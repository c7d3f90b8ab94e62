"""What the queries of panels compute, of series that promtool is given: owners change, counters begin anew, tenants."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from helm.dashboards.reading import dashboards, panels, queries, substituted, variables
from tests.infra.support.tools import program, run, said

A, B = 'job="peer", namespace="prod", instance="a:1"', 'job="peer", namespace="prod", instance="b:1"'
TRIAL = 'job="peer", namespace="trial", instance="a:1"'
PROD_ECON, TRIAL_ECON = '{job="peer", namespace="prod", feed="econ"', '{job="peer", namespace="trial", feed="econ"'

SERIES = {
    # econ moves from a to b after five minutes; another tenant has a feed of the same name
    f'stream_peer_trust_state{{{A}, feed="econ", state="ok"}}': "1x4 stale",
    f'stream_peer_trust_state{{{A}, feed="econ", state="contradicted"}}': "0x4 stale",
    f'stream_peer_trust_state{{{B}, feed="econ", state="ok"}}': "_x5 1x4 0x10",
    f'stream_peer_trust_state{{{B}, feed="econ", state="contradicted"}}': "_x5 0x4 1x10",
    f'stream_peer_trust_state{{{TRIAL}, feed="econ", state="ok"}}': "1x20",
    f'stream_peer_trust_state{{{TRIAL}, feed="econ", state="contradicted"}}': "0x20",
    f'stream_peer_feed_questions{{{A}, feed="econ"}}': "100x4 stale",
    f'stream_peer_feed_questions{{{B}, feed="econ"}}': "_x5 100x15",
    f'stream_peer_feed_questions{{{TRIAL}, feed="econ"}}': "0x20",
    f'stream_peer_feed_resolved_questions{{{B}, feed="econ"}}': "_x5 25x15",
    f'stream_peer_feed_resolved_questions{{{TRIAL}, feed="econ"}}': "0x20",
    f'stream_peer_certificate_regret{{{B}, feed="econ"}}': "_x5 40x15",
    f'stream_peer_certificate_regret{{{TRIAL}, feed="econ"}}': "84x20",
    f'stream_peer_brier{{{B}, feed="econ", forecast="mix"}}': "_x5 0.125x15",
    f'stream_peer_brier{{{B}, feed="econ", forecast="mean"}}': "_x5 0.25x15",
    f'stream_peer_reference_error_ratio{{{B}, feed="econ", class="zero"}}': "_x5 0.25x15",
    f'stream_peer_reference_error_ratio{{{B}, feed="econ", class="one"}}': "_x5 0.5x15",
    f'stream_peer_reference_error_ratio{{{TRIAL}, feed="econ", class="zero"}}': "0.125x20",
    f'stream_peer_reference_error_ratio{{{TRIAL}, feed="econ", class="one"}}': "0.125x20",
    # six rounds a minute of each kind; the worker b is started anew after twelve minutes
    f'stream_peer_feed_rounds_total{{{B}, feed="econ", kind="scored"}}': "_x5 0+6x6 6+6x8",
    f'stream_peer_feed_rounds_total{{{B}, feed="econ", kind="low-evidence"}}': "_x5 0+6x6 6+6x8",
    f"stream_peer_live{{{B}}}": "1x20",
    # ann gains, first on a, then on b, which takes the feed over
    f'stream_peer_expert_weight{{{A}, feed="econ", expert="ann", kind="mix"}}': "0.25x4 stale",
    f'stream_peer_expert_weight{{{B}, feed="econ", expert="ann", kind="mix"}}': "_x5 0.25x4 0.75x10",
    # of each eight forecasts six come out as 1; b begins at 0 when it takes over
    f'stream_peer_feed_scored_total{{{A}, feed="econ", forecast="0.7-0.8", outcome="1"}}': "0+6x4 stale",
    f'stream_peer_feed_scored_total{{{A}, feed="econ", forecast="0.7-0.8", outcome="0"}}': "0+2x4 stale",
    f'stream_peer_feed_scored_total{{{B}, feed="econ", forecast="0.7-0.8", outcome="1"}}': "_x5 0+6x15",
    f'stream_peer_feed_scored_total{{{B}, feed="econ", forecast="0.7-0.8", outcome="0"}}': "_x5 0+2x15",
    f'stream_peer_feed_scored_total{{{B}, feed="econ", forecast="0.1-0.2", outcome="0"}}': "_x5 0x15",
}
WANTED: list[tuple[str, str, str, dict[str, float]]] = [
    ("Overview", "Feeds", "3m", {"{}": 2.0}),
    ("Overview", "Feeds without trust", "3m", {"{}": 0.0}),
    ("Overview", "Feeds without trust", "15m", {"{}": 1.0}),
    ("Overview", "Trust over time", "4m", {f"{PROD_ECON}}}": 1.0, f"{TRIAL_ECON}}}": 1.0}),
    ("Overview", "Trust over time", "7m", {f"{PROD_ECON}}}": 1.0, f"{TRIAL_ECON}}}": 1.0}),
    ("Overview", "Trust over time", "15m", {f"{PROD_ECON}}}": 5.0, f"{TRIAL_ECON}}}": 1.0}),
    ("Overview", "Error rates", "15m", {f"{PROD_ECON}}}": 0.375, f"{TRIAL_ECON}}}": 0.125}),
    ("Overview", "Mix against mean", "15m", {f"{PROD_ECON}}}": -0.125}),
    ("Overview", "Certified regret a question", "15m", {f"{PROD_ECON}}}": 0.4}),
    ("Overview", "Resolved", "15m", {f"{PROD_ECON}}}": 0.25}),
    ("Overview", "Rounds", "15m", {f"{PROD_ECON}}}": 12.0}),
    ("Overview", "Rounds", "3m", {}),
    ("Feed", "Rounds and outcomes", "15m", {f'{PROD_ECON}, kind="{k}"}}': 6.0 for k in ("scored", "low-evidence")}),
    ("Forecasters", "Calibration of the mix", "15m", {f'{PROD_ECON}, forecast="0.7-0.8"}}': 0.75}),
]


def expression(dashboard: str, title: str) -> str:
    """The first query of a panel, of the one without a table if there is another, over four minutes of an hour."""
    (found,) = (one for one in dashboards() if one["title"].endswith(dashboard))
    titled = [one for one in panels(found) if one["title"] == title]
    panel = min(titled, key=lambda one: one["type"] == "table")
    return substituted(queries(panel)[0].expression, variables("4m", 3600, {}))


@pytest.mark.parametrize(("dashboard", "title", "at", "wanted"), WANTED)
def test_a_panel_shows_what_it_says(
    dashboard: str, title: str, at: str, wanted: dict[str, float], tmp_path: Path
) -> None:
    samples = [{"labels": labels, "value": value} for labels, value in wanted.items()]
    asked: dict[str, Any] = {"expr": expression(dashboard, title), "eval_time": at, "exp_samples": samples}
    series = [{"series": name, "values": values} for name, values in SERIES.items()]
    test = {"interval": "1m", "input_series": series, "promql_expr_test": [asked]}
    file = tmp_path / "panel.yaml"
    file.write_text(yaml.safe_dump({"evaluation_interval": "1m", "tests": [test]}))

    result = run(program("promtool", "prometheus"), "test", "rules", str(file))

    assert result.returncode == 0, said(result)
