"""What must be true of the stack: at rest, and after three faults. What is not is told in a sentence each."""

import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from helm.dashboards.reading import dashboards
from stream_peer.tools.demo.feed import FEED
from tests.infra.stack.events import clone_attack, poison
from tests.infra.stack.progress import came, say, step
from tests.infra.stack.running import ONCE, WORKERS, Stack, close_questions, rule_files, send
from tests.infra.support.panels import last, unanswered
from tests.infra.support.prometheus import JOB
from tests.infra.support.rules import rules
from tests.infra.support.server import installed

REST_SECONDS = 20.0
FAULTS_SECONDS = 120.0
_POLL_SECONDS = 1.0
_POISON_A_POLL = 40
_QUESTIONS, _CLONES = 150, 8
_MAY_FOLLOW = {"StreamPeerPartitionsUnowned"}
"""Of a worker's death, on a slow machine: the session is not as short as the times of the rules."""


class Wanted(NamedTuple):
    """The alert that a fault must have, and the labels by which it says of what."""

    fault: str
    alert: str
    labels: Mapping[str, str]


def faults_at_rest(stack: Stack) -> Iterator[str]:
    """What is wrong though nothing is: targets, rules, panels, alerts."""
    with step("Are targets up, and rules loaded without error?"):
        yield from _of_targets(stack)
        yield from _of_rules(stack)
    with step(f"Has an alert fired since the start, or is one on its way after {REST_SECONDS:g} s of rest?"):
        time.sleep(REST_SECONDS)
        fired = _fired(stack)
        yield from (f"{alert} fired at rest" for alert in sorted(fired))
        for alert, says in sorted(_pending(stack).items()):
            if alert not in fired:
                yield f"{alert} would fire at rest, if it were to last: {says.removesuffix('.')}"
    with step("Does every panel of the dashboards answer?"):
        empty = unanswered(stack.prometheus, dashboards(), last(300, "10s"))
        yield from (f"no data in the panel {panel}" for panel in empty)


def faults_of_alerts(stack: Stack) -> Iterator[str]:
    """Induce three faults at once, and say which alerts did not come, and which nothing calls for."""
    victim = WORKERS[1]
    wanted = [
        Wanted("poison messages", "StreamPeerDeadLetters", {"job": JOB}),
        Wanted("clone attack", "StreamPeerDependenceAlarm", {"job": JOB, "feed": FEED}),
        Wanted(f"{victim} killed", "StreamPeerWorkerDown", {"job": JOB, "instance": stack.instance(victim)}),
    ]
    with step(f"Clone attack: {_CLONES} clones of one expert on {_QUESTIONS} questions more"):
        attack = list(clone_attack(stack.events, _QUESTIONS, _CLONES))
        send(stack.service, attack)
        close_questions(stack.service, attack)
    with step(f"Worker killed: {victim}, process {stack.workers[victim].pid}"):
        stack.workers[victim].kill()
    say(f"Poison messages, {_POISON_A_POLL} a second, until all three alerts have reached Alertmanager:")
    missing = _wait(stack, wanted)
    yield from (f"{one.fault}: {one.alert} did not reach Alertmanager within {FAULTS_SECONDS:g} s" for one in missing)
    uncalled = _fired(stack) - {one.alert for one in wanted} - _MAY_FOLLOW
    yield from (f"{alert} fired, and nothing calls for it" for alert in sorted(uncalled))


def _wait(stack: Stack, wanted: list[Wanted]) -> list[Wanted]:
    """Send poison until each alert fires and Alertmanager knows of it; those that are still missing."""
    begun, missing = time.monotonic(), wanted
    while missing and time.monotonic() - begun < FAULTS_SECONDS:
        send(stack.service, poison(_POISON_A_POLL))
        received = stack.alertmanager.names()
        there = [one for one in missing if one.alert in received and _fires(stack, one)]
        for one in there:
            came(f"{one.fault}: {one.alert} fires", time.monotonic() - begun)
        missing = [one for one in missing if one not in there]
        time.sleep(_POLL_SECONDS)
    return missing


def _fires(stack: Stack, wanted: Wanted) -> bool:
    return any(
        alert["state"] == "firing"
        and alert["labels"]["alertname"] == wanted.alert
        and wanted.labels.items() <= alert["labels"].items()
        for alert in stack.prometheus.alerts()
    )


def _pending(stack: Stack) -> dict[str, str]:
    """The alerts whose conditions hold at this moment by name, with what they say."""
    return {alert["labels"]["alertname"]: alert["annotations"]["description"] for alert in stack.prometheus.alerts()}


def _fired(stack: Stack) -> set[str]:
    """Names of the alerts that have fired since the start."""
    found = stack.prometheus.query('count by (alertname) (max_over_time(ALERTS{alertstate="firing"}[1h]))')
    return {series.labels["alertname"] for series in found}


def _of_targets(stack: Stack) -> Iterator[str]:
    targets = {target["labels"]["instance"]: target for target in stack.prometheus.targets()}
    for name in WORKERS:
        target = targets.get(stack.instance(name), {"health": "not known", "lastError": "no such target"})
        if target["health"] != "up":
            yield f"Prometheus says that {name} is {target['health']}: {target['lastError']}"


def _of_rules(stack: Stack) -> Iterator[str]:
    loaded = stack.prometheus.rules()
    if len(loaded) != len(rules()):
        yield f"Prometheus loaded {len(loaded)} of {len(rules())} rules"
    for rule in loaded:
        if rule["health"] != "ok":
            yield f"Prometheus says that {rule['name']} is {rule['health']}: {rule.get('lastError', '')}"
    yield from _of_promtool(rule_files(stack.service.directory, ONCE.factor))


def _of_promtool(files: list[Path]) -> Iterator[str]:
    command = [installed("promtool"), "check", "rules", *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        yield f"promtool refuses the rules: {' '.join((done.stdout + done.stderr).split())}"
