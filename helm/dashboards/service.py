"""*Service*: whether the workers keep up, and what hinders them."""

from grafana_foundation_sdk.models.dashboard import Dashboard

from helm.dashboards.frame import Row, build
from helm.dashboards.panels import HIDDEN, About, Axis, Column, Panel, graph, number, rows
from helm.dashboards.queries import DEPLOYMENT, at_the_end, column, or_none, over_time, process, quantile, rate, worker

NONE = "no worker answers"


def dashboard() -> Dashboard:
    """Build it."""
    says = "Whether the workers keep up with what comes in, and what hinders them."
    sections = [
        Row("At a glance", [_ready(), _behind(), _overdue(), _snapshot_now(), _open()]),
        Row("Keeping up", [_lag_records(), _lag_seconds(), _throughput(), _latency(), _gap()]),
        Row("What comes and goes", [_results(), _dead(), _unused(), _outputs()]),
        Row("What hinders", [_recovery(), _unrest(), _skew()]),
        Row("What it takes", [_state(), _memory(), _cores(), _versions()]),
    ]
    return build("stream-peer-service", "stream_peer / Service", says, sections, feeds=False)


def _ready() -> Panel:
    says = (
        "Workers that are assigned, recovered and up to their topics, of those that answer; and the partitions of each "
        "stage that they fold. Fewer than its topic has: nobody folds the others."
    )
    queries = [
        at_the_end(f"sum({worker('ready')})", "ready"),
        at_the_end(f"count({worker('live')})", "answering"),
        at_the_end(f"sum by (stage) ({worker('owned_partitions')})", "of {{stage}}"),
    ]
    return number(
        About(
            "Workers and partitions", "none", says, NONE, alerts=("StreamPeerWorkerDown", "StreamPeerReadinessFlapping")
        ),
        *queries,
        width=8,
    )


def _behind() -> Panel:
    says = "Age of the oldest record that is not folded yet, over all inputs. 0: nothing waits."
    limits = ((None, "green"), (30, "orange"), (300, "red"))
    about = About("Behind by", "s", says, "unknown", alerts=("StreamPeerLagGrows",))
    return number(about, at_the_end(f"max({worker('lag_seconds')})", "behind"), limits=limits, decimals=0)


def _overdue() -> Panel:
    says = (
        "How long the earliest deadline of an open question is overdue, by the workers' clocks. Deadlines of feeds of "
        "the past (history: true) are met by their events, not by clocks: there it says how far back they lie."
    )
    oldest = f"time() - min({worker('oldest_deadline_timestamp_seconds')})"
    about = About("Deadlines overdue by", "s", says, NONE)
    return number(about, at_the_end(or_none(f"clamp_min({oldest}, 0)"), "overdue"), decimals=0)


def _snapshot_now() -> Panel:
    says = "Longest time since a partition's state and offset were last stored. After a crash so much work is repeated."
    about = About("Oldest snapshot", "s", says, "no partition", alerts=("StreamPeerSnapshotOverdue",))
    return number(about, at_the_end(f"max({worker('snapshot_age_seconds')})", "oldest"), decimals=0)


def _open() -> Panel:
    says = "Questions that are open, over all partitions. They are held in memory."
    about = About("Open questions", "short", says, "no partition")
    return number(about, at_the_end(f"sum({worker('open_questions')})", "open"), decimals=0)


def _lag_records() -> Panel:
    says = "Records of each input that are not folded yet. It should fall after a restart; if it grows, add workers."
    query = over_time(f"sum by (topic) ({worker('lag_records')})", "{{topic}}")
    return graph(
        About("Lag in records", "short", says, NONE, alerts=("StreamPeerLagGrows",)),
        query,
        axis=Axis("records", low=0),
    )


def _lag_seconds() -> Panel:
    says = (
        "Age of the oldest record of each input that is not folded yet. This is how late forecasts are taken up. And "
        "how long a partition has waited for the end of an open transaction, behind which nothing can be read."
    )
    waits = f"max by (topic) ({worker('waiting_for_transaction_seconds')}) > 0"
    queries = [
        over_time(f"max by (topic) ({worker('lag_seconds')})", "{{topic}}"),
        over_time(waits, "{{topic}} waits for a transaction"),
    ]
    return graph(
        About("Lag in time", "s", says, "unknown", alerts=("StreamPeerTransactionOpen",)), *queries, axis=Axis(low=0)
    )


def _throughput() -> Panel:
    says = "Input records folded a second, by stage. 0 while there is lag: no progress, look at the log."
    query = over_time(rate(worker("records_total"), "stage"), "{{stage}}")
    return graph(
        About("Throughput", "suffix: records/s", says, NONE, alerts=("StreamPeerNoProgress",)), query, axis=Axis(low=0)
    )


def _latency() -> Panel:
    says = (
        "From a batch of records to its acknowledged effects: half of the batches, and 99 of 100, take at most so long."
    )
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
        "Records a second by what became of them: accepted, duplicate, forwarded to their partition, dead-letter, too- "
        "late or tick-ahead. Many too-late ones: outcomes come after ledger_for."
    )
    query = over_time(rate(worker("events_total"), "result"), "{{result}}")
    about = About("Events by result", "suffix: events/s", says, NONE, alerts=("StreamPeerInputStopped",))
    return graph(about, query, axis=Axis(low=0))


def _dead() -> Panel:
    says = "Messages refused a minute, by reason. One reason that rises is one producer at fault: look at dead-letters."
    query = over_time(or_none(f"{rate(worker('dead_letters_total'), 'reason', 60)} > 0", "reason"), "{{reason}}")
    about = About("Dead letters by reason", "short", says, NONE, alerts=("StreamPeerDeadLetters",))
    return graph(about, query, axis=Axis("messages a minute", low=0))


def _unused() -> Panel:
    says = (
        "Forecasts a minute that were accepted and not used as stated: late (used from later only), repeated and "
        "overtaken (delivered again), history-trimmed. dated-anew: settings that came later mended so many. "
        "forecasts_not_used in the log and the status page name the feeds."
    )
    kinds = worker("noted_total", 'what=~"late|repeated|overtaken|history-trimmed|dated-anew"')
    query = over_time(or_none(f"{rate(kinds, 'what', 60)} > 0", "what"), "{{what}}")
    alerts = ("StreamPeerLateInput", "StreamPeerRepeatedInput")
    about = About("Forecasts not used as stated", "short", says, NONE, alerts=alerts)
    return graph(about, query, axis=Axis("forecasts a minute", low=0))


def _outputs() -> Panel:
    says = "Records written and acknowledged a second, by topic. weights rests while no weight moves."
    query = over_time(rate(worker("outputs_total"), "topic"), "{{topic}}")
    return graph(About("Outputs", "suffix: records/s", says, NONE), query, axis=Axis(low=0))


def _recovery() -> Panel:
    says = (
        "Records to be read before partitions are taken over (recovery), or to be folded anew (refold); their feeds "
        "stand still meanwhile. Above 0 and not falling: it is stuck."
    )
    queries = [
        over_time(or_none(f"sum({worker('recovery_remaining_records')})"), "recovery"),
        over_time(or_none(f"sum({worker('refold_remaining_records')})"), "refold"),
    ]
    return graph(
        About("Recovery and refolds", "short", says, NONE, alerts=("StreamPeerRecoveryStuck",)),
        *queries,
        axis=Axis("records left", low=0),
    )


def _unrest() -> Panel:
    says = (
        "What should be rare, a minute: rebalances (a steady rise is a storm), retries of the producer (brokers are "
        "slow), refolds, audits that found a fault (report it), records that retention took unread (lost), and records "
        "that only the service writes but has not signed (forged, or copied with their headers)."
    )
    queries = [
        over_time(or_none(rate(worker("rebalances_total"), times=60)), "rebalances"),
        over_time(or_none(rate(worker("producer_retries_total"), times=60)), "producer retries"),
        over_time(or_none(rate(worker("refolds_total"), times=60)), "refolds"),
        over_time(or_none(rate(worker("audits_total", 'result="differs"'), times=60)), "failed audits"),
        over_time(or_none(rate(worker("input_lost_records_total"), times=60)), "input lost"),
        over_time(or_none(rate(worker("unsigned_records_total"), times=60)), "unsigned records"),
    ]
    return graph(
        About(
            "Unrest",
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
        "By how much a worker's clock is ahead of the brokers' (below 0: behind). Seconds are harmless, minutes are "
        "not."
    )
    query = over_time(f"max by (instance) ({worker('clock_skew_seconds')})", "{{instance}}")
    return graph(About("Clock skew", "s", says, "unknown", alerts=("StreamPeerClockSkew",)), query)


def _state() -> Panel:
    says = (
        "State that the workers hold, by stage, as it lies in the changelogs. It should level off: see the sizing "
        "guide."
    )
    query = over_time(f"sum by (stage) ({worker('state_bytes')})", "{{stage}}")
    return graph(About("State", "bytes", says, "no partition"), query, axis=Axis(low=0), stacked=True)


def _memory() -> Panel:
    says = (
        "Resident memory of each worker. Leave room below the limit of its container: a refold holds the state twice."
    )
    query = over_time(f"max by (instance) ({process('resident_memory_bytes')})", "{{instance}}")
    return graph(About("Memory", "bytes", says, NONE), query, axis=Axis(low=0))


def _cores() -> Panel:
    says = (
        "Cores that each worker uses. One worker uses little more than one: near 1 it is at its limit; start more "
        "workers."
    )
    query = over_time(rate(process("cpu_seconds_total"), "instance"), "{{instance}}")
    return graph(About("CPU", "suffix: cores", says, NONE), query, axis=Axis(low=0))


def _versions() -> Panel:
    says = (
        "What runs where. kind process: the worker's own settings; feeds: those of feeds that it has read. Of a kind "
        "all workers should have the same hash, and all the same version, except while they are being replaced."
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
