"""Feed logs for tests: records as the question stage would write them, and what a stage makes of them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from stream_peer.events.feed_log import (
    ExpertChanged,
    FeedChanged,
    FeedLogRecord,
    OutcomeRevealed,
    ProvisionalOutcome,
    Round,
    RoundWithdrawn,
    SettingsChanged,
    Source,
    Verdict,
    encode_feed_log,
)
from stream_peer.feeds.stage import FeedStage
from stream_peer.feeds.sums import Sums
from stream_peer.lab.methods.replayed import replayed_method
from stream_peer.log.driver import pump, rebuild
from stream_peer.log.stage import Effects, LogRecord, Output
from stream_peer.settings.feed.document import document_hash, load_document

START = 1_700_000_000_000
HOUR = 3_600_000
_ANYWHERE = Source("forecast-events", 0, 0, 0, 0)


def round_of(
    question_id: str,
    forecasts: Mapping[str, float],
    *,
    boundary: int = 1,
    feed: str = "f",
    weight: float = 1.0,
    final: bool = False,
    after_outcome: bool = False,
) -> Round:
    experts = sorted(forecasts)
    return Round(
        src=_ANYWHERE,
        feed=feed,
        question_id=question_id,
        boundary=START + boundary * HOUR,
        final=final,
        after_outcome=after_outcome,
        weight=weight,
        experts=experts,
        probabilities=[forecasts[expert] for expert in experts],
    )


def withdrawn(question_id: str, *, boundary: int = 1, feed: str = "f") -> RoundWithdrawn:
    return RoundWithdrawn(src=_ANYWHERE, feed=feed, question_id=question_id, boundary=START + boundary * HOUR)


def outcome(question_id: str, value: Verdict, *, feed: str = "f") -> OutcomeRevealed:
    return OutcomeRevealed(src=_ANYWHERE, feed=feed, question_id=question_id, outcome=value)


def provisional(question_id: str, value: Verdict, *, feed: str = "f") -> ProvisionalOutcome:
    return ProvisionalOutcome(src=_ANYWHERE, feed=feed, question_id=question_id, outcome=value)


def settings(document: dict[str, Any]) -> SettingsChanged:
    return SettingsChanged(src=_ANYWHERE, document=document, hash=document_hash(document))


def expert(expert_id: str, *, feed: str = "f", **changes: Any) -> ExpertChanged:
    return ExpertChanged(src=_ANYWHERE, feed=feed, expert_id=expert_id, **changes)


def changed(feed: str = "f", *, reset: bool = False, delete: bool = False) -> FeedChanged:
    return FeedChanged(src=_ANYWHERE, feed=feed, reset=reset, delete=delete)


def log_of(events: Iterable[FeedLogRecord], first: int = 0) -> list[LogRecord]:
    """Events at consecutive offsets, each with a source of its own."""
    return [
        LogRecord(
            offset,
            START + offset * 1000,
            (event.feed or "settings").encode(),
            encode_feed_log(msgspec.structs.replace(event, src=Source("forecast-events", 0, 0, offset, 0))),
        )
        for offset, event in enumerate(events, first)
    ]


def stage(**defaults: object) -> FeedStage:
    """An empty stage, all feeds of which have the given settings; those that only a replay takes are welcome."""
    settings = load_document({"defaults": defaults}, in_replay=True)
    return FeedStage(topic="feed-log", partition=0, secret=b"secret", settings=settings, method_of=replayed_method)


def folded(
    records: Iterable[LogRecord], into: FeedStage | None = None, before: Sequence[LogRecord] = ()
) -> tuple[FeedStage, Effects]:
    """A stage that has folded the records and published, and all that came out; ``before``: what rebuilds need."""
    feed_stage, effects = into or stage(), Effects()
    log = list(before)
    effects.outputs += carry_out_rebuilds(feed_stage, log)
    for record in records:
        feed_stage.step(record, effects)
        log.append(record)
        effects.outputs += carry_out_rebuilds(feed_stage, log)
    feed_stage.publish(effects)
    return feed_stage, effects


def carry_out_rebuilds(feed_stage: FeedStage, log: Sequence[LogRecord]) -> list[Output]:
    """Carry out rebuilds that are due; return the corrections."""
    corrections: list[Output] = []
    while feed_stage.needs_rebuild:
        corrections += pump(rebuild(feed_stage, log[-1].offset), lambda _: log)
    return corrections


def newest(outputs: Sequence[Output], topic: str) -> dict[str, dict[str, Any]]:
    """The last record of each key of a topic."""
    last = {(output.key or b"").decode(): output.value for output in outputs if output.topic == topic}
    return {key: msgspec.json.decode(value) for key, value in last.items() if value is not None}


def without_evaluations(sums: Sums) -> Sums:
    """Sums less what scored forecasts have added."""
    learnt = sums.copy()
    learnt.subtract(learnt.evaluations())
    return learnt


class Changelog:
    """What snapshots leave behind, without the versions and fencing tokens of the real one."""

    def __init__(self) -> None:
        self.head: bytes | None = None
        self.entries: dict[bytes, bytes] = {}

    def take(self, feed_stage: FeedStage) -> None:
        snapshot = feed_stage.snapshot()
        self.head = snapshot.head
        for key, value in snapshot.entries.items():
            if value is None:
                self.entries.pop(key, None)
            else:
                self.entries[key] = value

    def restored(self, **defaults: object) -> FeedStage:
        restored = stage(**defaults)
        restored.load(self.head, self.entries)
        for _ in restored.recount():
            pass
        return restored
