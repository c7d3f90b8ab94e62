"""Draws the dashboards from a real run, to document and to look at them: ``python -m tests.infra.draw_dashboards``.

It starts a Kafka, a worker and a Prometheus, lets the worker fold a crowd's events, asks what the panels ask, and draws
the answers. Nothing is opened in Grafana.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from helm.dashboards.pictures.answers import Span
from helm.dashboards.pictures.picture import picture, png
from helm.dashboards.reading import dashboards
from stream_peer.tools.demo.feed import FEED
from tests.infra.support import crowds
from tests.infra.support.demo_run import ScrapedRun, scraped_run
from tests.infra.support.panels import answer
from tests.infra.support.tools import ROOT
from tests.integration.support.brokers import choose, real_probes, running
from tests.integration.support.client import KafkaClient

_OF_ONE_FEED = ("stream-peer-feed", "stream-peer-forecasters")
_CROWDS = {"demo": crowds.demo, "nobody": crowds.nobody, "few": crowds.few, "many": crowds.many}


def pictures(run: ScrapedRun) -> Iterator[tuple[str, bytes]]:
    """Each dashboard's name and picture; those about one feed are of the demo's feed if it is there."""
    feeds = run.prometheus.label_values("feed", "stream_peer_feed_questions")
    for dashboard in dashboards():
        chosen = {"feed": FEED} if FEED in feeds and dashboard["uid"] in _OF_ONE_FEED else {}
        window = run.window._replace(chosen=chosen)
        span = Span(window.start, window.end, window.step)
        drawn = picture(dashboard, partial(answer, run.prometheus, window=window), span)
        yield dashboard["uid"].removeprefix("stream-peer-"), png(drawn)


def main(arguments: list[str]) -> int:
    """Run, and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--crowd", choices=sorted(_CROWDS), default="demo", help="what is folded")
    parser.add_argument("--slices", type=int, default=60, help="in how many pieces it is sent")
    parser.add_argument("--workers", type=int, default=2, help="how many workers fold it")
    parser.add_argument("--every", default="2s", help="how often Prometheus scrapes")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images", help="where the pictures go")
    asked = parser.parse_args(arguments)
    rung = choose(os.environ, real_probes(os.environ)).rung
    with tempfile.TemporaryDirectory() as scratch, running(rung, Path(scratch) / "kafka") as broker:
        crowd = _CROWDS[asked.crowd]()
        place = Path(scratch) / "run"
        how = {"slices": asked.slices, "every": asked.every, "workers": asked.workers}
        with scraped_run(KafkaClient(broker), place, crowd, **how) as run:
            for name, drawn in pictures(run):
                (asked.out / f"dashboard-{name}.png").write_bytes(drawn)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
