"""From a seed: a deployment, its input, and what breaks; run until everything stands still, then judged.

Everything is drawn from ``random.Random(seed)``, so a seed that fails fails again, with the same timeline.
"""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from stream_peer.events import topics
from stream_peer.events.partitioning import partition_of
from stream_peer.feeds.stage import FeedStage
from stream_peer.kafka.worker.ownership import StageInput
from stream_peer.kafka.worker.port import TopicPartition
from stream_peer.questions.control_stage import ControlStage
from stream_peer.questions.stage import QuestionStage
from stream_peer.settings.feed.document import document_hash
from stream_peer.settings.process import SnapshotEvery
from tests.simulation.broker import Broker, NewRecord, Rates
from tests.simulation.loop import SimulatedLoop
from tests.simulation.worker import START, Worker

FEEDS = ("red", "green")
EXPERTS = ("ann", "bob", "cyd", "dan", "eve", "fay")
CHANGELOGS = {topics.FORECAST_EVENTS: "question-changelog", topics.FEED_LOG: "feed-changelog"}
SECRET = b"simulated"
_REST_SECONDS = 240.0  # without faults, for everything to be folded, published and made durable
_COMPACTION_LAG = 20.0  # seconds; longer than a process that was thought dead may still write

SETTINGS: Mapping[str, Any] = {
    "defaults": {"round_every": "10s", "grace": "1s", "min_experts": 3, "trust": {"warm_up_questions": 5}}
}
LATER: Sequence[Mapping[str, Any]] = ({"loss": "log"}, {"vote_rule": "half"}, {"min_experts": 2}, {"guard": "on"})


class Plan(NamedTuple):
    """What a seed means."""

    seed: int
    questions: int
    seconds: float
    partitions: int
    feed_log_partitions: int
    workers: int
    every: SnapshotEvery
    rates: Rates
    faults: int


def plan_of(seed: int) -> Plan:
    """Draw a deployment; every other seed is a small one."""
    dice = random.Random(seed)
    is_small = seed % 2 == 0
    rate = dice.choice((0.0, 0.01, 0.05))
    return Plan(
        seed=seed,
        questions=dice.randint(3, 8) if is_small else dice.randint(20, 40),
        seconds=dice.uniform(40, 60) if is_small else dice.uniform(60, 100),
        partitions=dice.randint(1, 4),
        feed_log_partitions=dice.randint(1, 2),
        workers=dice.randint(1, 4),
        every=SnapshotEvery(seconds=dice.choice((1.0, 3.0)), records=dice.choice((3, 20, 1000))),
        rates=Rates(rate, rate, dice.choice((0.0, 0.02)), dice.choice((0.0, 0.01))),
        faults=dice.randint(0, 6) if is_small else dice.randint(2, 12),
    )


class Sent(NamedTuple):
    """A record of the input: when it is written, and what."""

    at: float
    topic: str
    key: str
    event: Mapping[str, Any]


def events(plan: Plan, dice: random.Random) -> Iterator[Sent]:
    """Questions, forecasts, outcomes, corrections and controls, in no order."""
    for number in range(plan.questions):
        yield from _of_question(f"q{number}", dice.choice(FEEDS), dice.uniform(1, plan.seconds * 0.6), dice)
    yield _settings(0.5, SETTINGS)
    for _ in range(dice.randint(0, 3)):
        document = {"defaults": {**SETTINGS["defaults"], **dice.choice(LATER)}}
        yield _settings(dice.uniform(5, plan.seconds), document)
    for _ in range(dice.randint(0, 4)):
        change = dice.choice(({"forget": True}, {"excluded": True}, {"excluded": False}, {"team": "desk"}))
        feed, expert = dice.choice(FEEDS), dice.choice(EXPERTS)
        yield _control(dice.uniform(5, plan.seconds), "expert", feed=feed, expert_id=expert, **change)


def _of_question(question: str, feed: str, opens: float, dice: random.Random) -> Iterator[Sent]:
    closes = opens + dice.uniform(5, 30)

    def sent(moment: float, kind: str, /, **fields: Any) -> Sent:
        return Sent(moment, topics.FORECAST_EVENTS, question, {"type": kind, "question_id": question, **fields})

    yield sent(opens, "question", feed=feed, opens_at=_iso(opens), closes_at=_iso(closes))
    for expert in EXPERTS:
        for _ in range(dice.randint(0, 2)):
            at = dice.uniform(opens, closes)
            yield sent(at, "forecast", expert_id=expert, probability=round(dice.random(), 2), at=_iso(at))
    if dice.random() < 0.8:
        at = closes + dice.uniform(0.5, 20)
        yield sent(at, "resolution", outcome=dice.choice(("yes", "no")), at=_iso(at))
        if dice.random() < 0.2:
            outcome = dice.choice(("yes", "no", None, "open"))
            yield sent(at + dice.uniform(1, 10), "resolution", outcome=outcome, at=_iso(at))


def _control(at: float, kind: str, /, **fields: Any) -> Sent:
    return Sent(
        at, topics.CONTROL_EVENTS, str(fields.get("feed", "settings")), {"type": kind, "at": _iso(at), **fields}
    )


def _settings(at: float, document: Mapping[str, Any]) -> Sent:
    return _control(at, "settings", document=document, hash=document_hash(document))


def _iso(at: float) -> str:
    moment = datetime.fromtimestamp((START + int(at * 1000)) / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Deployment:
    """Brokers and workers of a plan, while it runs.

    Attributes
    ----------
    errors : list of str
        What ended a worker, by itself.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.random = random.Random(plan.seed)
        self.loop = SimulatedLoop(self.random)  # type: ignore[abstract]  # it needs but a part of a loop
        partitions = dict.fromkeys((*topics.KEYED_BY_FEED, *topics.KEYED_BY_QUESTION, topics.DEAD_LETTERS), 2)
        partitions |= {topics.FORECAST_EVENTS: plan.partitions, CHANGELOGS[topics.FORECAST_EVENTS]: plan.partitions}
        partitions |= {topics.FEED_LOG: plan.feed_log_partitions, CHANGELOGS[topics.FEED_LOG]: plan.feed_log_partitions}
        partitions |= {topics.CONTROL_EVENTS: 1}
        self.broker = Broker(self.loop, partitions, plan.rates)
        self.workers: dict[int, Worker] = {}
        self.errors: list[str] = []
        self._starts = 0
        self._ends_at = plan.seconds
        self._compactable: list[tuple[float, dict[TopicPartition, int]]] = []

    def run(self) -> bool:
        """Run the plan; return whether everything came to rest in time."""
        self._schedule()
        self.loop.run(lambda: False, self._ends_at)
        self._heal()
        rests = self.loop.run(self._is_at_rest, self.loop.now + _REST_SECONDS)
        for process in self.loop.all_processes:
            process.kill()
        return rests

    # --- what happens ---

    def _schedule(self) -> None:
        for sent in events(self.plan, self.random):
            self.loop.later(sent.at, self._write, sent)
        for number in range(self.plan.workers):
            self.loop.later(self.random.uniform(0, 3), self.start, number)
        for _ in range(self.plan.faults):
            fault = self.random.choice(
                (self._kill, self._freeze, self._cut_off, self._change_leader, self._compact, self._leave)
            )
            self.loop.later(self.random.uniform(3, self._ends_at), fault)
        self._note_ends()

    def _write(self, sent: Sent) -> None:
        value = json.dumps(sent.event).encode()
        partition = partition_of(sent.key.encode(), self.broker.partitions[sent.topic])
        at = START + int(self.loop.now * 1000)
        self.broker.write(TopicPartition(sent.topic, partition), [NewRecord(at, sent.key.encode(), value)])

    def start(self, number: int) -> None:
        """Start a worker, or start it again."""
        self._starts += 1
        process = self.loop.process(f"worker-{number}#{self._starts}")

        def ended(error: BaseException) -> None:
            if process.is_alive:
                self.errors.append(f"{type(error).__name__}: {error}")
                self.broker.note(f"{process.name} ends: {type(error).__name__}: {error}")
                process.kill()
                self.loop.later(1.0, self.start, number)

        self.broker.note(f"{process.name} starts")
        self.workers[number] = Worker(self.broker, process, self._inputs(), self.plan.every, ended)

    def _inputs(self) -> list[StageInput]:
        plan = self.plan
        log_partitions = plan.feed_log_partitions

        def questions(partition: int) -> QuestionStage:
            return QuestionStage(
                topic=topics.FORECAST_EVENTS,
                partition=partition,
                partitions=plan.partitions,
                feed_log_partitions=log_partitions,
                secret=SECRET,
            )

        def controls(partition: int) -> ControlStage:
            return ControlStage(
                topic=topics.CONTROL_EVENTS,
                partition=partition,
                forecast_partitions=plan.partitions,
                feed_log_partitions=log_partitions,
            )

        def feeds(partition: int) -> FeedStage:
            return FeedStage(topic=topics.FEED_LOG, partition=partition, secret=SECRET)

        return [
            StageInput("question", topics.FORECAST_EVENTS, CHANGELOGS[topics.FORECAST_EVENTS], questions),
            StageInput("control", topics.CONTROL_EVENTS, None, controls),
            StageInput("feed", topics.FEED_LOG, CHANGELOGS[topics.FEED_LOG], feeds),
        ]

    # --- faults ---

    def _some_worker(self) -> int | None:
        alive = [number for number, worker in self.workers.items() if worker.process.is_alive]
        return self.random.choice(alive) if alive else None

    def _kill(self) -> None:
        number = self._some_worker()
        if number is not None:
            process = self.workers[number].process

            def strike() -> None:
                if process.is_alive:
                    self.broker.note(f"{process.name} is killed")
                    process.kill()
                    self.loop.later(self.random.uniform(0.2, 8), self.start, number)

            process.strike_after(self.random.randint(1, 200), strike)

    def _freeze(self) -> None:
        number = self._some_worker()
        if number is not None:
            process = self.workers[number].process

            def strike() -> None:
                self.broker.note(f"{process.name} freezes")
                process.freeze()
                self.loop.later(self.random.choice((0.5, 3.0, 9.0, 15.0)), self._thaw, process)

            process.strike_after(self.random.randint(1, 200), strike)

    def _thaw(self, process: Any) -> None:
        self.broker.note(f"{process.name} thaws")
        process.thaw()

    def _cut_off(self) -> None:
        """Heartbeats do not get through, everything else does."""
        number = self._some_worker()
        if number is not None:
            name = self.workers[number].process.name
            self.broker.note(f"{name} is cut off from its coordinators")
            self.broker.cut_off[name] = self.loop.now + self.random.choice((2.0, 5.0, 9.0, 15.0))

    def _change_leader(self) -> None:
        tp = self.random.choice(list(self.broker.logs))
        self.broker.note(f"{tp.topic}-{tp.partition} has another leader")
        self.broker.logs[tp].change_leader(self.loop.now + self.random.uniform(0, 2))

    def _leave(self) -> None:
        """Every member joins again, as when a worker comes or goes."""
        for group in self.broker.groups.values():
            self.broker.note(f"{group.name}: a rebalance")
            group.rebalance()

    def _note_ends(self) -> None:
        ends = {tp: log.high for tp, log in self.broker.logs.items() if tp.topic in CHANGELOGS.values()}
        self._compactable.append((self.loop.now, ends))
        self.loop.later(5.0, self._note_ends)

    def _compact(self) -> None:
        old = [ends for at, ends in self._compactable if at <= self.loop.now - _COMPACTION_LAG]
        for tp, end in old[-1].items() if old else ():
            self.broker.logs[tp].compact(end)

    # --- the end ---

    def _heal(self) -> None:
        self.broker.rates = Rates()
        self.broker.cut_off.clear()
        for process in self.loop.all_processes:
            if process.is_frozen:
                self._thaw(process)

    def _is_at_rest(self) -> bool:
        """Whether all that was written is folded and covered by durable state."""
        if any(not worker.process.is_alive or worker.process.is_frozen for worker in self.workers.values()):
            return False
        owned = {p.tp: p for w in self.workers.values() for app in w.apps for p in app.ownership.partitions()}
        logs = {tp: log for tp, log in self.broker.logs.items() if tp.topic in (*CHANGELOGS, topics.CONTROL_EVENTS)}
        return all(tp in owned and owned[tp].idle and owned[tp].want >= log.high for tp, log in logs.items())
