"""*Service*: lag, problems and resources of the workers."""

from grafana_foundation_sdk.models.dashboard import Dashboard

from helm.dashboards.frame import Row, build
from helm.dashboards.panels import HIDDEN, About, Axis, Column, Panel, graph, number, rows
from helm.dashboards.queries import DEPLOYMENT, at_the_end, column, or_none, over_time, process, quantile, rate, worker

NONE = "no worker answers"
NO_GATEWAY = "no posts to a gateway"


def dashboard() -> Dashboard:
    """Build it."""
    says = "Lag, input and output, problems and resources of the workers, and what gateways answer."
    sections = [
        Row("At a glance", [_ready(), _behind(), _overdue(), _snapshot_now(), _open()]),
        Row("Lag and throughput", [_lag_records(), _lag_seconds(), _throughput(), _latency(), _gap()]),
        Row("Input and output", [_results(), _dead(), _unused(), _outputs()]),
        Row("Problems", [_recovery(), _rebalances(), _skew()]),
        Row("Gateways", [_posts(), _posted(), _answers()]),
        Row("Resources", [_state(), _memory(), _cores(), _versions()]),
    ]
    return build("stream-peer-service", "stream_peer / Service", says, sections, feeds=False)


def _ready() -> Panel:
    says = (
        "Workers that are ready, of those that answer; and the partitions of each stage that they own. Fewer than its"
        " topic has: no worker owns the others."
    )
    queries = [
        at_the_end(f"sum({worker('ready')})", "ready"),
        at_the_end(f"count({worker('live')})", "answering"),
        at_the_end(f"sum by (stage) ({worker('owned_partitions')})", "of {{stage}}"),
    ]
    return number(
        About(
            "Workers and partitions",
            "none",
            says,
            NONE,
            alerts=("StreamPeerWorkerDown", "StreamPeerNotReady", "StreamPeerReadinessFlapping"),
        ),
        *queries,
        width=8,
    )


def _behind() -> Panel:
    says = "Age of the oldest record that is not processed yet, over all inputs. 0: no record waits."
    limits = ((None, "green"), (30, "orange"), (300, "red"))
    about = About("Behind by", "s", says, "unknown", alerts=("StreamPeerLagGrows",))
    return number(about, at_the_end(f"max({worker('lag_seconds')})", "behind"), limits=limits, decimals=0)


def _overdue() -> Panel:
    says = (
        "How long the earliest deadline of an open question is overdue, by the workers' clocks. Deadlines of feeds"
        " with history: true pass with their events, not with clocks: for them the panel shows how far back they lie."
    )
    oldest = f"time() - min({worker('oldest_deadline_timestamp_seconds')})"
    about = About("Deadlines overdue by", "s", says, NONE)
    return number(about, at_the_end(or_none(f"clamp_min({oldest}, 0)"), "overdue"), decimals=0)


def _snapshot_now() -> Panel:
    says = (
        "Longest time since a partition's state and offset were last stored. After a crash this much work is repeated."
    )
    about = About("Oldest snapshot", "s", says, "no partition", alerts=("StreamPeerSnapshotOverdue",))
    return number(about, at_the_end(f"max({worker('snapshot_age_seconds')})", "oldest"), decimals=0)


def _open() -> Panel:
    says = "Questions that are open, over all partitions. They are held in memory."
    about = About("Open questions", "short", says, "no partition")
    return number(about, at_the_end(f"sum({worker('open_questions')})", "open"), decimals=0)


def _lag_records() -> Panel:
    says = "Records of each input that are not processed yet. It should fall after a restart; if it grows, add workers."
    query = over_time(f"sum by (topic) ({worker('lag_records')})", "{{topic}}")
    return graph(
        About("Lag in records", "short", says, NONE, alerts=("StreamPeerLagGrows",)),
        query,
        axis=Axis("records", low=0),
    )


def _lag_seconds() -> Panel:
    says = (
        "Age of the oldest record of each input that is not processed yet: the delay of new forecasts. And how long a"
        " partition has waited for the end of an open transaction; records behind it cannot be read."
    )
    waits = f"max by (topic) ({worker('waiting_for_transaction_seconds')})"
    queries = [
        over_time(f"max by (topic) ({worker('lag_seconds')})", "{{topic}}"),
        over_time(waits, "{{topic}} waits for a transaction"),
    ]
    return graph(
        About("Lag in time", "s", says, "unknown", alerts=("StreamPeerTransactionOpen",)), *queries, axis=Axis(low=0)
    )


def _throughput() -> Panel:
    says = "Input records processed a second, by stage. 0 while there is lag: no progress, look at the log."
    query = over_time(rate(worker("records_total"), "stage"), "{{stage}}")
    return graph(
        About("Throughput", "suffix: records/s", says, NONE, alerts=("StreamPeerNoProgress",)), query, axis=Axis(low=0)
    )


def _latency() -> Panel:
    says = "Time from reading a batch to the acknowledgement of its outputs: median and 99th percentile."
    queries = [
        over_time(quantile(0.5, "batch_seconds", "stage"), "{{stage}} median"),
        over_time(quantile(0.99, "batch_seconds", "stage"), "{{stage}} 99 %"),
    ]
    return graph(About("Batch latency", "s", says, "no batches"), *queries, width=12, axis=Axis(low=0))


def _gap() -> Panel:
    says = "Time between two rounds of the fetch loop. Above half of session: partitions are lost to other workers."
    queries = [
        over_time(quantile(0.5, "poll_gap_seconds"), "median"),
        over_time(quantile(0.99, "poll_gap_seconds"), "99 %"),
    ]
    return graph(About("Poll gap", "s", says, "no rounds"), *queries, width=12, axis=Axis(low=0))


def _results() -> Panel:
    says = (
        "Records a second by result: accepted, duplicate, forwarded to their partition, dead-letter, too- "
        "late or tick-ahead. Many too-late ones: outcomes come after ledger_for."
    )
    query = over_time(rate(worker("events_total"), "result"), "{{result}}")
    about = About("Events by result", "suffix: events/s", says, NONE, alerts=("StreamPeerInputStopped",))
    return graph(about, query, axis=Axis(low=0))


def _dead() -> Panel:
    says = "Messages refused a minute, by reason. If one reason rises, one producer is faulty: look at dead-letters."
    query = over_time(or_none(f"{rate(worker('dead_letters_total'), 'reason', 60)} > 0", "reason"), "{{reason}}")
    about = About("Dead letters by reason", "short", says, NONE, alerts=("StreamPeerDeadLetters",))
    return graph(about, query, axis=Axis("messages a minute", low=0))


def _unused() -> Panel:
    says = (
        "Forecasts a minute that were accepted and not used as stated: late (used from a later time only), repeated "
        "and overtaken (delivered again), history-trimmed. dated-anew: corrected by later settings. "
        "forecasts_not_used in the log and the status page name the feeds."
    )
    kinds = worker("noted_total", 'what=~"late|repeated|overtaken|history-trimmed|dated-anew"')
    query = over_time(or_none(f"{rate(kinds, 'what', 60)} > 0", "what"), "{{what}}")
    alerts = ("StreamPeerLateInput", "StreamPeerRepeatedInput")
    about = About("Forecasts not used as stated", "short", says, NONE, alerts=alerts)
    return graph(about, query, axis=Axis("forecasts a minute", low=0))


def _outputs() -> Panel:
    says = "Records written and acknowledged a second, by topic. weights is 0 while no weight moves."
    query = over_time(rate(worker("outputs_total"), "topic"), "{{topic}}")
    return graph(About("Outputs", "suffix: records/s", says, NONE), query, axis=Axis(low=0))


def _recovery() -> Panel:
    says = (
        "Records still to be read by recoveries, and by rebuilds (rebuilds); their feeds wait meanwhile. Above 0 and"
        " not falling: stuck."
    )
    queries = [
        over_time(or_none(f"sum({worker('recovery_remaining_records')})"), "recovery"),
        over_time(or_none(f"sum({worker('rebuild_remaining_records')})"), "rebuild"),
    ]
    return graph(
        About("Recovery and rebuilds", "short", says, NONE, alerts=("StreamPeerRecoveryStuck",)),
        *queries,
        axis=Axis("records left", low=0),
    )


def _rebalances() -> Panel:
    says = (
        "Rare events a minute: rebalances (a steady rise is a storm), retries of the producer (brokers are slow),"
        " rebuilds, failed audits (report them), input deleted before it was read (lost), and records that claim to be"
        " the service's own without its signature (forged, or copied with their headers)."
    )
    queries = [
        over_time(or_none(rate(worker("rebalances_total"), times=60)), "rebalances"),
        over_time(or_none(rate(worker("producer_retries_total"), times=60)), "producer retries"),
        over_time(or_none(rate(worker("rebuilds_total"), times=60)), "rebuilds"),
        over_time(or_none(rate(worker("audits_total", 'result="differs"'), times=60)), "failed audits"),
        over_time(or_none(rate(worker("input_lost_records_total"), times=60)), "input lost"),
        over_time(or_none(rate(worker("unsigned_records_total"), times=60)), "unsigned records"),
    ]
    return graph(
        About(
            "Rebalances and retries",
            "short",
            says,
            NONE,
            alerts=("StreamPeerAuditDiffers", "StreamPeerInputLost", "StreamPeerUnsignedRecords"),
        ),
        *queries,
        axis=Axis("a minute", low=0),
    )


def _skew() -> Panel:
    says = (
        "Seconds by which a worker's clock is ahead of the brokers' (below 0: behind). Seconds are harmless, minutes"
        " are not."
    )
    query = over_time(f"max by (instance) ({worker('clock_skew_seconds')})", "{{instance}}")
    return graph(About("Clock skew", "s", says, "unknown", alerts=("StreamPeerClockSkew",)), query)


def _posts() -> Panel:
    says = (
        "Posts a second by status of the answer. 5xx: brokers do not acknowledge, or too many posts wait; 429: a"
        " producer sends more than it may; 401: the client's token is wrong."
    )
    query = over_time(rate(worker("gateway_seconds_count"), "status"), "{{status}}")
    alerts = ("StreamPeerNoGateway", "StreamPeerPostsFail")
    return graph(About("Posts by status", "suffix: posts/s", says, NO_GATEWAY, alerts=alerts), query, axis=Axis(low=0))


def _posted() -> Panel:
    says = "Posted events a second: accepted, unacknowledged (posted again by the client), or why they were refused."
    posted, accepted = worker("gateway_events_total"), worker("gateway_events_total", 'result="accepted"')
    query = over_time(f"{rate(posted, 'result')} > 0 or {rate(accepted, 'result')}", "{{result}}")
    about = About("Posted events", "suffix: events/s", says, NO_GATEWAY, alerts=("StreamPeerPostsRefused",))
    return graph(about, query, axis=Axis(low=0))


def _answers() -> Panel:
    says = "Time from a post to its answer, which waits for the brokers: median and 99th percentile."
    queries = [
        over_time(quantile(0.5, "gateway_seconds"), "median"),
        over_time(quantile(0.99, "gateway_seconds"), "99 %"),
    ]
    return graph(About("Time to answer a post", "s", says, NO_GATEWAY), *queries, axis=Axis(low=0))


def _state() -> Panel:
    says = "State of the workers, by stage, as stored in the changelogs. It should level off: see the sizing guide."
    query = over_time(f"sum by (stage) ({worker('state_bytes')})", "{{stage}}")
    return graph(About("State", "bytes", says, "no partition"), query, axis=Axis(low=0), stacked=True)


def _memory() -> Panel:
    says = (
        "Resident memory of each worker. Leave room below the limit of its container: a rebuild holds the state twice."
    )
    query = over_time(f"max by (instance) ({process('resident_memory_bytes')})", "{{instance}}")
    return graph(About("Memory", "bytes", says, NONE), query, axis=Axis(low=0))


def _cores() -> Panel:
    says = (
        "Cores that each worker uses. A worker uses little more than one core: near 1 it is at its limit; start more"
        " workers."
    )
    query = over_time(rate(process("cpu_seconds_total"), "instance"), "{{instance}}")
    return graph(About("CPU", "suffix: cores", says, NONE), query, axis=Axis(low=0))


def _versions() -> Panel:
    says = (
        "Version and settings of each worker. kind process: its own settings; feeds: feed settings that it has read."
        " All workers should have one version, and one hash of each kind, except during an upgrade."
    )
    named = (
        f"{worker('settings_info')} * on ({DEPLOYMENT}, instance) group_left (version, python) {worker('build_info')}"
    )
    labels = {"instance": "Worker", "version": "Version", "python": "Python", "kind": "Kind", "hash": "Settings"}
    columns = [Column(HIDDEN, column(f"max by ({DEPLOYMENT}, {', '.join(labels)}) ({named})"))]
    return rows(
        About("Versions and settings", "none", says, NONE, alerts=("StreamPeerSettingsDiffer",)),
        columns,
        labels,
        sort="Worker",
        descending=False,
        height=5,
    )
