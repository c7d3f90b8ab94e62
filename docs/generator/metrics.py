"""The page of all metrics, made from the catalogue that the collector goes by."""

from collections.abc import Iterator

from docs.generator.tables import table
from stream_peer.serve.metrics.catalogue import GATEWAY, GROUPS, Described
from stream_peer.serve.metrics.feeds import MOST_SERIES

PAGE = "docs/reference/metrics.md"

HEAD = f"""# Metrics

Every metric that a worker serves at `/metrics`, and at the end those of a [gateway](../gateway.md), made from the
descriptions that Prometheus is given as well. What to watch of them, and what to do then:
[operations](../operations.md#what-to-watch).

- A partition, and with it a feed, is reported by the worker that owns it and by nobody else: what it let go of ends at
  once. So a sum over workers is true; that of each kind of `expert_weight` is 1 for every feed.
- Series of a feed show what was last published of it. They end with the feed, and those of an expert when it is
  excluded, forgotten or overtaken, within one `publish_every` and at the latest with the next snapshot.
- No label names a question. A worker shows at most {MOST_SERIES:,} series of feeds: the first feeds by name, about 80
  series each, and of each feed the `top_experts` with five series each as far as there is room, which is shared
  equally. With 50 feeds that is seven experts each, and all others are in `expert="other"`; an expert whose id is
  `other` has the label `\\other`. `feeds_not_shown` counts the feeds for which there was no room. The worker itself has
  about 200 series, and ten a partition that it owns.
- Measured: 5,490 series with 50 feeds of 10,000 experts each and 100,000 open questions, answered within 40 ms, and
  within 70 ms when all feeds had just been published.
- A gauge that has no series says: this is not known. It never stands at an old value.
- Counters begin at 0 with the process; `feed_rounds_total`, `feed_outcomes_total` and `feed_scored_total` with each
  owner of a feed. Ask for their `rate` or `increase`.

The usual metrics of a Python process are there as well: `process_cpu_seconds_total`, `process_resident_memory_bytes`,
`process_open_fds`, `process_start_time_seconds` and others, and `python_gc_*`.
"""

_VALUES = {
    ("gateway_events_total", "result"): "`accepted`, `unacknowledged`, or a [reason](../events.md#what-is-refused)",
    ("expert_weight", "kind"): "`mix`, `select`",
    ("mixer_share_ratio", "mixer"): "`mean`, `peer`, `truth_slow`, `truth_fast`",
    ("brier", "forecast"): "`mix`, `stretched`, `mean`, `median`, `best-expert`",
    ("shadow_brier", "forecast"): "`shadow`, `live`",
    ("reference_error_ratio", "class"): "`zero`, `one`",
    ("certificate_term", "term"): "`estimate`, `noise`, `outcomes`",
    ("feed_rounds_total", "kind"): "`scored`, `low-evidence`",
    ("feed_outcomes_total", "kind"): "`revealed`, `revised`, `annulled`",
    ("feed_scored_total", "forecast"): "`0.0-0.1`, …, `0.9-1.0`",
    ("feed_scored_total", "outcome"): "`0`, `1`",
    ("settings_info", "kind"): "`process`, `feeds`",
}
"""What values a label has, where the text does not say it."""


def files() -> dict[str, str]:
    """The page: path in the repository and content."""
    parts = [HEAD]
    for group, metrics in {**GROUPS, "The gateway": GATEWAY}.items():
        rows = [(f"`{one.full_name}`", one.kind, ", ".join(_labels(one)), _text(one)) for one in metrics]
        parts.append(f"\n## {group}\n\n{table(('metric', 'type', 'labels', 'how to read it'), rows)}")
    return {PAGE: "".join(parts)}


def _labels(metric: Described) -> Iterator[str]:
    for label in metric.labels:
        values = _VALUES.get((metric.name, label))
        yield f"`{label}`" if values is None else f"`{label}` ({values})"


def _text(metric: Described) -> str:
    buckets = f" Buckets: {', '.join(f'{bound:g}' for bound in metric.buckets)}." if metric.buckets else ""
    return metric.help + buckets
