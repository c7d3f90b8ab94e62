"""A deployment while it runs: brokers, workers, its input and its faults; until everything stands still."""

import json
import random
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Self
from unittest import mock

from stream_peer.events import topics
from stream_peer.events.partitioning import partition_of
from stream_peer.feeds import alarm_checks
from stream_peer.feeds import feed as stored
from stream_peer.feeds import stage as feed_stage
from stream_peer.feeds.feed import Feed
from stream_peer.feeds.stage import FeedStage
from stream_peer.kafka.worker import inbox
from stream_peer.kafka.worker import partition as owned
from stream_peer.kafka.worker.ownership import StageInput
from stream_peer.kafka.worker.port import TopicPartition
from stream_peer.questions.control_stage import ControlStage
from stream_peer.questions.stage import QuestionStage
from tests.simulation.broker import Broker, NewRecord, Rates
from tests.simulation.loop import Process, SimulatedLoop
from tests.simulation.plan import CHANGELOGS, EXPERTS, START, Fault, Plan, Sent, iso, moment_of, raises_schema
from tests.simulation.watch import Watch
from tests.simulation.worker import Worker

SECRET = b"simulated"
_REST_SECONDS = 240.0  # without faults, for everything to be folded, published and made durable
_QUIET_SECONDS = 10.0  # at the end, in which what comes late comes, and idle owners look for it
_LAG_SECONDS = 20.0  # of compaction, of retention, of tombstones; longer than a process that was thought dead may write
_UNTOLD_SECONDS = 1.0
_ARRIVED_SECONDS = 4.0  # after which nothing of a killed process is on its way any more
_ROOM = 30  # records that wait in memory at most, besides one fetch: few enough to be reached
_LOOK_SECONDS = 2.0  # between two looks of an idle owner at the end of its changelog
_CHECK_EVERY = 4  # of every eighth seed: new questions from one look for alarms to the next, each done in pieces
_OTHER_RELEASE = b"\xc1"  # no MessagePack begins with it


class Deployment:
    """Brokers and workers of a plan; a context manager, in which the schema is that of the last upgrade.

    Attributes
    ----------
    errors : list of str
        What ended a worker, by itself.
    watch : Watch
    lost : dict
        Of partitions of the input: the offsets that were removed before they were folded.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.random = random.Random(plan.seed)
        self.loop = SimulatedLoop(self.random)  # type: ignore[abstract]  # it needs but a part of a loop
        partitions = dict.fromkeys(topics.OUTPUTS, 2)
        partitions |= {topics.FORECAST_EVENTS: plan.partitions, CHANGELOGS[topics.FORECAST_EVENTS]: plan.partitions}
        partitions |= {topics.FEED_LOG: plan.feed_log_partitions, CHANGELOGS[topics.FEED_LOG]: plan.feed_log_partitions}
        partitions |= {topics.CONTROL_EVENTS: 1}
        self.broker = Broker(self.loop, partitions, plan.rates)
        self.watch = Watch(plan, self.broker.logs)
        self.workers: dict[int, Worker] = {}
        self.errors: list[str] = []
        self.lost: dict[TopicPartition, range] = {}
        self._starts = 0
        self._nobody_until = 0.0
        self._healed = 0.0
        self._trial: Fault | None = None
        self._first_schema = feed_stage.SCHEMA  # type: ignore[attr-defined]  # where it is read
        self._stack = ExitStack()
        self._ends: list[tuple[float, dict[TopicPartition, int]]] = []

    def __enter__(self) -> Self:
        encode, decode = Feed.encode, stored.decode_feed
        changes = (
            mock.patch.object(feed_stage, "SCHEMA", self._first_schema),
            mock.patch.object(Feed, "encode", lambda feed: _OTHER_RELEASE * self._release + encode(feed)),
            mock.patch.object(stored, "decode_feed", lambda data: decode(data[self._release :])),
            mock.patch.object(inbox, "ROOM", _ROOM),
            mock.patch.object(owned, "LOOK_SECONDS", _LOOK_SECONDS),
        )
        for change in changes:
            self._stack.enter_context(change)
        if self.plan.seed % 8 == 7:
            self._stack.enter_context(mock.patch.multiple(alarm_checks, CHECK_EVERY=_CHECK_EVERY, AT_ONCE=0))
        return self

    @property
    def _release(self) -> int:
        """How many releases with another state of feeds came before the present one."""
        return int(feed_stage.SCHEMA - self._first_schema)  # type: ignore[attr-defined]

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def stored_by(self, schema: int, entries: Mapping[bytes, bytes | None]) -> dict[bytes, bytes | None]:
        """State that the present release stores, as the release with a schema does: only records of feeds differ."""
        mark, start = _OTHER_RELEASE * (schema - self._first_schema), 4  # after the number of pieces
        return {
            key: value[:start] + mark + value[start:].lstrip(_OTHER_RELEASE)
            if key.startswith(b"f/") and value
            else value
            for key, value in entries.items()
        }

    def run(self) -> bool:
        """Run the plan; return whether everything came to rest in time."""
        for sent in self.plan.inputs:
            self.loop.later(sent.at, self._write, sent)
        for number in range(self.plan.workers):
            self.loop.later(self.random.uniform(0, 3), self.start, number)
        for fault in self.plan.faults:
            self.loop.later(fault.at, self._break, fault)
        self._note_ends()
        self.loop.run(lambda: False, self.plan.seconds)
        self._heal()
        rests = self.loop.run(self._is_at_rest, self.loop.now + _REST_SECONDS)
        for process in self.loop.all_processes:
            process.kill()
        for tp in self.broker.logs:
            if tp.topic in CHANGELOGS.values():
                self.broker.logs[tp].compact(self.broker.logs[tp].high, self.loop.now)
        return rests

    def _write(self, sent: Sent) -> None:
        value = json.dumps(sent.event).encode()
        partition = partition_of(sent.key.encode(), self.broker.partitions[sent.topic])
        record = NewRecord(START + int(self.loop.now * 1000), sent.key.encode(), value)
        tp = TopicPartition(sent.topic, partition)
        log = self.broker.logs[tp]
        if log.open_from is not None and int(sent.at * 1000) % 2:  # another producer writes the others
            log.write_in_transaction([record])
        else:
            self.broker.write(tp, [record])

    def start(self, number: int) -> None:
        """Start a worker, or start it again."""
        if self.loop.now < self._nobody_until:
            self.loop.later(self._nobody_until - self.loop.now, self.start, number)
            return
        self._starts += 1
        process = self.loop.process(f"worker-{number}#{self._starts}")

        def ended(error: BaseException) -> None:
            if process.is_alive:
                self.errors.append(f"{type(error).__name__}: {error}")
                self.broker.note(f"{process.name} ends: {type(error).__name__}: {error}")
                self._end(number, process, 1.0)

        self.broker.note(f"{process.name} starts")
        worker = Worker(self.broker, self.watch, process, self._inputs(), self.plan.every, ended)
        self.workers[number] = worker
        if self._trial is not None:
            worker.sender.strike, worker.sender.is_time = self._roll_back, _Nth(2 + self._trial.steps % 3)

    def _end(self, number: int, process: Process, away: float) -> None:
        process.kill()
        self.loop.later(away, self.start, number)

    def _inputs(self) -> list[StageInput]:
        return [
            StageInput("question", topics.FORECAST_EVENTS, CHANGELOGS[topics.FORECAST_EVENTS], self.question_stage),
            StageInput("control", topics.CONTROL_EVENTS, None, self.control_stage),
            StageInput("feed", topics.FEED_LOG, CHANGELOGS[topics.FEED_LOG], self.feed_stage),
        ]

    def question_stage(self, partition: int) -> QuestionStage:
        """An empty stage, as all workers have it."""
        return QuestionStage(
            topic=topics.FORECAST_EVENTS,
            partition=partition,
            partitions=self.plan.partitions,
            feed_log_partitions=self.plan.feed_log_partitions,
            secret=SECRET,
        )

    def control_stage(self, partition: int) -> ControlStage:
        """An empty stage, as all workers have it."""
        return ControlStage(
            topic=topics.CONTROL_EVENTS,
            partition=partition,
            forecast_partitions=self.plan.partitions,
            feed_log_partitions=self.plan.feed_log_partitions,
        )

    def feed_stage(self, partition: int) -> FeedStage:
        """An empty stage, as all workers have it."""
        return FeedStage(topic=topics.FEED_LOG, partition=partition, secret=SECRET)

    # --- faults ---

    def _break(self, fault: Fault) -> None:
        of_worker = {"kill": self._kill, "freeze": self._freeze, "cut off": self._cut_off, "clock": self._set_clock}
        of_all: dict[str, Callable[[Fault], None]] = {
            "leader": self._change_leader,
            "compact": self._compact,
            "rebalance": self._rebalance,
            "transaction": self._transact,
            "retention": self._retain,
            "all at once": self._kill_all,
            "upgrade": self._upgrade,
            "rolled back": self._try_upgrade,
            "retention ahead": self._retain_too_little,
        }
        if fault.kind in of_all:
            of_all[fault.kind](fault)
            return
        alive = [number for number, worker in self.workers.items() if worker.process.is_alive]
        if alive:
            number = alive[int(fault.who * len(alive))]
            worker = self.workers[number]

            def strike() -> None:
                if worker.process.is_alive:
                    of_worker[fault.kind](fault, number, worker)

            moment = moment_of(fault) if fault.kind == "freeze" else ""
            if moment == "a producer sends":
                worker.sender.strike = strike
            elif moment == "a heartbeat is under way":
                worker.sender.strike = strike
                worker.sender.is_time = lambda _: any(consumer.beats for consumer in worker.consumers)
            elif moment == "fencing tokens are written":
                worker.consumers[fault.steps // 4 % 2].strike = strike
                self._rebalance(fault)
            else:
                worker.process.strike_after(fault.steps, strike)

    def _kill(self, fault: Fault, number: int, worker: Worker) -> None:
        self.broker.note(f"{worker.process.name} is killed")
        self._end(number, worker.process, fault.seconds)

    def _freeze(self, fault: Fault, _number: int, worker: Worker) -> None:
        self.broker.note(f"{worker.process.name} freezes")
        if moment_of(fault) == "fencing tokens are written":  # it goes on with its recovery, and no heartbeat tells it
            self.broker.cut_off[worker.process.name] = self.loop.now + fault.seconds + _UNTOLD_SECONDS
        worker.process.freeze()
        self.loop.later(fault.seconds, self._thaw, worker.process)

    def _thaw(self, process: Process) -> None:
        if process.is_frozen:
            self.broker.note(f"{process.name} thaws")
            process.thaw()

    def _cut_off(self, fault: Fault, _number: int, worker: Worker) -> None:
        """Heartbeats do not get through, everything else does."""
        self.broker.note(f"{worker.process.name} is cut off from its coordinators for {fault.seconds} s")
        self.broker.cut_off[worker.process.name] = self.loop.now + fault.seconds

    def _set_clock(self, fault: Fault, _number: int, worker: Worker) -> None:
        self.broker.note(f"{worker.process.name} has a clock that is {fault.seconds} s ahead")
        worker.runtime.ahead = int(fault.seconds * 1000)

    def _kill_all(self, fault: Fault) -> None:
        for number, worker in self.workers.items():
            if worker.process.is_alive:
                self._kill(fault, number, worker)

    def _upgrade(self, fault: Fault) -> None:
        """Everybody gives way to workers of the same release, or of one with another state of feeds."""
        if raises_schema(fault):
            self._change_schema(1)
        self._kill_all(fault)

    def _try_upgrade(self, fault: Fault) -> None:
        """An upgrade to another state of feeds, which ends in the middle of the first snapshot."""
        if self._trial is None:
            self._trial = fault
            self._change_schema(1)
            self._kill_all(fault)

    def _roll_back(self) -> None:
        if self._trial is not None:
            fault, self._trial = self._trial, None
            for worker in self.workers.values():
                worker.sender.strike = None
            self._change_schema(-1)
            self._kill_all(fault)

    def _change_schema(self, by: int) -> None:
        feed_stage.SCHEMA += by  # type: ignore[attr-defined]  # where it is read
        self.broker.note(f"a release with schema {feed_stage.SCHEMA}")  # type: ignore[attr-defined]

    def _change_leader(self, fault: Fault) -> None:
        tps = list(self.broker.logs)
        tp = tps[int(fault.who * len(tps))]
        self.broker.note(f"{tp.topic}-{tp.partition} has another leader")
        self.broker.logs[tp].change_leader(self.loop.now + fault.seconds / 4)

    def _rebalance(self, _fault: Fault) -> None:
        """Every member joins again, as when a worker comes or goes."""
        for group in self.broker.groups.values():
            self.broker.note(f"{group.name}: a rebalance")
            group.rebalance()

    def _transact(self, fault: Fault) -> None:
        """A producer's transaction on an input, which is committed or aborted after a while."""
        partition = int(fault.who * self.plan.partitions)
        log = self.broker.logs[TopicPartition(topics.FORECAST_EVENTS, partition)]
        if log.open_from is None:
            log.commits = fault.steps % 2 == 0
            end = "committed" if log.commits else "aborted"
            self.broker.note(f"a transaction on {topics.FORECAST_EVENTS}-{partition}, {end} after {fault.seconds} s")
            log.write_in_transaction([self._forecast(partition, number) for number in range(1 + fault.steps % 3)])
            self.loop.later(fault.seconds, log.end_transaction)

    def _forecast(self, partition: int, number: int) -> NewRecord:
        """Another forecast of a question of a partition, if there is one; else of one that nobody asked."""
        keys = dict.fromkeys(sent.key for sent in self.plan.inputs if sent.topic == topics.FORECAST_EVENTS)
        own = [key for key in keys if partition_of(key.encode(), self.plan.partitions) == partition]
        said = {"type": "forecast", "question_id": own[number % len(own)] if own else "q", "expert_id": EXPERTS[number]}
        event = {**said, "probability": 0.9, "at": iso(self.loop.now)}
        return NewRecord(START + int(self.loop.now * 1000), b"a transaction", json.dumps(event).encode())

    def _note_ends(self) -> None:
        """Remember where logs end, and up to where inputs are durable: what is old may be removed."""
        ends = {tp: log.high for tp, log in self.broker.logs.items() if tp.topic in CHANGELOGS.values()}
        ends |= {
            tp: commit.offset for (_, tp), commit in self.broker.committed.items() if tp.topic == topics.FORECAST_EVENTS
        }
        self._ends.append((self.loop.now, ends))
        for worker in self.workers.values():
            for app in worker.apps:
                for partition in app.ownership.partitions():
                    self.watch.bounded(partition)
        self.loop.later(5.0, self._note_ends)

    def _old(self) -> dict[TopicPartition, int]:
        old = [ends for at, ends in self._ends if at <= self.loop.now - _LAG_SECONDS]
        return old[-1] if old else {}

    def _compact(self, _fault: Fault) -> None:
        self.broker.note("changelogs are compacted")
        for tp, end in self._old().items():
            if tp.topic in CHANGELOGS.values():
                self.broker.logs[tp].compact(end, self.loop.now, spares=_LAG_SECONDS)

    def _retain(self, _fault: Fault) -> None:
        self.broker.note("what is durable goes from the start of the input")
        for tp, end in self._old().items():
            if tp.topic == topics.FORECAST_EVENTS:
                self.broker.logs[tp].remove(end)

    def _retain_too_little(self, fault: Fault) -> None:
        """Nobody reads the input for a while, and some of it goes."""
        self._nobody_until = self.loop.now + 2 * _ARRIVED_SECONDS
        self._kill_all(fault)
        self.loop.later(_ARRIVED_SECONDS, self._remove, fault)

    def _remove(self, fault: Fault) -> None:
        tp = TopicPartition(topics.FORECAST_EVENTS, int(fault.who * self.plan.partitions))
        log, first = self.broker.logs[tp], self.watch.durable(tp) + 1
        if tp not in self.lost and first < log.stable:
            log.remove(max(first, log.stable - fault.steps % 4))
            self.lost[tp] = range(first, log.begin)
            self.broker.note(f"{tp.topic}-{tp.partition} loses its records from {first} to {log.begin - 1}")

    # --- the end ---

    def _heal(self) -> None:
        self.broker.note("everything heals")
        self._trial, self._healed = None, self.loop.now
        self.broker.rates = Rates()
        self.broker.cut_off.clear()
        for log in self.broker.logs.values():
            log.end_transaction()
        for process in self.loop.all_processes:
            self._thaw(process)

    def _is_at_rest(self) -> bool:
        """Whether all that was written is folded and covered by durable state."""
        if any(not worker.process.is_alive or worker.process.is_frozen for worker in self.workers.values()):
            return False
        if self.loop.now < self._healed + _QUIET_SECONDS:
            return False
        here = {p.tp: p for w in self.workers.values() for app in w.apps for p in app.ownership.partitions()}
        logs = {tp: log for tp, log in self.broker.logs.items() if tp.topic in (*CHANGELOGS, topics.CONTROL_EVENTS)}
        return all(tp in here and here[tp].idle and here[tp].want > log.last for tp, log in logs.items())


class _Nth:
    """Whether it is the request of this number, of those to a changelog of feeds."""

    def __init__(self, number: int) -> None:
        self._left = number

    def __call__(self, tp: TopicPartition) -> bool:
        self._left -= tp.topic == CHANGELOGS[topics.FEED_LOG]
        return self._left <= 0
