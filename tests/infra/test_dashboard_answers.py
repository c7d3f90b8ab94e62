"""Dashboards on a real run: a worker on Kafka, the demo's data, a real Prometheus. All panels answer, and have room."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import pytest

from helm.dashboards.pictures.answers import Answer, Span, named
from helm.dashboards.pictures.picture import picture
from helm.dashboards.reading import dashboards, panels, queries
from stream_peer.tools.demo.feed import FEED
from tests.infra.draw_dashboards import pictures
from tests.infra.support.crowds import demo
from tests.infra.support.demo_run import ScrapedRun, scraped_run
from tests.infra.support.overlaps import faults
from tests.infra.support.panels import Window, answer, unanswered
from tests.infra.support.prometheus import JOB, Prometheus
from tests.infra.support.promql import selectors
from tests.infra.support.tools import ROOT, needed
from tests.integration.support.client import KafkaClient

pytestmark = pytest.mark.real_kafka

_SHARE = 0.3
_MOVES_AT = 1_767_225_600
_ALL = dashboards()


@pytest.fixture(scope="module")
def run(kafka: KafkaClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScrapedRun]:
    needed("prometheus", "promtool")
    with scraped_run(kafka, tmp_path_factory.mktemp("run"), demo(_SHARE), slices=6) as made:
        yield made


def drawn(prometheus: Prometheus, run: ScrapedRun, dashboard: Mapping[str, Any], **chosen: str) -> Any:
    window = run.window._replace(chosen=chosen)
    return picture(dashboard, partial(answer, prometheus, window=window), Span(window.start, window.end, window.step))


@pytest.mark.slow
def test_every_query_of_every_panel_answers(run: ScrapedRun) -> None:
    assert unanswered(run.prometheus, _ALL, run.window, every_query=True) == []


@pytest.mark.slow
def test_every_query_names_what_workers_and_gateways_export(run: ScrapedRun) -> None:
    exported = set(run.prometheus.label_values("__name__", f'{{job="{JOB}"}}'))
    of_trouble = {"stream_peer_audits_total", "stream_peer_input_lost_records_total", "stream_peer_rebuilds_total"}
    of_trouble |= {"stream_peer_rebuild_remaining_records", "stream_peer_recovery_remaining_records"}
    of_trouble |= {"stream_peer_oldest_deadline_timestamp_seconds", "ALERTS"}
    asked = {
        selector.metric
        for dashboard in _ALL
        for panel in panels(dashboard)
        for query in queries(panel)
        for selector in selectors(query.expression)
    }

    assert asked - exported <= of_trouble


@pytest.mark.slow
def test_one_feed_shows_one_line_of_weights_for_each_expert_and_they_add_up(run: ScrapedRun) -> None:
    dashboard = next(one for one in _ALL if one["uid"] == "stream-peer-feed")
    panel = next(one for one in panels(dashboard) if one["title"] == "Weights over time")
    found = answer(run.prometheus, queries(panel)[0], run.window._replace(chosen={"feed": FEED}))

    experts = [series.labels["expert"] for series in found]
    newest = max(series.points[-1][0] for series in found)
    assert len(experts) == len(set(experts))
    assert {series.labels["feed"] for series in found} == {FEED}
    assert sum(series.points[-1][1] for series in found if series.points[-1][0] == newest) == pytest.approx(1)


@pytest.mark.slow
def test_a_feed_that_moves_between_workers_has_no_line_twice(run: ScrapedRun) -> None:
    samples = run.service.all_samples()
    with Prometheus(history=moving(samples)) as prometheus:
        window = Window(_MOVES_AT - 600, _MOVES_AT + 600, "4m")
        for dashboard in _ALL:
            for panel in panels(dashboard):
                named_lines = [
                    named(Answer(query, ()), series)
                    for query in queries(panel)
                    for series in answer(prometheus, query, window)
                    if panel["type"] != "table"
                ]
                assert len(named_lines) == len(set(named_lines)), f"{dashboard['title']} / {panel['title']}"


def moving(samples: Iterable[Any]) -> str:
    """A history in which one worker exports the samples, then another, and for two minutes both do."""
    lines = []
    for sample in samples:
        for instance, minutes in (("a:1", range(-10, 2)), ("b:1", range(11))):
            labels = {**sample.labels, "job": JOB, "instance": instance}
            text = ",".join(f"{name}={json.dumps(value)}" for name, value in labels.items())
            lines += [f"{sample.name}{{{text}}} {sample.value} {_MOVES_AT + 60 * minute}" for minute in minutes]
    return "\n".join([*lines, "# EOF", ""])


@pytest.mark.slow
def test_the_pictures_of_the_manual_can_be_drawn_anew_and_are_small(run: ScrapedRun) -> None:
    shown = {path.name: path.read_bytes() for path in (ROOT / "docs" / "images").glob("dashboard-*.png")}
    made = {f"dashboard-{name}.png": drawing for name, drawing in pictures(run)}

    assert made.keys() == shown.keys()
    assert all(len(drawing) < 250_000 for drawing in (*made.values(), *shown.values()))
    manual = (ROOT / "docs" / "dashboards.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\(images/(.+?)\)", manual)) == shown.keys()


@pytest.mark.slow
@pytest.mark.parametrize("dashboard", _ALL, ids=[one["uid"] for one in _ALL])
def test_nothing_overlaps_in_a_picture_of_all_feeds_of_one_and_of_none(
    run: ScrapedRun, dashboard: dict[str, Any]
) -> None:
    with Prometheus() as nobody:
        drawings = {
            "all": drawn(run.prometheus, run, dashboard),
            "one": drawn(run.prometheus, run, dashboard, feed=FEED),
            "none": drawn(nobody, run, dashboard),
        }

    assert {name: found for name, figure in drawings.items() if (found := faults(figure))} == {}
    assert all(axes.get_ylabel() for axes in drawings["all"].axes if axes.lines or axes.collections)
    said = [text.get_text() for text in drawings["none"].texts]
    empty = [panel["fieldConfig"]["defaults"]["noValue"] for panel in panels(dashboard)]
    assert sorted(text for text in said if text in empty) == sorted(empty)
