"""Every metric with its help and labels, and the values that collectors report for it."""

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.samples import Sample


class MetricPoint(NamedTuple):
    """A value, in the metric of a name without prefix; ``labels`` are its values, in the order of the metric's."""

    name: str
    labels: tuple[str, ...]
    value: float


def put(families: Mapping[str, Metric], point: MetricPoint) -> None:
    """Put a value into the family of its name."""
    metric = BY_NAME[point.name]
    labels = dict(zip(metric.labels, point.labels, strict=True))
    families[point.name].samples.append(Sample(metric.full_name, labels, point.value))


PREFIX = "stream_peer_"

Kind = Literal["gauge", "counter", "histogram", "summary"]


class Described(NamedTuple):
    """A metric: its type, how to read its value, its labels, and of a histogram its buckets."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def full_name(self) -> str:
        """As it stands in a query."""
        return PREFIX + self.name

    def family(self) -> Metric:
        """An empty family of a collector of ours."""
        made = CounterMetricFamily if self.kind == "counter" else GaugeMetricFamily
        return made(self.full_name, self.help, labels=self.labels)


def _gauge(name: str, text: str, *labels: str) -> Described:
    return Described(name, "gauge", text, labels)


def _counter(name: str, text: str, *labels: str) -> Described:
    return Described(f"{name}_total", "counter", text, labels)


def _histogram(name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Described:
    return Described(name, "histogram", text, labels, buckets)


WHOM_TO_TRUST = (
    _gauge(
        "expert_weight",
        "Share of an expert; each kind sums to 1 over a feed, over all workers as well. mix: combine forecasts."
        " select: follow one expert. other: all experts without a series of their own.",
        "feed",
        "expert",
        "kind",
    ),
    _gauge(
        "expert_coverage_ratio",
        "Share of the feed's questions that the expert forecast. Low: its weight rests on few questions.",
        "feed",
        "expert",
    ),
    _gauge(
        "expert_peer_loss",
        "Mean loss of the expert against reference answers, unbiased, so that it estimates the loss against outcomes:"
        " smaller is better. In the unit of the feed's loss. No series: not known.",
        "feed",
        "expert",
    ),
    _gauge(
        "expert_outcome_loss",
        "Mean loss of the expert on resolved questions. No series: none of its questions is resolved.",
        "feed",
        "expert",
    ),
    _gauge(
        "effective_experts",
        "Effective number of experts in the mix, 1 over the sum of squared weights: 1 is one expert, N is the plain"
        " mean.",
        "feed",
    ),
    _gauge(
        "mixer_share_ratio",
        "Share of each mixer in the mix; they sum to 1. All in mean: no mixer has been better yet.",
        "feed",
        "mixer",
    ),
    _gauge("select_shrink_ratio", "Share of uniform weights in select. Above 0: the feed is not trusted.", "feed"),
    _gauge(
        "brier",
        "Mean squared loss of scored forecasts on resolved questions, smaller is better; 0.25 is always saying 1/2."
        " The scored forecast of a question is its first final round as it was first published; later corrections"
        " change nothing. mix and stretched: what was published, beside the mean and the median of the same"
        " forecasts. best-expert: the smallest mean loss, on its own questions, of an expert who stood in at least 10"
        " and half of them; chosen in hindsight, so mix may well be above it. No series: no outcomes; best-expert:"
        " none qualifies.",
        "feed",
        "forecast",
    ),
    _gauge(
        "shadow_brier",
        "Mean squared loss of stretched scored forecasts: of a shadow, and live on the same questions. Smaller is"
        " better.",
        "feed",
        "shadow",
        "forecast",
    ),
    _gauge(
        "shadow_regret",
        "Summed squared loss of a shadow above that of the live mixers. Below 0: it would have done better.",
        "feed",
        "shadow",
    ),
)

TRUST = (
    _gauge(
        "trust_state",
        "1 for the feed's state, 0 for the others. Not ok: see status_reasons of weights.",
        "feed",
        "state",
    ),
    _gauge(
        "trust_acknowledged", "1 if the setting trust.acknowledged names the feed's state: alerts are silent.", "feed"
    ),
    _gauge(
        "reference_error_ratio",
        "Estimated share of wrong reference answers, by true outcome, from votes and outcomes; 0.475 at most. Above 0.4"
        " on the mean of both classes answers are no better than chance, and trust is uninformative.",
        "feed",
        "class",
    ),
    _gauge("reference_error_low_ratio", "Lower end of the interval of the mean of both classes' error rates.", "feed"),
    _gauge(
        "reference_error_high_ratio",
        "Upper end of the interval of the mean of both classes' error rates; 0.475 at most, which says: unknown. From"
        " method_version 2 on at least what the mean forecasts themselves say, unless trust is ok.",
        "feed",
    ),
    _gauge(
        "reference_error_measured_ratio",
        "Wrong reference answers on resolved questions: the mean of both classes' shares, as the interval; of"
        " method_version 1 the share among all, which may lie outside for good where one class is rare. Above the"
        " interval while outcomes are few: experts share errors. trust_state judges. No series: no outcomes.",
        "feed",
    ),
    _gauge(
        "reference_error_effective_questions",
        "Effective number of questions behind the estimate, (sum of weights) squared over sum of squares. Below 50: a"
        " guess.",
        "feed",
    ),
    _gauge(
        "reference_error_status",
        "1 for the status of the error rates, 0 for the others. Not ok: status_reasons of error-rates gives the"
        " reason, and says whether losses use a substitute rate.",
        "feed",
        "status",
    ),
    _gauge(
        "certificate_regret",
        "Upper bound on the summed loss of select above that of the best expert. No series: no bound holds.",
        "feed",
    ),
    _gauge(
        "certificate_term",
        "Terms of certificate_regret, for the expert that decides it; they add up to it. estimate: regret on questions"
        " without outcome, at the worst error rates of their interval. noise: regret that wrong reference answers may"
        " hide; it grows more slowly than the number of questions, and outcomes remove it. outcomes: regret on"
        " resolved questions.",
        "feed",
        "term",
    ),
    _gauge(
        "select_regret",
        "Estimated summed loss of select above that of the best expert, at the estimated error rates. It is of the same"
        " votes as certificate_regret, which bounds the regret itself, and so does not test that bound. Below 0: better"
        " than every expert. No series: no experts, or a memory or method with which nothing is certified.",
        "feed",
    ),
    _gauge(
        "dependence_z",
        "How far votes are from those of independent experts, in standard deviations. Above 3: trust is dependent, from"
        " 200 effective questions on. Below -3: no fault. No series: fewer than 50, or votes that hardly vary.",
        "feed",
    ),
    _gauge(
        "loss_rank_correlation",
        "Rank correlation of peer and true losses over experts. Below 0.2: experts that agree are not those that are"
        " right; by two standard deviations, trust is contradicted. No series: fewer than eight experts with 20"
        " resolved questions.",
        "feed",
    ),
    _gauge(
        "tie_ratio",
        "Share of the rounds that count whose reference answer was a tie: as many votes for as against, decided by the"
        " mean forecast, at random if that is 1/2. High: few voters.",
        "feed",
    ),
    _gauge(
        "low_evidence_ratio",
        "Share of rounds with fewer voters than min_experts; they do not count until there is an outcome. High: too"
        " few experts, or vote_rule.",
        "feed",
    ),
    _gauge("mean_voters", "Independent voters a question. Below min_experts: votes do not count.", "feed"),
    _gauge(
        "error_rate_drift_z",
        "Standard deviations by which the error rate rose lately; 0: no drift. Not 0: see drift of weights.",
        "feed",
    ),
    _gauge(
        "drifting_experts",
        "Experts that got better or worse lately, relative to the others. drift of weights names them.",
        "feed",
    ),
    _gauge("grouped_experts", "Experts that copy others or the crowd. Not 0: see groups of weights.", "feed"),
)

TRAFFIC_OF_FEEDS = (
    _counter(
        "feed_rounds",
        "Rounds scored by this worker since it took the feed over; a round that was corrected is scored again."
        " low-evidence: too few voters, does not count until there is an outcome. Begins at 0 with each owner: use"
        " rate or increase.",
        "feed",
        "kind",
    ),
    _counter(
        "feed_outcomes",
        "Outcomes processed by this worker since it took the feed over. revised: changed or taken back. annulled: the"
        " question does not count. Begins at 0 with each owner: use rate or increase.",
        "feed",
        "kind",
    ),
    _counter(
        "feed_scored",
        "Scored forecasts of the mix, by their tenth of [0, 1] and the question's outcome when it was revealed: of"
        " forecasts in 0.3-0.4 about 35 % should have outcome 1. Begins at 0 with each owner: use increase.",
        "feed",
        "forecast",
        "outcome",
    ),
    _gauge(
        "feed_questions",
        "Questions that count, by weight: scored with voters enough, or resolved; not those annulled. With a memory"
        " older ones count less.",
        "feed",
    ),
    _gauge("feed_resolved_questions", "Those of them whose outcome is known, by weight.", "feed"),
    _gauge(
        "feed_updated_timestamp_seconds",
        "Unix time of the record that last changed the feed's outputs. Long ago: no input arrives.",
        "feed",
    ),
    _gauge(
        "feeds_not_shown",
        "Feeds without series because a worker shows a bounded number of series, the first feeds by name. Above 0: read"
        " their topics, or share the partitions among more workers.",
    ),
)

EVENTS = (
    _counter(
        "events",
        "Records of a topic by result; type names the accepted ones. Not accepted: see reasons of dead letters.",
        "topic",
        "result",
        "type",
    ),
    _counter("dead_letters", "Messages refused, by reason. Rising: fix a producer.", "reason"),
    _counter(
        "unsigned_records",
        "Records of forecast-events that claim to be the service's own and are not signed by it. kind: event was"
        " processed as an ordinary one, control and tick were refused.",
        "kind",
    ),
    _counter(
        "unknown_fields",
        "Fields of events that their type does not have, such as forecast.preliminary: ignored. Perhaps one that was to"
        " change the meaning, or a misspelt one.",
        "field",
    ),
    _counter("forecasts", "Forecasts accepted, each one in a message of many counts."),
    _counter(
        "noted",
        "Forecasts accepted and not used as stated: late (used from a later time), repeated and overtaken (delivered"
        " again), history-trimmed; dated-anew: later settings corrected it. Also unknown-question, and odd times.",
        "what",
    ),
    _counter(
        "rounds", "Rounds scored. low-evidence: too few voters, adds nothing until there is an outcome.", "result"
    ),
    _counter("weights", "Changes of weights. unmoved: too small to publish.", "result"),
    _counter("outputs", "Records written and acknowledged, by logical topic.", "topic"),
    _gauge(
        "open_questions",
        "Questions with a future round. Always rising: questions are opened and never closed.",
        "partition",
    ),
    _gauge(
        "oldest_deadline_timestamp_seconds",
        "Unix time of the earliest deadline of an open question. Long past, where feeds do not lie in the past"
        " themselves (history): the partition's time stands still. No series: no question is open.",
        "partition",
    ),
)

WORK = (
    _counter("records", "Input records processed. Flat while lag grows: the worker makes no progress.", "stage"),
    _gauge(
        "lag_records",
        "Records of an owned partition that can be read and are not processed yet: up to its last stable offset."
        " Growing: too slow. No series: the brokers have not answered yet.",
        "topic",
        "partition",
    ),
    _gauge(
        "lag_seconds",
        "Age, by its record's timestamp, of the oldest record not processed yet; 0 if there is none. No series:"
        " unknown, it was not fetched yet.",
        "topic",
        "partition",
    ),
    _gauge(
        "waiting_for_transaction_seconds",
        "How long an owned partition has waited for the end of one transaction, with all records before it processed;"
        " 0 if it does not wait. Above a minute: a producer keeps its transaction open, and records behind it are not"
        " read.",
        "topic",
        "partition",
    ),
    _histogram(
        "batch_seconds",
        "Time from reading a batch to the acknowledgement of its outputs. Above a second: the brokers or the worker"
        " are slow.",
        (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 20.0),
        "stage",
    ),
    _histogram(
        "batch_records",
        "Records processed at once. Large: the worker catches up, or is busy.",
        (1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 16384.0),
        "stage",
    ),
    _histogram(
        "poll_gap_seconds",
        "Time between two rounds of the fetch loop. Near session/2: partitions will be lost.",
        (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 45.0),
    ),
    _gauge("owned_partitions", "Input partitions that this worker owns. The sum over workers is all.", "stage"),
    _counter("rebalances", "Rebalances of partitions. Steady rise: a rebalance storm."),
    _counter(
        "input_lost_records",
        "Input records deleted before they were read. Above 0: retention is too short.",
        "topic",
        "partition",
    ),
    _counter(
        "producer_retries",
        "Batches sent again because a broker did not accept them. A steady rise means unhealthy brokers.",
    ),
)

STATE = (
    Described("snapshot_seconds", "summary", "Time to make state durable; _sum over _count is the mean.", ("stage",)),
    _counter("snapshot_rows", "Changelog records written by snapshots: what changed since the last one.", "stage"),
    _counter(
        "snapshot_bytes",
        "Bytes of changelog records written. Far above state_bytes a day: snapshot_every is too short.",
        "stage",
    ),
    _gauge(
        "snapshot_age_seconds",
        "How long ago state and offset were last durable: the age of the oldest processed record that a crash would"
        " repeat; 0 if all is durable. Above several snapshot_every: snapshots fail or are slow.",
        "stage",
        "partition",
    ),
    _gauge(
        "recovery_remaining_records",
        "Changelog records to read before the partition is owned. Not falling: recovery is stuck.",
        "stage",
        "partition",
    ),
    _gauge(
        "rebuild_remaining_records",
        "Log records that a rebuild has still to read; records of its feeds wait meanwhile, other feeds go on. Not"
        " falling: the rebuild is stuck.",
        "stage",
        "partition",
    ),
    _gauge(
        "rebuild_done_ratio", "Share of the log that a rebuild has read. No series: no rebuild.", "stage", "partition"
    ),
    _counter("rebuilds", "Rebuilds from the log: after settings, an erasure, an upgrade, a failed audit.", "stage"),
    _counter(
        "audits",
        "Comparisons of the sums with the ledger. differs: a fault, corrected by a rebuild.",
        "stage",
        "result",
    ),
    _gauge(
        "state_records",
        "Records of the durable state, as of the last snapshot. Always rising: see ledger_for and history_for.",
        "stage",
        "partition",
    ),
    _gauge(
        "state_bytes",
        "Bytes of the values of the durable state, as of the last snapshot; memory is several times as much.",
        "stage",
        "partition",
    ),
)

WORKER = (
    _gauge("ready", "1 if the worker is ready, as /healthz/ready says with the reason; 0 if not."),
    _gauge("live", "1 if the worker is live, as /healthz/live says with the reason; 0: restart it."),
    _gauge(
        "clock_skew_seconds",
        "How far this worker's clock is ahead of the brokers'; below 0: behind. It includes the transport time of a"
        " record, some milliseconds. No series: unknown, no partition was assigned yet.",
    ),
    _gauge(
        "settings_info",
        "Always 1; the hash names settings. process: settings that must be equal on all workers, the secret included."
        " feeds: the feed settings in force. Two hashes of a kind at once for long: workers disagree.",
        "kind",
        "hash",
    ),
    _gauge("build_info", "Always 1; says which release runs on which Python.", "version", "python"),
)

GROUPS: Mapping[str, tuple[Described, ...]] = {
    "Expert weights and forecasts": WHOM_TO_TRUST,
    "Trust in feeds": TRUST,
    "Traffic of feeds": TRAFFIC_OF_FEEDS,
    "Events and questions": EVENTS,
    "Work": WORK,
    "State": STATE,
    "The worker": WORKER,
}
"""All metrics of ours, as the reference page groups them."""

GATEWAY = (
    _counter(
        "gateway_events",
        "Events that were posted. accepted: all replicas have them. unacknowledged: the brokers did not answer, and the"
        " client was told to post again. Else the reason of the refusal.",
        "result",
    ),
    _histogram(
        "gateway_seconds",
        "Time from a request to its answer, which comes after the brokers' acknowledgement.",
        (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0),
        "status",
    ),
    _gauge("gateway_bytes", "Bytes of posts that are read or not acknowledged yet. Near 64 MB: posts are refused."),
    _gauge("gateway_ready", "1 if the brokers take events, as /healthz/ready says; 0 if not."),
)
"""Of ``stream-peer gateway``, which serves no other metric of ours."""

OF_FEEDS = (*WHOM_TO_TRUST, *TRUST, *TRAFFIC_OF_FEEDS)
"""Those whose series belong to feeds."""


def described() -> Iterator[Described]:
    """All metrics of ours."""
    for group in GROUPS.values():
        yield from group


BY_NAME: Mapping[str, Described] = {metric.name: metric for metric in described()}
BY_NAME_OF_GATEWAY: Mapping[str, Described] = {metric.name: metric for metric in GATEWAY}
